"""One of several requests, shown whole or not at all: in a line, or with all of its card."""

from __future__ import annotations

from bot.approvals.disclosure import guesses
from bot.layout.parts import Body
from bot.questions.call import CallQuestion
from bot.questions.shown import shown_question
from bot.redaction.masks import masked_once, once
from bot.slack.cards.approval import describe
from bot.slack.cards.batch_items import fits_line
from storage.records import Approval


@masked_once()
def takes_line(approval: Approval) -> bool:
    """Tell whether a line shows all of a call, so that people can agree to it there."""
    about = _whole(approval)
    return about is not None and not about.masked and fits_line(approval)


@masked_once()
def is_listed(approval: Approval) -> bool:
    """Tell whether a form about several requests lists a call: it shows all of it, or nothing."""
    return _whole(approval) is not None


def body_of(approval: Approval) -> Body:
    """All that such a form shows of a call that takes more than a line, below its title."""
    return once(describe, approval)


def _whole(approval: Approval) -> Body | None:
    """All of a call as its card shows it; None where that leaves out or changes anything."""
    if type(shown_question(approval)) is not CallQuestion or guesses(approval):
        return None
    about = body_of(approval)
    is_other = about.hidden or about.altered or about.guessed or about.turned
    return None if is_other else about
