"""The parts that a card does not show, and their readers: nobody agrees to what they have not seen.

What is cut is in the details. What only looks like a secret is masked for all, and shown to one
person at a time who may decide. Both are on record with the digest of what was opened, so that
an edit makes it unseen again.
"""

from __future__ import annotations

import json
from enum import StrEnum

from bot.questions.form import Ask, Form, ask_of
from bot.redaction.call import Names, Words, has_guess, mask_call, mask_value
from storage.records import Approval, Decision, Kind, Status

MOST_SEEN = 100
"""People who are remembered for one card; who opened it first is forgotten first."""


class Opened(StrEnum):
    """The part that somebody has opened. Stored: version 1, must stay readable."""

    DETAILS = "details"  # everything, masked like the card
    CLEAR = "clear"  # everything but what is declared secret


def guesses(approval: Approval) -> tuple[str, ...]:
    """Name what is masked by a guess in what people agree to; empty when all of it is shown."""
    ask = ask_of(approval)
    if not _is_agreed_to(approval, ask):
        return ()
    found = [name for name, words in _parts(approval, ask) if has_guess(words)]
    return tuple(dict.fromkeys(found))


def is_yes(approval: Approval, decision: Decision) -> bool:
    """Tell whether a decision agrees to what a card shows."""
    if decision.status is Status.APPROVED:
        return True
    if decision.status is not Status.ANSWERED or approval.kind is Kind.DOUBT:
        return False  # a doubt is answered with a result: nothing runs
    match ask_of(approval).form:
        case Form.CHOICE:
            return True
        case Form.FEEDBACK:
            return _read(decision.answer_json) == {"accepted": True}
        case Form.FIELDS:
            return bool(approval.tool)
        case _:
            return False


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


def _is_agreed_to(approval: Approval, ask: Ask) -> bool:
    match ask.form:
        case Form.TEXTS | Form.PROGRAM:
            return False
        case Form.FIELDS:
            return bool(approval.tool)
        case Form.HUMAN:
            return not {"accept", "edit"}.isdisjoint(ask.allowed)
        case _:
            return True


def _parts(approval: Approval, ask: Ask) -> list[tuple[str, Words]]:
    """All that a yes agrees to, by name."""
    found = _read(approval.arguments_json)
    if not isinstance(found, dict):
        return [("arguments", mask_call(approval.arguments_json))]
    parts = [(name, _argument(name, value, ask.masks)) for name, value in found.items()]
    if ask.form is Form.CHOICE:
        parts.append(("question", mask_call(ask.question)))
        parts += [
            (f"option {number}", (*mask_call(option.label), *mask_call(option.description)))
            for number, option in enumerate(ask.options, 1)
        ]
    return parts


def _argument(name: str, value: object, masks: Names) -> Words:
    return (*mask_call(name), *mask_value(name, value, masks))


def _seen(approval: Approval) -> list[dict[str, object]]:
    found = _read(approval.seen_json)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
