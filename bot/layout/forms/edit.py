"""The inputs of a form: one for each argument, typed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, context, plain
from bot.layout.forms.fields import (
    MOST_CHECKS,
    NOTHING,
    OPTION,
    Field,
    FieldKind,
    Missing,
    NotEditable,
    fields_of,
    option_label,
)
from bot.layout.forms.schema import Schema
from bot.layout.text import clip
from bot.redaction.call import NO_NAMES, Names
from bot.redaction.mask import mask_text

LABEL = 150
HINT = 300
MOST_BYTES = 150_000
_FRAME = 300
"""Bytes of a block, or an option, beside its words."""

_TEXTS = {FieldKind.TEXT, FieldKind.LINES, FieldKind.LIST, FieldKind.DECIMAL, FieldKind.JSON}
_MANY_LINES = {FieldKind.LINES, FieldKind.LIST, FieldKind.JSON}
_NUMBERS = {FieldKind.INTEGER, FieldKind.NUMBER}
_PICKERS: Mapping[FieldKind, tuple[str, str, Callable[[str], object]]] = {
    FieldKind.DATE: ("datepicker", "initial_date", str),
    FieldKind.DATETIME: ("datetimepicker", "initial_date_time", int),
}
"""Kind → the element, the key of its first value, and what makes that of `Field.initial`."""


def edit_form(
    schema: Schema, current: Mapping[str, Any], masks: Names = NO_NAMES
) -> list[Block] | NotEditable:
    """Draw the inputs of a form.

    Args:
        schema: The tool's JSON schema.
        current: The arguments as asked for.
        masks: What the tool's author says of them.

    Returns:
        One block for each argument, or why there is no form.
    """
    fields = fields_of(schema, current, masks)
    return fields if isinstance(fields, NotEditable) else drawn(fields)


def drawn(fields: Sequence[Field]) -> list[Block] | NotEditable:
    """Draw one block for each field, or say why that is too much."""
    blocks = [_block(field) for field in fields]
    if len(json.dumps(blocks).encode()) > MOST_BYTES:
        return NotEditable(reason="the arguments are too long for a form.")
    return blocks


def too_long(fields: Sequence[Field]) -> str:
    """Say why fields are too much for a form; they are drawn only where that may be so."""
    if sum(map(ceiling, fields)) <= MOST_BYTES:
        return ""
    made = drawn(fields)
    return made.reason if isinstance(made, NotEditable) else ""


def ceiling(field: Field) -> int:
    """Bytes that the block of a field does not exceed; a character takes twelve at most."""
    words = 12 * (LABEL + HINT + len(field.initial))
    options = 2 * len(field.choices) * (12 * OPTION + _FRAME)  # all of them may be chosen, too
    return words + options + 2 * _FRAME


def _block(field: Field) -> Block:
    label = _label(field)
    if field.kind is FieldKind.FIXED:
        words = plain(f"{label}: {field.initial}. It stays as it is.")
        return {**context(words), "block_id": field.block_id}
    block: Block = {
        "type": "input",
        "block_id": field.block_id,
        "label": plain(label),
        "optional": field.may_be_empty,
        "element": {**_element(field), "action_id": str(ActionId.VALUE)},
    }
    hint = _hint(field)
    return {**block, "hint": plain(hint)} if hint else block


def _label(field: Field) -> str:
    title = field.schema.get("title")
    words = title if isinstance(title, str) and title.strip() else field.name
    return clip(mask_text(words), LABEL) if words.strip() else "(no name)"


def _hint(field: Field) -> str:
    described = field.schema.get("description")
    words = [mask_text(described.strip()) if isinstance(described, str) else "", _range(field)]
    if field.kind is FieldKind.JSON:
        words.append("As JSON.")
    if field.kind is FieldKind.LIST:
        words.append("One per line.")
    if field.kind is FieldKind.DATETIME:
        words.append("In your own time zone.")
    if field.value is Missing.MISSING and not field.required:
        words.append("Not given so far.")
    return clip(" ".join(word for word in words if word), HINT)


def _range(field: Field) -> str:
    low, high = field.schema.get("minimum"), field.schema.get("maximum")
    if low is not None and high is not None:
        return f"From {low} to {high}."
    if low is not None:
        return f"At least {low}."
    return f"At most {high}." if high is not None else ""


def _element(field: Field) -> Block:
    initial = field.initial
    if field.kind in _TEXTS:
        element: Block = {"type": "plain_text_input", "multiline": field.kind in _MANY_LINES}
        return {**element, "initial_value": initial} if initial else element
    if field.kind in _NUMBERS:
        decimal = field.kind is FieldKind.NUMBER
        element = {"type": "number_input", "is_decimal_allowed": decimal}
        return {**element, "initial_value": initial} if initial else element
    if field.kind in _PICKERS:
        kind, name, value = _PICKERS[field.kind]
        return {"type": kind, **({name: value(initial)} if initial else {})}
    if field.kind is FieldKind.CHOICES:
        return _several(field)
    return _one_of(field)


def _one_of(field: Field) -> Block:
    options = _options(field)
    if field.kind is FieldKind.BOOLEAN:
        initial = {"true": "0", "false": "1"}.get(field.initial, "")
        kind = "radio_buttons"
    else:
        initial = field.initial
        kind = "static_select"
    if field.nullable:
        options.append({"text": plain("(nothing)"), "value": NOTHING})
    if field.nullable and field.value is None:
        initial = NOTHING
    chosen = [option for option in options if option["value"] == initial]
    element: Block = {"type": kind, "options": options}
    return {**element, "initial_option": chosen[0]} if chosen else element


def _several(field: Field) -> Block:
    options = _options(field)
    wanted = field.initial.split(",")
    chosen = [option for option in options if option["value"] in wanted]
    few = len(options) <= MOST_CHECKS
    element: Block = {"type": "checkboxes" if few else "multi_static_select", "options": options}
    return {**element, "initial_options": chosen} if chosen else element


def _options(field: Field) -> list[Block]:
    words = {True: "Yes", False: "No"} if field.kind is FieldKind.BOOLEAN else {}
    return [
        {
            "text": plain(
                words[choice] if isinstance(choice, bool) and words else option_label(choice)
            ),
            "value": str(index),
        }
        for index, choice in enumerate(field.choices)
    ]
