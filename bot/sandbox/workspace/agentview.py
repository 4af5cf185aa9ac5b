"""The agent view: sessions with a title, and suggested prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from bot.sandbox.workspace.changes import Changes
from bot.sandbox.workspace.records import Payload

SessionStatus = Literal["active", "processing", "suspended", "closed"]
STATUSES: tuple[SessionStatus, ...] = ("active", "processing", "suspended", "closed")
Key = tuple[str, str]
"""A channel, and the root of a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSession:
    """A thread in which the app's agent works, or has worked."""

    status: SessionStatus
    title: str = ""


@dataclass(eq=False, slots=True)
class AgentView:
    """The sessions and prompts of the workspace."""

    changes: Changes
    sessions: dict[Key, AgentSession] = field(default_factory=dict)
    prompts: dict[str, Payload] = field(default_factory=dict)
    """By direct message: `title` and `prompts`."""
    on_session: list[Callable[[Key, AgentSession], None]] = field(default_factory=list)
    on_prompts: list[Callable[[str, Payload], None]] = field(default_factory=list)

    def set_status(self, key: Key, status: SessionStatus, title: str) -> AgentSession:
        """Change a session's status; the title counts for a new one."""
        before = self.sessions.get(key)
        new = AgentSession(status=status, title=title)
        after = new if before is None else replace(before, status=status)
        self.sessions[key] = after
        for told in self.on_session:
            told(key, after)
        self.changes.tell()
        return after

    def suggest(self, channel_id: str, prompts: Payload) -> None:
        """Offer prompts in a direct message, in place of those before."""
        self.prompts[channel_id] = prompts
        for told in self.on_prompts:
            told(channel_id, prompts)
        self.changes.tell()
