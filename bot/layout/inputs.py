"""Inputs of modals, and the way to read what people typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, plain

Values = Mapping[str, Any]
"""`view.state.values`: block id → action id → state."""

Errors = dict[str, str]
"""For each block id one sentence, fit for `response_action: errors`."""

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
    """An input of several lines, or of one."""
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
    """Read a text input; empty when nothing was typed, or the input was not sent."""
    text = read_state(values, block_id).get("value")
    return text.strip()[:MOST_ANSWER] if isinstance(text, str) else ""


def read_state(values: Values, block_id: str) -> Mapping[str, Any]:
    """Read the state of the one element of an input; empty when there is none."""
    block = values.get(block_id)
    state = block.get(ActionId.VALUE) if isinstance(block, Mapping) else None
    return state if isinstance(state, Mapping) else {}
