"""Reads submitted modals: what people typed becomes data, or a message at its field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents import InvalidArgumentsError
from bot.action_ids import ActionId
from bot.cards.edit_read import EditResult, place, read_edit_form
from bot.cards.fields import NotEditable, fields_of
from bot.cards.modals import answer_id
from bot.cards.question import questions_of
from bot.cards.schema import pointer
from bot.errors import InvalidInputError
from storage.records import Approval

Errors = dict[str, str]
"""Messages by block id: each is shown at its field."""

MAX_TEXT = 3000
"""Characters of one answer, as the modals allow."""


def read_text(values: Mapping[str, Any], block_id: str) -> str:
    """The text of one of our text inputs; empty when nothing was typed.

    Raises:
        InvalidInputError: It is not what our input sends.
    """
    block = values.get(block_id)
    state = block.get(str(ActionId.VALUE)) if isinstance(block, dict) else None
    text = state.get("value") if isinstance(state, dict) else None
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise InvalidInputError("this form")
    return text.strip()


def read_answers(approval: Approval, values: Mapping[str, Any]) -> tuple[list[str], Errors]:
    """One answer per question, and a message for each that is missing."""
    answers: list[str] = []
    errors: Errors = {}
    for index, _ in enumerate(questions_of(approval)):
        text = read_text(values, answer_id(index))
        if not text:
            errors[answer_id(index)] = "Please answer this one too."
        answers.append(text)
    return answers, errors


def read_edit(approval: Approval, values: Mapping[str, Any]) -> EditResult:
    """The edited arguments, or a message at each field that does not fit."""
    return read_edit_form(json.loads(approval.schema_json), current(approval), values)


def place_errors(approval: Approval, error: InvalidArgumentsError) -> Errors:
    """Show what the tool itself says about edited arguments at the fields."""
    fields = fields_of(json.loads(approval.schema_json), current(approval))
    if isinstance(fields, NotEditable):
        raise InvalidInputError("this form")
    found = {pointer(*fault.path): fault.message for fault in error.errors}
    return place(found, fields)


def current(approval: Approval) -> dict[str, Any]:
    """The arguments as the card shows them."""
    found = json.loads(approval.arguments_json)
    return found if isinstance(found, dict) else {}
