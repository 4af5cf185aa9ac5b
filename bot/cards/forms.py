"""Reads submitted modals: the inverse of `modals`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.errors import InvalidArgumentsError
from bot.action_ids import ActionId
from bot.cards.arguments import read_object
from bot.cards.edit_read import EditResult, place, read_edit_form
from bot.cards.fields import NotEditable, fields_of
from bot.cards.modals import MOST_ANSWER, MOST_ANSWERS, answer_id
from bot.cards.question import questions_of
from bot.cards.schema import pointer
from bot.errors import InvalidInputError
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


def read_edit(approval: Approval, values: Values) -> EditResult:
    """Read the edit form of the same record.

    Raises:
        InvalidInputError: The record has no form.
    """
    schema, before = _form_of(approval)
    return read_edit_form(schema, before, values)


def current(approval: Approval) -> dict[str, Any]:
    """Read the arguments that the form started with.

    Raises:
        InvalidInputError: The record has no form.
    """
    return _form_of(approval)[1]


def place_errors(approval: Approval, error: Exception) -> Errors:
    """Put what the tool's own validation found at the inputs of the edit form.

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


def _form_of(approval: Approval) -> tuple[dict[str, object], dict[str, object]]:
    schema, before = read_object(approval.schema_json), read_object(approval.arguments_json)
    if schema is None or before is None:
        raise InvalidInputError("this form")
    return schema, before
