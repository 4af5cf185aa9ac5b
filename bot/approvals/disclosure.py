"""Hidden parts of a card, and who has opened them. Approval requires opening them.

Cut text is in the details. A value that only looks like a secret is masked for all, and revealed to
one possible approver at a time. Both are stored with the digest of the content, so an edit hides
the content again.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum

from bot.approvals.model import Approval, Decision
from bot.questions.base import question_of
from bot.redaction.masks import has_guess

MOST_SEEN = 100
"""Maximum number of readers per card; the oldest are forgotten first."""


_PAGE = "page."
"""Prefix, in `what`, of the last page shown. Stored: must stay readable."""
_NUMBER = re.compile("[1-9][0-9]{0,3}", re.ASCII)


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
    found = [name for name, words in question.agreed_parts() if has_guess(words)]
    return tuple(dict.fromkeys(found))


def is_yes(approval: Approval, decision: Decision) -> bool:
    """Whether a decision approves what a card shows."""
    return question_of(approval).is_yes(decision)


def has_opened(approval: Approval, user_id: str, what: Opened) -> bool:
    """Whether a person has opened this content; the clear text includes the details."""
    enough = {what, Opened.CLEAR}
    return any(
        one.get("by") == user_id
        and one.get("digest") == approval.digest
        and one.get("what") in enough
        for one in _seen(approval)
    )


def pages_read(approval: Approval, user_id: str) -> int:
    """Return how many consecutive pages of the full text a person was shown."""
    found = [
        str(one.get("what")).removeprefix(_PAGE)
        for one in _seen(approval)
        if one.get("by") == user_id and one.get("digest") == approval.digest
    ]
    return max((int(one) for one in found if _NUMBER.fullmatch(one)), default=0)


def with_page(approval: Approval, user_id: str, number: int) -> str:
    """Return `seen_json` after a person was shown a page and all pages before it."""
    mine = {"by": user_id, "digest": approval.digest}
    kept = [
        one
        for one in _seen(approval)
        if {name: one.get(name) for name in mine} != mine
        or not str(one.get("what")).startswith(_PAGE)
    ]
    rows = [*kept, {**mine, "what": f"{_PAGE}{number}"}]
    return json.dumps(rows[-MOST_SEEN:], separators=(",", ":"))


def with_opened(approval: Approval, user_id: str, what: Opened) -> str:
    """Return `seen_json` after a person has opened a part."""
    new = {"by": user_id, "digest": approval.digest, "what": str(what)}
    kept = [one for one in _seen(approval) if one != new]
    return json.dumps([*kept, new][-MOST_SEEN:], separators=(",", ":"))


def _seen(approval: Approval) -> list[dict[str, object]]:
    found = _read(approval.seen_json)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
