"""Short forms of the input of a modal, for tests."""

from __future__ import annotations

from typing import Any

from bot.sandbox.errors import RefusedError
from bot.sandbox.workspace.blocks import chosen, elements_of, value_key
from bot.sandbox.workspace.records import Payload


def field_values(blocks: list[Payload], given: Payload) -> Payload:
    """Turn block_id → text or option value into the shape of `state.values`.

    Raises:
        RefusedError: There is no such field; `no_such_field`.
    """
    return {block_id: _filled(blocks, block_id, value) for block_id, value in given.items()}


def _filled(blocks: list[Payload], block_id: str, value: Any) -> Payload:
    element = _field(blocks, block_id)
    action_id, key = element["action_id"], value_key(element)
    if isinstance(value, dict) and action_id in value:
        value = value[action_id]
    if isinstance(value, dict) and key in value:
        value = value[key]
    return {action_id: {"type": element["type"], key: chosen(element, value)}}


def _field(blocks: list[Payload], block_id: str) -> Payload:
    for block in blocks:
        for element in elements_of(block) if block["block_id"] == block_id else []:
            if value_key(element):
                return element
    raise RefusedError("no_such_field", [block_id])
