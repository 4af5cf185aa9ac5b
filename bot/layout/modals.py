"""The frame of a modal, and its usual parts."""

from __future__ import annotations

from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Block, line, literal, plain, rich, section
from bot.layout.inputs import (
    MOST_ANSWER,
    MOST_REASON,
    Values,
    read_state,
    read_text,
    text_input,
)
from bot.layout.parts import title_of
from bot.layout.text import clip
from storage.records import Approval

__all__ = [
    "MOST_ANSWER",
    "MOST_REASON",
    "Errors",
    "Values",
    "modal",
    "named",
    "notice_modal",
    "read_state",
    "read_text",
    "text_input",
]

Errors = dict[str, str]
"""For each block id one sentence, fit for `response_action: errors`."""


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
