"""Status texts of a working agent: thinking, looking up, running."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from agents import AgentEvent, MessageEvent
from agents.core.calls import ToolCall
from bot.approvals.model import Approval
from bot.ports.threads import Presence, Words
from bot.redaction.mask import mask_text
from bot.threads.model import Thread
from bot.words import say

_LONGEST = 80


class Unseen:
    """Shows nothing; see `bot.ports.threads.Presence`."""

    def show(self, thread: Thread, words: Words, *, message_ts: str = "", title: str = "") -> None:
        """Do nothing."""

    def refresh(self, thread_id: str) -> None:
        """Do nothing."""

    async def clear(self, thread: Thread, *, message_ts: str = "", is_left: bool = False) -> None:
        """Do nothing."""


UNSEEN: Presence = Unseen()


def title_of(text: str) -> str:
    """Return a one-line title from the turn's first message."""
    return _short(text)


def thinking() -> str:
    """Return the status text of a model call."""
    return say("message.thinking")


def going_on(decided: Sequence[Approval]) -> str:
    """Return the status text after decisions."""
    titles = [one.decision.title or one.title for one in decided if one.decision is not None]
    return say("message.running", title=_short(titles[0])) if titles else thinking()


def of_event(event: AgentEvent) -> Words | None:
    """Return the status text for an event; None without a change."""
    if not isinstance(event, MessageEvent) or not event.tool_calls:
        return None
    return partial(_checking, event.tool_calls)


def _checking(calls: Sequence[ToolCall]) -> str:
    names = dict.fromkeys(one.name.replace("_", " ").strip() for one in calls)
    return say("message.checking", what=_short(", ".join(names)))


def _short(text: str) -> str:
    line = " ".join(mask_text(text).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
