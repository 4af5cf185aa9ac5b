"""The frame of a modal, and its usual parts."""

from __future__ import annotations

from typing import Literal

from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Block, brief, context, line, literal, mrkdwn, rich, section
from bot.layout.inputs import (
    MOST_ANSWER,
    MOST_REASON,
    Errors,
    Values,
    read_state,
    read_text,
    text_input,
)
from bot.layout.text import clip
from bot.layout.titles import title_of
from bot.words import say
from storage.records import Approval

__all__ = [
    "MOST_ANSWER",
    "MOST_REASON",
    "Errors",
    "Level",
    "Values",
    "alert",
    "loading_modal",
    "modal",
    "named",
    "notice_modal",
    "read_state",
    "read_text",
    "text_input",
]

Level = Literal["info", "warning", "error"]
"""The weight of an alert; its words say it, too."""
_ALERT = 200
"""Characters of an alert; longer words are a paragraph."""


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
        "title": brief(title),
        "submit": brief(submit),
        "close": brief(say("form.cancel")),
        "blocks": blocks,
    }


def loading_modal() -> Block:
    """The form before it is filled: Slack opens one only for a moment after a click."""
    return notice_modal(say("form.countersign"), say("form.loading"))


def notice_modal(title: str, words: str, *, level: Level | None = None, note: str = "") -> Block:
    """Say something in our own words, in place of a form or while one is made.

    Args:
        title: At most 24 characters.
        words: Escaped mrkdwn, such as the text of a `UserFacingError`.
        level: The weight of the words; None for plain ones.
        note: Small print, escaped mrkdwn; empty for none.

    Returns:
        A modal with nothing to submit.
    """
    block = section(words) if level is None else alert(words, level)
    return {
        "type": "modal",
        "callback_id": str(ActionId.NOTICE_MODAL),
        "title": brief(title),
        "close": brief(say("form.close")),
        "blocks": [block, *([context(mrkdwn(note))] if note else [])],
    }


def alert(words: str, level: Level) -> Block:
    """Our own words that must not be overlooked; escaped mrkdwn."""
    if len(words) > _ALERT:
        return section(words)
    return {"type": "alert", "level": level, "text": mrkdwn(words)}


def named(approval: Approval, words: str = "") -> Block:
    """The title of a record, as the first block of its modal, with a sentence of ours below it."""
    title = line(literal(clip(title_of(approval), 300), "bold"))
    return rich(title, line(literal(words))) if words else rich(title)
