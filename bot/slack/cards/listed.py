"""Show a request of a batch in full: in a line, or with its whole card."""

from __future__ import annotations

from bot.approvals.disclosure import guesses
from bot.layout.parts import Body
from bot.questions.call import CallQuestion
from bot.questions.shown import shown_question
from bot.records.approval import Approval
from bot.redaction.masks import masked_once, once
from bot.slack.cards.approval import describe
from bot.slack.cards.batch_items import fits_line


@masked_once()
def takes_line(approval: Approval) -> bool:
    """Whether a line shows all of a call, so it can be approved there."""
    about = _whole(approval)
    return about is not None and not about.masked and fits_line(approval)


@masked_once()
def is_listed(approval: Approval) -> bool:
    """Whether the batch modal lists a call: it shows a call in full or not at all."""
    return _whole(approval) is not None


def body_of(approval: Approval) -> Body:
    """Return what the batch modal shows of a longer call, below its title."""
    return once(describe, approval)


def _whole(approval: Approval) -> Body | None:
    """Return a call as on its card; None if the card omits or changes anything."""
    if type(shown_question(approval)) is not CallQuestion or guesses(approval):
        return None
    about = body_of(approval)
    return about if about.is_plain else None
