"""The frame of a modal, and its common parts."""

from __future__ import annotations

from typing import Literal

from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import (
    MOST_ANSWER,
    MOST_REASON,
    Block,
    Errors,
    Values,
    brief,
    context,
    line,
    literal,
    mrkdwn,
    read_state,
    read_text,
    rich,
    section,
    text_input,
)
from bot.layout.sentences import title_of
from bot.layout.short_ids import short_id
from bot.layout.text import clip
from bot.records.approval import Approval
from bot.words import say

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
"""The severity of an alert. The words must state it, too."""
_ALERT = 200
"""The maximum number of characters of an alert; longer words become a paragraph."""


def modal(approval: Approval, callback: str, words: tuple[str, str], blocks: list[Block]) -> Block:
    """Return a modal about a record.

    Args:
        approval: The record.
        callback: Its callback id: `countersign:` and a name.
        words: Its title and the label of its submit button, at most 24 characters each.
        blocks: Its content.
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
    """Return a placeholder modal, since Slack opens modals only shortly after a click."""
    return notice_modal(say("form.countersign"), say("form.loading"))


def notice_modal(title: str, words: str, *, level: Level | None = None, note: str = "") -> Block:
    """Return a modal with a message in our own words, without a submit button.

    Args:
        title: At most 24 characters.
        words: Escaped mrkdwn, such as the text of a `UserFacingError`.
        level: The severity; None for a plain message.
        note: Small print, escaped mrkdwn; may be empty.
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
    """Return an alert of our own words; escaped mrkdwn."""
    if len(words) > _ALERT:
        return section(words)
    return {"type": "alert", "level": level, "text": mrkdwn(words)}


def named(approval: Approval, words: str = "", *, is_withheld: bool = False) -> Block:
    """Return the first block of a record's modal: its title, with a sentence below.

    Who may not see the record reads its id instead of the title.
    """
    name = short_id(approval.approval_id) if is_withheld else title_of(approval)
    title = line(literal(clip(name, 300), "bold"))
    return rich(title, line(literal(words))) if words else rich(title)
