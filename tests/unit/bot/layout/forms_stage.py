"""Draws edit forms and fills them in, as Slack would send them back."""

from __future__ import annotations

from typing import Any

from bot.layout.action_ids import ActionId
from bot.layout.forms.edit import drawn
from bot.layout.forms.fields import NotEditable
from bot.layout.forms.pages import form_of, read_edit_form
from bot.layout.forms.parse import EditResult

Values = dict[str, Any]
STATES = {
    "plain_text_input": ("value", "initial_value"),
    "number_input": ("value", "initial_value"),
    "datepicker": ("selected_date", "initial_date"),
    "datetimepicker": ("selected_date_time", "initial_date_time"),
    "static_select": ("selected_option", "initial_option"),
    "radio_buttons": ("selected_option", "initial_option"),
    "checkboxes": ("selected_options", "initial_options"),
    "external_select": ("selected_option", "initial_option"),
    "multi_external_select": ("selected_options", "initial_options"),
    "multi_static_select": ("selected_options", "initial_options"),
}


def submitted(blocks: list[dict[str, Any]], **changes: Any) -> Values:
    """What Slack sends when the form is submitted, with some inputs changed by block id."""
    values: Values = {}
    for block in blocks:
        if block["type"] != "input":
            continue
        element = block["element"]
        name, initial = STATES[element["type"]]
        empty: Any = [] if name == "selected_options" else None
        value = changes.get(block["block_id"], element.get(initial, empty))
        values[block["block_id"]] = {ActionId.VALUE: {"type": element["type"], name: value}}
    return values


def blocks_of(schema: dict[str, Any], current: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = drawn_form(schema, current)
    assert not isinstance(blocks, NotEditable), blocks
    return blocks


def drawn_form(
    schema: dict[str, Any], current: dict[str, Any]
) -> list[dict[str, Any]] | NotEditable:
    """The first page of a form, or why there is none."""
    form = form_of(schema, current)
    return form if isinstance(form, NotEditable) else drawn(form.shown)


def schema_with(node: dict[str, Any], *, required: bool = True, **root: Any) -> dict[str, Any]:
    """A schema with one argument, `x`."""
    needed = ["x"] if required else []
    return {"type": "object", "properties": {"x": node}, "required": needed, **root}


def edit(schema: dict[str, Any], current: dict[str, Any], value: Any) -> EditResult:
    """Change the argument `x` in its form and read it back."""
    blocks = blocks_of(schema, current)
    return read_edit_form(schema, current, submitted(blocks, argument_0=value))


def pick(index: int | str) -> dict[str, Any]:
    return {"value": str(index), "text": {"type": "plain_text", "text": "forged"}}


ENUM = {"enum": ["a", "b", "c"]}
NULL = {"type": "null"}
