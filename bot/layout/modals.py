"""The frame of a modal, its usual parts, and the way to read what people typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Block, line, literal, plain, rich, section
from bot.layout.parts import title_of
from bot.layout.text import clip
from storage.records import Approval

Values = Mapping[str, Any]
"""`view.state.values`: block id → action id → state."""

Errors = dict[str, str]
"""For each block id one sentence, fit for `response_action: errors`."""

MOST_REASON = 1_000
MOST_ANSWER = 3_000


def modal(approval: Approval, callback: str, words: tuple[str, str], blocks: list[Block]) -> Block:
    """Draw a modal about a record.

    Args:
        approval: The record.
        callback: Its callback id: `countersign:` and a name.
        words: Its title and the label of what submits it, at most 24 characters each.
        blocks: What is in it.
    """
    title, submit = words
    return {
        "type": "modal",
        "callback_id": str(callback),
        "private_metadata": encode(approval.approval_id, approval.digest),
        "title": plain(title),
        "submit": plain(submit),
        "close": plain("Cancel"),
        "blocks": blocks,
    }


def notice_modal(title: str, words: str) -> Block:
    """Say something in our own words, in place of a form or while one is made.

    Args:
        title: At most 24 characters.
        words: Escaped mrkdwn, such as the text of a `UserFacingError`.

    Returns:
        A modal with nothing to submit.
    """
    return {
        "type": "modal",
        "callback_id": str(ActionId.NOTICE_MODAL),
        "title": plain(title),
        "close": plain("Close"),
        "blocks": [section(words)],
    }


def named(approval: Approval) -> Block:
    """The title of a record, as the first block of its modal."""
    return rich(line(literal(clip(title_of(approval), 300), "bold")))


def text_input(
    block_id: str, label: str, most: int, *, hint: str = "", optional: bool = True
) -> Block:
    """An input of several lines."""
    block: Block = {
        "type": "input",
        "block_id": block_id,
        "label": plain(label),
        "optional": optional,
        "element": {
            "type": "plain_text_input",
            "action_id": str(ActionId.VALUE),
            "multiline": True,
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
