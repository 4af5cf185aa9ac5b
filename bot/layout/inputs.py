"""Inputs of modals, and the parsing of typed values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, plain

Values = Mapping[str, Any]
"""`view.state.values`: block id → action id → state."""

Errors = dict[str, str]
"""A sentence for each block id, for `response_action: errors`."""

MOST_REASON = 1_000
"""Maximum length of a reason, in characters."""
MOST_ANSWER = 3_000
"""Maximum length of an answer to a question, in characters."""


def text_input(
    block_id: str,
    label: str,
    most: int,
    *,
    hint: str = "",
    optional: bool = True,
    is_long: bool = True,
) -> Block:
    """Return a text input of one or several lines."""
    block: Block = {
        "type": "input",
        "block_id": block_id,
        "label": plain(label),
        "optional": optional,
        "element": {
            "type": "plain_text_input",
            "action_id": str(ActionId.VALUE),
            "multiline": is_long,
            "max_length": most,
        },
    }
    return {**block, "hint": plain(hint)} if hint else block


def read_text(values: Values, block_id: str) -> str:
    """Return the typed text; empty if there is none or the input was not sent."""
    text = read_state(values, block_id).get("value")
    return text.strip()[:MOST_ANSWER] if isinstance(text, str) else ""


def read_state(values: Values, block_id: str) -> Mapping[str, Any]:
    """Return the state of an input's single element; empty if there is none."""
    block = values.get(block_id)
    state = block.get(ActionId.VALUE) if isinstance(block, Mapping) else None
    return state if isinstance(state, Mapping) else {}
