"""The surfaces of a yes, and who has opened the rest: nobody agrees to what they have not seen.

What is cut is in the details. What only looks like a secret is masked for all, and shown to one
person at a time who may decide. Both are on record with the digest of what was opened, so that
an edit makes it unseen again.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum

from bot.questions.base import question_of
from bot.redaction.masks import has_guess
from storage.records import Approval, Decision

MOST_SEEN = 100
"""People who are remembered for one card; who opened it first is forgotten first."""


_PAGE = "page."
"""Begins, in `what`, the number of the last page that was shown. Stored: must stay readable."""
_NUMBER = re.compile("[1-9][0-9]{0,3}", re.ASCII)


class Surface(StrEnum):
    """A place in Slack where somebody says yes. What it shows is worked out from the record."""

    CARD = "card"
    """The card of one request, or a copy of it."""
    LINE = "line"
    """A line of the card of several requests."""
    LISTED = "listed"
    """An entry of the form about several requests."""
    FORM = "form"
    """A form about one request."""
    REVIEW = "review"
    """The first page of the review of one request, which has no others."""
    DETAILS = "details"
    """All pages of the review of one request."""
    EDIT_FORM = "edit_form"
    """The form with an input for each argument."""
    ELSEWHERE = "elsewhere"
    """Any other place: it shows a title, and nothing of the call for certain."""


class Opened(StrEnum):
    """The part that somebody has opened. Stored: version 1, must stay readable."""

    DETAILS = "details"  # everything, masked like the card
    CLEAR = "clear"  # everything but what is declared secret


def guesses(approval: Approval) -> tuple[str, ...]:
    """Name what is masked by a guess in what people agree to; empty when all of it is shown."""
    question = question_of(approval)
    if not question.can_agree():
        return ()
    found = [name for name, words in question.agreed_parts() if has_guess(words)]
    return tuple(dict.fromkeys(found))


def is_yes(approval: Approval, decision: Decision) -> bool:
    """Tell whether a decision agrees to what a card shows."""
    return question_of(approval).is_yes(decision)


def has_opened(approval: Approval, user_id: str, what: Opened) -> bool:
    """Tell whether a person has opened this, as it is now; the clear text has all details."""
    enough = {what, Opened.CLEAR}
    return any(
        one.get("by") == user_id
        and one.get("digest") == approval.digest
        and one.get("what") in enough
        for one in _seen(approval)
    )


def pages_read(approval: Approval, user_id: str) -> int:
    """Count the pages of the full text that a person was shown, one after the other."""
    found = [
        str(one.get("what")).removeprefix(_PAGE)
        for one in _seen(approval)
        if one.get("by") == user_id and one.get("digest") == approval.digest
    ]
    return max((int(one) for one in found if _NUMBER.fullmatch(one)), default=0)


def with_page(approval: Approval, user_id: str, number: int) -> str:
    """The `seen_json` of an approval once a person was shown a page, and all before it."""
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
    """The `seen_json` of an approval once a person has opened it."""
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
