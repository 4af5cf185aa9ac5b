"""The parts that a card does not show, and their readers: nobody agrees to what they have not seen.

What is cut is in the details. What only looks like a secret is masked for all, and shown to one
person at a time who may decide. Both are on record with the digest of what was opened, so that
an edit makes it unseen again.
"""

from __future__ import annotations

import json
from enum import StrEnum

from bot.questions.base import question_of
from bot.redaction.call import has_guess
from storage.records import Approval, Decision

MOST_SEEN = 100
"""People who are remembered for one card; who opened it first is forgotten first."""


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
