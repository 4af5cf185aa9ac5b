"""Reads submitted modals: the inverse of `modals`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.core.errors import InvalidArgumentsError
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.arguments import read_object
from bot.layout.forms.fields import NotEditable, fields_of
from bot.layout.forms.parse import EditResult, place, read_edit_form, read_new_form
from bot.layout.forms.schema import pointer
from bot.questions.form import Form, arguments_of, ask_of, form_values
from bot.redaction.call import Names
from bot.slack.cards.modals import CHOICE, MOST_ANSWER, MOST_ANSWERS, answer_id
from bot.slack.cards.outcomes import questions_of
from storage.records import Approval

Values = Mapping[str, Any]
"""`view.state.values`: block id → action id → state."""

Errors = dict[str, str]
"""For each block id one sentence, fit for `response_action: errors`."""


def read_text(values: Values, block_id: str) -> str:
    """Read a text input; empty when nothing was typed, or the input was not sent."""
    block = values.get(block_id)
    state = block.get(ActionId.VALUE) if isinstance(block, Mapping) else None
    text = state.get("value") if isinstance(state, Mapping) else None
    return text.strip()[:MOST_ANSWER] if isinstance(text, str) else ""


def read_answers(approval: Approval, values: Values) -> tuple[list[str], Errors]:
    """Read the answer form; every question needs an answer.

    Returns:
        One text for each question, and for each block id what is wrong there.
    """
    count = len(questions_of(approval)[:MOST_ANSWERS])
    texts = [read_text(values, answer_id(index)) for index in range(count)]
    missing = [answer_id(index) for index, text in enumerate(texts) if not text]
    return texts, dict.fromkeys(missing, "Please write an answer.")


def read_feedback(values: Values) -> tuple[str, Errors]:
    """Read the form for feedback.

    Returns:
        The text, and what is wrong with it.
    """
    text = read_text(values, answer_id(0))
    return text, {} if text else {answer_id(0): "Please write what should be different."}


def read_choice(approval: Approval, values: Values) -> tuple[list[str], Errors]:
    """Read the form with options.

    Returns:
        Ids of the chosen options, in their order, and what is wrong.
    """
    ask = ask_of(approval)
    block = values.get(CHOICE)
    state = block.get(ActionId.VALUE) if isinstance(block, Mapping) else None
    state = state if isinstance(state, Mapping) else {}
    found = state.get("selected_options") if ask.multiple else [state.get("selected_option")]
    listed = found if isinstance(found, list) else []
    chosen = [one.get("value") for one in listed if isinstance(one, Mapping)]
    known = {str(index): option.id for index, option in enumerate(ask.options)}
    ids = [known[index] for index in known if index in chosen]
    if not ids or len(ids) != len(chosen):
        return [], {CHOICE: "Please choose one of the options."}
    return ids, {}


def read_fields(approval: Approval, values: Values) -> EditResult:
    """Read the form for values that people are asked for.

    Raises:
        InvalidInputError: The record has no such form.
    """
    ask = ask_of(approval)
    if ask.form is not Form.FIELDS or not ask.schema:
        raise InvalidInputError("this form")
    return read_new_form(ask.schema, values)


def read_edit(approval: Approval, values: Values) -> EditResult:
    """Read the edit form of the same record.

    Returns:
        All arguments, also those that have no input; or the errors.

    Raises:
        InvalidInputError: The record has no form.
    """
    schema, before, masks = _form_of(approval)
    result = read_edit_form(schema, before, values, masks)
    if result.arguments is None:
        return result
    whole = arguments_of(approval)
    fixed = {name: value for name, value in whole.items() if name not in before}
    return EditResult(arguments={**fixed, **result.arguments})


def current(approval: Approval) -> dict[str, Any]:
    """Read the arguments of a record whose form was submitted.

    Raises:
        InvalidInputError: The record has no form.
    """
    _form_of(approval)
    return arguments_of(approval)


def place_errors(approval: Approval, error: Exception) -> Errors:
    """Put what the tool's own validation found at the inputs of the form.

    Args:
        approval: The record whose form was submitted.
        error: A refusal of the runtime; its cause may name arguments.

    Returns:
        For each block id one sentence; never empty.

    Raises:
        InvalidInputError: The record has no form.
    """
    fields = fields_of(*_form_of(approval))
    if isinstance(fields, NotEditable):
        raise InvalidInputError("this form")
    cause = error if isinstance(error, InvalidArgumentsError) else error.__cause__
    if not isinstance(cause, InvalidArgumentsError):
        return place({"": "The tool does not take these arguments."}, fields)
    return place({pointer(*fault.path): fault.message for fault in cause.errors}, fields)


def refused(approval: Approval, why: str) -> Errors:
    """Say at the form why the rules do not let a call run with what was filled in.

    Args:
        approval: The record whose form was submitted.
        why: In words; a clause.

    Raises:
        InvalidInputError: The record has no form.
    """
    fields = fields_of(*_form_of(approval))
    if isinstance(fields, NotEditable):
        raise InvalidInputError("this form")
    return place({"": f"Not possible: {why}."}, fields)


def _form_of(approval: Approval) -> tuple[Mapping[str, Any], dict[str, object], Names]:
    ask = ask_of(approval)
    if ask.schema is None or read_object(approval.arguments_json) is None:
        raise InvalidInputError("this form")
    return ask.schema, form_values(approval, ask), ask.masks
