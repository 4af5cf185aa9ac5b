"""Draws the inputs of a form: one typed input per argument."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, context, line, literal, plain, rich
from bot.layout.forms.fields import (
    MOST_CHECKS,
    MOST_CHOICES,
    NOTHING,
    OPTION,
    Field,
    FieldKind,
    NotEditable,
    option_label,
)
from bot.layout.forms.hints import humanised, limits_of
from bot.layout.forms.leaves import Missing
from bot.layout.text import clip
from bot.redaction.call import is_masked
from bot.redaction.mask import mask_text
from bot.words import say

LABEL = 150
HINT = 300
MOST_BYTES = 150_000
MOST_BLOCKS = 90
"""The maximum number of blocks of a form, to leave room for the rest of its modal."""
_FRAME = 300
"""Bytes of a block or an option without its words."""

_TEXTS = {FieldKind.TEXT, FieldKind.LINES, FieldKind.LIST, FieldKind.DECIMAL, FieldKind.JSON}
_MANY_LINES = {FieldKind.LINES, FieldKind.LIST, FieldKind.JSON}
_HOW = {
    FieldKind.JSON: "form.edit_json",
    FieldKind.LIST: "form.edit_list",
    FieldKind.DATETIME: "form.edit_datetime",
}
_SECTIONS = 12
"""The maximum number of fields of a form without sections."""
_NUMBERS = {FieldKind.INTEGER, FieldKind.NUMBER}
_PICKERS: Mapping[FieldKind, tuple[str, str, Callable[[str], object]]] = {
    FieldKind.DATE: ("datepicker", "initial_date", str),
    FieldKind.DATETIME: ("datetimepicker", "initial_date_time", int),
}
"""The element of each kind, the key of its initial value, and the conversion."""


def drawn(fields: Sequence[Field]) -> list[Block] | NotEditable:
    """Return a block for each field, or the reason why the form is too large."""
    blocks = list(_blocks(fields))
    if len(blocks) > MOST_BLOCKS + 1 or len(json.dumps(blocks).encode()) > MOST_BYTES:
        return NotEditable(reason=say("form.edit_too_long"))
    return blocks


def ceiling(field: Field) -> int:
    """Return an upper bound for the bytes of a field's block.

    A character takes at most twelve bytes.
    """
    words = 12 * (LABEL + HINT + len(field.initial)) * len(field.parts)
    count = 0 if field.is_searched else len(field.choices)
    options = 2 * count * (12 * OPTION + _FRAME)  # all options may also be selected
    chosen = len(field.initial.split(",")) * (12 * OPTION + _FRAME) if field.is_searched else 0
    return words + options + chosen + 2 * _FRAME


def weight_of(field: Field) -> int:
    """Return the bytes of a field's blocks and of the lines above them."""
    heading = 12 * LABEL + _FRAME if field.groups else 0
    return len(json.dumps(list(_of_field(field))).encode()) + heading


def in_order(fields: Sequence[Field]) -> list[Field]:
    """Sort the fields of a form: required ones first, fields of an object together."""
    tops = dict.fromkeys(field.path[0] for field in fields)
    needed = {field.path[0] for field in fields if field.required}
    order = [
        *(name for name in tops if name in needed),
        *(name for name in tops if name not in needed),
    ]
    places = {name: place for place, name in enumerate(order)}
    return sorted(fields, key=lambda field: places[field.path[0]])


def _blocks(fields: Sequence[Field]) -> Iterator[Block]:
    """Draw the fields, with a line above each object and above optional fields."""
    groups: tuple[str, ...] = ()
    ordered = in_order(fields)
    needed = {field.path[0] for field in fields if field.required}
    is_long = len(ordered) > _SECTIONS
    was_needed = True
    for field in ordered:
        is_needed = field.path[0] in needed
        if is_long and needed and was_needed and not is_needed:
            yield _heading(say("form.edit_optional"))
        if field.groups != groups and field.groups:
            yield _heading(" · ".join(field.groups))
        groups, was_needed = field.groups, is_needed
        yield from _of_field(field)


def _heading(words: str) -> Block:
    return rich(line(literal(clip(mask_text(words), LABEL) or "…", "bold")))


def _of_field(field: Field) -> Iterator[Block]:
    label = label_of(field)
    if field.kind is FieldKind.FIXED:
        words = say("form.edit_fixed", field=label, value=field.initial)
        yield {**context(plain(words)), "block_id": field.block_id}
        return
    count = len(field.parts)
    for number, (block_id, part) in enumerate(zip(field.block_ids, field.parts, strict=True), 1):
        words = label if count == 1 else say("form.edit_part", field=label, n=number, of=count)
        block: Block = {
            "type": "input",
            "block_id": block_id,
            "label": plain(clip(words, LABEL)),
            "optional": field.may_be_empty or number > 1,
            "element": {**_element(field, part), "action_id": str(ActionId.VALUE)},
        }
        hint = _hint(field) if number == count else ""
        yield {**block, "hint": plain(hint)} if hint else block


def label_of(field: Field) -> str:
    """Return the name of a field for people."""
    title = field.schema.get("title")
    words = title if isinstance(title, str) and title.strip() else humanised(field.name)
    return clip(mask_text(words), LABEL) if words.strip() else say("line.no_name")


def _hint(field: Field) -> str:
    described = field.schema.get("description")
    words = [mask_text(described.strip()) if isinstance(described, str) else ""]
    words += limits_of(field.schema, is_text=field.kind in _TEXTS)
    if how := _HOW.get(field.kind):
        words.append(say(how))
    if field.value is Missing.MISSING and not field.required:
        words.append(_default(field))
    return clip(" ".join(word for word in words if word), HINT)


def _default(field: Field) -> str:
    """Return the default value as text; empty if it is unknown or a secret."""
    default = field.schema.get("default")
    if default is None or isinstance(default, list | dict) or is_masked(field.name, default):
        return say("form.edit_not_given")
    words = default if isinstance(default, str) else json.dumps(default)
    if isinstance(default, bool):
        words = say("line.yes") if default else say("line.no")
    return say("form.edit_default", value=clip(mask_text(words), OPTION)) if words else ""


def _element(field: Field, initial: str) -> Block:
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


def _searched(field: Field) -> Block:
    """Return a search input for a field with many choices; `matching_options` has its options."""
    options = _options(field)
    places = [int(place) for place in field.initial.split(",") if place]
    chosen = [options[place] for place in places]
    element: Block = {"min_query_length": 0, "placeholder": plain(say("form.edit_search"))}
    if field.kind is FieldKind.CHOICES:
        many: Block = {**element, "type": "multi_external_select"}
        return {**many, "initial_options": chosen} if chosen else many
    single: Block = {**element, "type": "external_select"}
    return {**single, "initial_option": chosen[0]} if chosen else single


def matching_options(field: Field, typed: str) -> list[Block]:
    """Return the options that match a typed text, prefix matches first.

    Args:
        field: A field with a search input.
        typed: Part of a choice, in any case; empty for all.

    Returns:
        At most as many options as Slack permits.
    """
    wanted = typed.strip().casefold()
    options = [
        (option["text"]["text"].casefold(), option)
        for option in _options(field)
        if wanted in option["text"]["text"].casefold()
    ]
    options.sort(key=lambda pair: not pair[0].startswith(wanted))
    nothing: list[Block] = []
    if field.nullable and field.kind is FieldKind.CHOICE and not wanted:
        nothing = [{"text": plain(say("form.edit_nothing_chosen")), "value": NOTHING}]
    return [*nothing, *(option for _, option in options)][:MOST_CHOICES]


def _one_of(field: Field) -> Block:
    if field.is_searched:
        return _searched(field)
    options = _options(field)
    if field.kind is FieldKind.BOOLEAN:
        initial = {"true": "0", "false": "1"}.get(field.initial, "")
        kind = "radio_buttons"
    else:
        initial = field.initial
        kind = "static_select"
    if field.nullable:
        options.append({"text": plain(say("form.edit_nothing_chosen")), "value": NOTHING})
    if field.nullable and field.value is None:
        initial = NOTHING
    chosen = [option for option in options if option["value"] == initial]
    element: Block = {"type": kind, "options": options}
    return {**element, "initial_option": chosen[0]} if chosen else element


def _several(field: Field) -> Block:
    if field.is_searched:
        return _searched(field)
    options = _options(field)
    wanted = field.initial.split(",")
    chosen = [option for option in options if option["value"] in wanted]
    few = len(options) <= MOST_CHECKS
    element: Block = {"type": "checkboxes" if few else "multi_static_select", "options": options}
    return {**element, "initial_options": chosen} if chosen else element


def _options(field: Field) -> list[Block]:
    words = {}
    if field.kind is FieldKind.BOOLEAN:
        words = {True: say("line.yes"), False: say("line.no")}
    return [
        {
            "text": plain(
                words[choice] if isinstance(choice, bool) and words else option_label(choice)
            ),
            "value": str(index),
        }
        for index, choice in enumerate(field.choices)
    ]
