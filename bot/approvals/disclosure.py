"""Hidden parts of a card, and who has opened them. Approval requires opening them.

Cut text is in the details. A value that only looks like a secret is masked for all, and revealed to
one possible approver at a time. Both are stored with the digest of the content, so an edit hides
the content again.
"""

from __future__ import annotations

from enum import StrEnum

from bot.questions.base import question_of
from bot.records.approval import Approval, Decision, SeenPart
from bot.redaction.masks import has_guess

MOST_SEEN = 100
"""Maximum number of readers per card; the oldest are forgotten first."""


class Surface(StrEnum):
    """A place in Slack where a person can approve. The record determines its content."""

    CARD = "card"
    """Card of one request, or a copy."""
    LINE = "line"
    """Line of a batch card."""
    LISTED = "listed"
    """Entry of the batch form."""
    FORM = "form"
    """Form about one request."""
    REVIEW = "review"
    """First page of the review of a request that has one page."""
    DETAILS = "details"
    """All pages of the review of one request."""
    EDIT_FORM = "edit_form"
    """Form with an input for each argument."""
    ELSEWHERE = "elsewhere"
    """Any other place. It shows a title and possibly nothing of the call."""


class Opened(StrEnum):
    """The content that a person has opened. Stored: version 1, must stay readable."""

    DETAILS = "details"  # everything, masked like the card
    CLEAR = "clear"  # everything but declared secrets


def guesses(approval: Approval) -> tuple[str, ...]:
    """Return the values that are masked by a guess in the subject of approval."""
    question = question_of(approval)
    if not question.can_agree():
        return ()
    names = [name for name, words in question.agreed_parts() if has_guess(words)]
    return tuple(dict.fromkeys(names))


def is_yes(approval: Approval, decision: Decision) -> bool:
    """Whether a decision approves what a card shows."""
    return question_of(approval).is_yes(decision)


def has_opened(approval: Approval, user_id: str, what: Opened) -> bool:
    """Whether a person has opened this content; the clear text includes the details."""
    enough = {what, Opened.CLEAR}
    return any(part.what in enough for part in _seen_by(approval, user_id))


def pages_read(approval: Approval, user_id: str) -> int:
    """Return how many consecutive pages of the full text a person was shown."""
    return max((part.page for part in _seen_by(approval, user_id)), default=0)


def with_page(approval: Approval, user_id: str, number: int) -> tuple[SeenPart, ...]:
    """Return who has seen what after a person was shown a page and all pages before it."""
    new = SeenPart(by=user_id, digest=approval.digest, page=number)
    others = [part for part in approval.seen if part.changed(page=number) != new or not part.page]
    return (*others, new)[-MOST_SEEN:]


def with_opened(approval: Approval, user_id: str, what: Opened) -> tuple[SeenPart, ...]:
    """Return who has seen what after a person has opened a part."""
    new = SeenPart(by=user_id, digest=approval.digest, what=str(what))
    return (*(part for part in approval.seen if part != new), new)[-MOST_SEEN:]


def _seen_by(approval: Approval, user_id: str) -> list[SeenPart]:
    """Return what a person has seen of the present call."""
    return [part for part in approval.seen if (part.by, part.digest) == (user_id, approval.digest)]
