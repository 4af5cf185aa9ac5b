"""What people may decide about an approval, whichever way it comes: a click, a form, a reply.

A decision is checked against the record before it is stored: the record says which answers are
taken, and what each of them covers. What does not fit is refused, and the approval waits on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from agents.core.codec import Json
from agents.graph.state.shapes import misfit
from bot.errors import InvalidInputError
from bot.questions.form import Ask, Form, Option, arguments_of, ask_of, is_yes_or_no
from bot.questions.record import edited_digest
from storage.records import Approval, Decision, Kind, Status

_NO_EDIT = re.compile(r"no need to edit[.! ]*", re.IGNORECASE)
_INTEGER = re.compile(r"-?\d{1,15}", re.ASCII)
_SPEAKING = frozenset({"title", "description", "default"})
"""Keys of a JSON schema that ask nothing of a value."""
_NO_ANSWER = frozenset({Status.EXPIRED, Status.CANCELLED, Status.WITHDRAWN, Status.UNDECIDABLE})
_SPOKEN = frozenset({"string", "integer", "number"})


def yes_status(approval: Approval) -> Status:
    """What an approval is when people have answered it, other than with a no."""
    return Status.APPROVED if approval.kind is Kind.APPROVAL else Status.ANSWERED


def no_status(approval: Approval) -> Status:
    """What an approval is when people say no, with their reason.

    Raises:
        InvalidInputError: It takes no such answer.
    """
    ask = ask_of(approval)
    match ask.form:
        case Form.CALL | Form.STEP if approval.kind is Kind.APPROVAL:
            return Status.REJECTED
        case Form.CHOICE if ask.can_decline:
            return Status.REJECTED
        case Form.FIELDS if approval.tool:
            return Status.CANCELLED  # the runtime knows no rejection of this question
        case _:
            raise InvalidInputError("this button")


def texts_json(texts: Sequence[str]) -> str:
    """Write answers, one for each question, as a decision keeps them."""
    return _dump(list(texts))


def feedback_json(text: str) -> str:
    """Write feedback as a decision keeps it; an empty text says that all is good."""
    return _dump({"feedback": text} if text else {"accepted": True})


def selected_json(ids: Sequence[str]) -> str:
    """Write chosen options as a decision keeps them."""
    return _dump({"selected": list(ids)})


def values_json(values: Mapping[str, object]) -> str:
    """Write what people filled in as a decision keeps it."""
    return _dump({"values": dict(values)})


def chosen_digest(approval: Approval, ids: Sequence[str]) -> str:
    """What a choice covers: the call with the options in it, or the question.

    Raises:
        InvalidInputError: There is no such option.
    """
    ask = ask_of(approval)
    options = _options(ask, ids)
    if not options:
        raise InvalidInputError("this choice")
    if approval.kind is not Kind.APPROVAL:
        return approval.digest
    return edited_digest(approval, chosen_arguments(approval, ids))


def chosen_arguments(approval: Approval, ids: Sequence[str]) -> dict[str, object]:
    """A call's arguments with what people chose in them; empty when there is no such option."""
    ask = ask_of(approval)
    values = [option.value for option in _options(ask, ids)]
    if not values:
        return {}
    return {**arguments_of(approval), ask.parameter: values if ask.multiple else values[0]}


def filled_digest(approval: Approval, values: Mapping[str, object]) -> str:
    """What filled in values cover: the call with them in it, or the question."""
    if not approval.tool:
        return approval.digest
    return edited_digest(approval, {**arguments_of(approval), **values})


def check_decision(approval: Approval, decision: Decision) -> None:
    """Refuse a decision that the approval does not take.

    Raises:
        InvalidInputError: It is of the wrong kind, incomplete, or covers something else.
    """
    if decision.status in _NO_ANSWER or approval.kind is Kind.DOUBT:
        return
    ask = ask_of(approval)
    fits = _FITS.get((approval.kind, ask.form, decision.status))
    try:
        is_fine = fits is not None and fits(approval, ask, decision)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidInputError("this answer") from error
    if not is_fine:
        raise InvalidInputError("this answer")


def read_reply(approval: Approval, text: str) -> str:
    """Read a reply in the thread as the answer of a question.

    Returns:
        The answer as a decision keeps it; empty when a reply does not answer this, or not so.
    """
    ask = ask_of(approval)
    words = text.strip()
    match ask.form:
        case _ if not words or approval.kind is not Kind.QUESTION:
            return ""
        case Form.TEXTS:
            return texts_json([text])
        case Form.FEEDBACK:
            return feedback_json("" if _NO_EDIT.fullmatch(words) else text)
        case Form.CHOICE if not is_yes_or_no(ask):
            return _named(ask, words)
        case Form.FIELDS:
            return _typed(spoken_type(approval), text)
        case _:
            return ""


def spoken_type(approval: Approval) -> str:
    """Which JSON type a reply in the thread can give to a typed question.

    Returns:
        `string`, or `integer` or `number` for a whole number; empty when only the form answers.
    """
    ask = ask_of(approval)
    if ask.form is not Form.FIELDS or not ask.is_wrapped or approval.tool:
        return ""
    schema = _properties(ask).get("answer")
    if not isinstance(schema, dict) or set(schema) - _SPEAKING - {"type"}:
        return ""
    kind = schema.get("type")
    return kind if isinstance(kind, str) and kind in _SPOKEN else ""


def reply_hint(approval: Approval) -> str:
    """Say privately what to do in place of a reply that answers nothing."""
    ask = ask_of(approval)
    match ask.form:
        case Form.CHOICE if not is_yes_or_no(ask):
            return (
                "This is not exactly one of the options. Please use the card, or reply with one "
                "number or label."
            )
        case Form.PROGRAM:
            return "This cannot be answered here: only a program can. The card says more."
        case _:
            return "A reply does not answer this. Please use the buttons on the card."


def _named(ask: Ask, words: str) -> str:
    """The option that a reply names by its number or its label, and no other."""
    wanted = words.casefold().rstrip(".!").strip()
    found = {
        option.id
        for number, option in enumerate(ask.options, 1)
        if wanted in {str(number), option.label.casefold().strip().rstrip(".!").strip()}
    }
    return selected_json([*found]) if len(found) == 1 else ""


def _typed(kind: str, text: str) -> str:
    """A text or a whole number, where any will do; all else has a form, which checks it."""
    words = text.strip()
    match kind:
        case "string":
            return values_json({"answer": text})
        case "integer" | "number" if _INTEGER.fullmatch(words):
            return values_json({"answer": int(words)})
        case _:
            return ""


def _options(ask: Ask, ids: Sequence[str]) -> list[Option]:
    """The options with these ids; none when the choice does not fit."""
    found = [option for option in ask.options if option.id in ids]
    fits = len(found) == len(ids) and (len(found) == 1 or ask.multiple)
    return found if fits else []


def _properties(ask: Ask) -> dict[str, Json]:
    found = (ask.schema or {}).get("properties")
    return found if isinstance(found, dict) else {}


_Fits = Callable[[Approval, Ask, Decision], bool]


def _is_call(approval: Approval, ask: Ask, decision: Decision) -> bool:
    return _covers(approval, decision, may_edit=ask.schema is not None)


def _is_rejection(_approval: Approval, _ask: Ask, decision: Decision) -> bool:
    return not decision.arguments_json and not decision.answer_json


def _is_human(approval: Approval, ask: Ask, decision: Decision) -> bool:
    wanted = "edit" if decision.arguments_json else "accept"
    return wanted in ask.allowed and _covers(approval, decision, may_edit=True)


def _is_response(_approval: Approval, ask: Ask, decision: Decision) -> bool:
    return "response" in ask.allowed and len(_texts(decision)) == 1


def _is_ignored(_approval: Approval, ask: Ask, _decision: Decision) -> bool:
    return "ignore" in ask.allowed


def _is_step(approval: Approval, ask: Ask, decision: Decision) -> bool:
    if not _covers(approval, decision, may_edit=ask.schema is not None):
        return False
    if not decision.arguments_json:
        return True
    before, after = arguments_of(approval), json.loads(decision.arguments_json)
    fixed = set(before) - set(ask.names)
    return set(after) <= set(before) | set(ask.names) and all(
        name in after and _dump(after[name]) == _dump(before[name]) for name in fixed
    )


def _are_texts(_approval: Approval, _ask: Ask, decision: Decision) -> bool:
    return bool(_texts(decision))


def _is_feedback(_approval: Approval, _ask: Ask, decision: Decision) -> bool:
    told = json.loads(decision.answer_json)
    if set(told) == {"accepted"}:
        return told["accepted"] is True
    return set(told) == {"feedback"} and bool(told["feedback"].strip())


def _is_choice(approval: Approval, _ask: Ask, decision: Decision) -> bool:
    ids = json.loads(decision.answer_json)["selected"]
    return chosen_digest(approval, [str(one) for one in ids]) == decision.digest


def _is_declined(_approval: Approval, ask: Ask, _decision: Decision) -> bool:
    return ask.can_decline


def _is_filled(approval: Approval, ask: Ask, decision: Decision) -> bool:
    values = json.loads(decision.answer_json)["values"]
    schema = cast("Json", ask.schema)
    if misfit(schema, values) or (approval.tool and set(values) != set(ask.names)):
        return False
    return filled_digest(approval, values) == decision.digest


def _covers(approval: Approval, decision: Decision, *, may_edit: bool) -> bool:
    """Whether a yes is for what was shown, or for the edited arguments."""
    if not decision.arguments_json:
        return decision.digest == approval.digest
    edited = json.loads(decision.arguments_json)
    return may_edit and edited_digest(approval, edited) == decision.digest


def _texts(decision: Decision) -> list[str]:
    found = json.loads(decision.answer_json)
    fits = isinstance(found, list) and all(isinstance(one, str) and one.strip() for one in found)
    return found if fits else []


_FITS: Mapping[tuple[Kind, Form, Status], _Fits] = {
    (Kind.APPROVAL, Form.CALL, Status.APPROVED): _is_call,
    (Kind.APPROVAL, Form.CALL, Status.REJECTED): _is_rejection,
    (Kind.APPROVAL, Form.HUMAN, Status.APPROVED): _is_human,
    (Kind.APPROVAL, Form.HUMAN, Status.ANSWERED): _is_response,
    (Kind.APPROVAL, Form.HUMAN, Status.REJECTED): _is_ignored,
    (Kind.APPROVAL, Form.STEP, Status.APPROVED): _is_step,
    (Kind.APPROVAL, Form.STEP, Status.REJECTED): _is_rejection,
    (Kind.APPROVAL, Form.CHOICE, Status.APPROVED): _is_choice,
    (Kind.APPROVAL, Form.CHOICE, Status.REJECTED): _is_declined,
    (Kind.APPROVAL, Form.FIELDS, Status.APPROVED): _is_filled,
    (Kind.QUESTION, Form.TEXTS, Status.ANSWERED): _are_texts,
    (Kind.QUESTION, Form.FEEDBACK, Status.ANSWERED): _is_feedback,
    (Kind.QUESTION, Form.CHOICE, Status.ANSWERED): _is_choice,
    (Kind.QUESTION, Form.CHOICE, Status.REJECTED): _is_declined,
    (Kind.QUESTION, Form.FIELDS, Status.ANSWERED): _is_filled,
}
"""What each form takes; all else is refused."""


def _dump(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
