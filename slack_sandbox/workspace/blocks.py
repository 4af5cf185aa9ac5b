"""Search in blocks: ids, interactive elements, state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.records import Payload
from slack_sandbox.workspace.typed import typed_in_form

_PICKED = {
    "static_select": ("selected_option", "initial_option"),
    "external_select": ("selected_option", "initial_option"),
    "radio_buttons": ("selected_option", "initial_option"),
    "overflow": ("selected_option", ""),
    "users_select": ("selected_user", "initial_user"),
    "channels_select": ("selected_channel", "initial_channel"),
    "conversations_select": ("selected_conversation", "initial_conversation"),
    "checkboxes": ("selected_options", "initial_options"),
    "multi_static_select": ("selected_options", "initial_options"),
    "multi_external_select": ("selected_options", "initial_options"),
    "multi_users_select": ("selected_users", "initial_users"),
    "multi_channels_select": ("selected_channels", "initial_channels"),
    "multi_conversations_select": ("selected_conversations", "initial_conversations"),
    "datepicker": ("selected_date", "initial_date"),
    "timepicker": ("selected_time", "initial_time"),
    "datetimepicker": ("selected_date_time", "initial_date_time"),
    "plain_text_input": ("value", "initial_value"),
    "number_input": ("value", "initial_value"),
    "email_text_input": ("value", "initial_value"),
    "url_text_input": ("value", "initial_value"),
}
"""Element type → the key of its value in a payload, and that of its first value."""
_WITHOUT_STATE = {"overflow"}


def named_blocks(blocks: list[Payload] | None, new_id: Callable[[str], str]) -> list[Payload]:
    """A copy of blocks in which each block and element has an id, as Slack gives them."""
    copy = deepcopy(blocks or [])
    for block in copy:
        if not block.get("block_id"):
            block["block_id"] = new_id("b")
        for element in elements_of(block):
            if not element.get("action_id"):
                element["action_id"] = new_id("a")
    return copy


def elements_of(block: Payload) -> list[Payload]:
    """The interactive elements of a block."""
    elements = [block.get("element"), block.get("accessory")]
    if block.get("type") in {"actions", "context_actions"}:
        elements.extend(block.get("elements") or [])
    if block.get("type") == "card":
        elements.extend(block.get("actions") or [])
    return [
        element
        for element in elements
        if isinstance(element, dict) and element.get("type") != "image"
    ]


def find_element(
    blocks: list[Payload] | None, action_id: str | None, block_id: str | None = None
) -> tuple[str, Payload]:
    """The block id and element of an action.

    Raises:
        RefusedError: There is no such element in the blocks.
    """
    for block in blocks or []:
        if block_id not in (None, block["block_id"]):
            continue
        for element in elements_of(block):
            if action_id in (None, element["action_id"]):
                return block["block_id"], element
    raise RefusedError("action_not_found")


def value_key(element: Payload) -> str | None:
    """Under which key an element's value stands; None if it has none, as a button."""
    return _PICKED.get(element["type"], (None, ""))[0]


def state_of(blocks: list[Payload] | None, given: Payload) -> Payload:
    """The `state.values` of blocks: first values, with what a person filled in on top.

    Args:
        blocks: Blocks with ids.
        given: block_id → action_id → value, in the shape of `state.values`.
    """
    state: Payload = {}
    for block_id, element in _with_state(blocks):
        key, initial = _PICKED[element["type"]]
        filled = (given.get(block_id) or {}).get(element["action_id"])
        raw = filled.get(key) if isinstance(filled, dict) else element.get(initial)
        value = _as_sent(element, key, raw)
        state.setdefault(block_id, {})[element["action_id"]] = {"type": element["type"], key: value}
    return state


def chosen(element: Payload, wanted: object) -> Any:
    """The value of an element as Slack sends it, from what a person chose.

    Args:
        element: The element that was used.
        wanted: The value, an option, or just an option's `value`.

    Raises:
        RefusedError: That is not one of the options.
    """
    key = value_key(element)
    if key == "selected_option":
        return _option(element, wanted)
    if key == "selected_options":
        return [_option(element, choice) for choice in (wanted if isinstance(wanted, list) else [])]
    return _as_sent(element, key or "", wanted)


def input_block(blocks: list[Payload] | None, block_id: str) -> bool:
    """Whether there is an input block with that id."""
    return any(block["block_id"] == block_id and block["type"] == "input" for block in blocks or [])


def missing_inputs(blocks: list[Payload], state: Payload) -> list[str]:
    """The ids of input blocks that must be filled in and are not."""
    return [
        block["block_id"]
        for block in blocks
        if block["type"] == "input" and not block.get("optional") and not _is_filled(block, state)
    ]


def _is_filled(block: Payload, state: Payload) -> bool:
    key = value_key(block["element"])
    if key is None:
        return True
    value = state.get(block["block_id"], {}).get(block["element"]["action_id"], {}).get(key)
    return value not in (None, [])


def _with_state(blocks: list[Payload] | None) -> Iterator[tuple[str, Payload]]:
    for block in blocks or []:
        for element in elements_of(block):
            if element["type"] in _PICKED and element["type"] not in _WITHOUT_STATE:
                yield block["block_id"], element


def _as_sent(element: Payload, key: str, value: Any) -> Any:
    """An empty text is null; nothing chosen is null or an empty list; emoji become names."""
    if key.endswith("s") and value is None:
        return []
    if element["type"] == "plain_text_input" and isinstance(value, str) and value:
        return typed_in_form(value)
    return None if value == "" else value


def _option(element: Payload, wanted: object) -> Payload | None:
    if wanted is None:
        return None
    value = wanted.get("value") if isinstance(wanted, dict) else wanted
    groups = element.get("option_groups") or []
    options = [*(element.get("options") or []), *(o for group in groups for o in group["options"])]
    if not options and element["type"].endswith("external_select") and isinstance(wanted, dict):
        return dict(wanted)
    for option in options:
        if option.get("value") == value:
            return dict(option)
    raise RefusedError("invalid_option")
