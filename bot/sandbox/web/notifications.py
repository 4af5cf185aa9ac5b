"""Each person's notifications, as a phone shows them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from bot.sandbox.workspace.records import Change, Payload, SlackMessage
from bot.sandbox.workspace.state import Workspace

KEPT: Final = 50
"""Most notifications that are remembered for a person."""

Why = Literal["direct message", "mention", "reply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notification:
    message: SlackMessage
    text: str
    why: Why


class Notifications:
    """Watches the workspace, and keeps what each person was notified of.

    Args:
        workspace: Where messages appear.
        tell: Called with a person and a new notification as JSON.
    """

    def __init__(self, workspace: Workspace, tell: Callable[[str, Payload], None]) -> None:
        self._workspace = workspace
        self._tell = tell
        self._of: defaultdict[str, deque[_Notification]] = defaultdict(lambda: deque(maxlen=KEPT))
        workspace.on_change.append(self._changed)

    def shown(self, user: str) -> list[Payload]:
        """The notifications of one person as JSON, the newest first."""
        found = self._of.get(user, ())
        return [_as_json(one) for one in reversed(found) if not one.message.is_deleted]

    def _changed(self, change: Change) -> None:
        message = change.message
        if change.kind != "posted":
            return
        for user in self._workspace.channels[message.channel].members:
            why = self._why(message, user)
            if why is not None:
                new = _Notification(message=message, text=message.text, why=why)
                self._of[user].append(new)
                self._tell(user, _as_json(new))

    def _why(self, message: SlackMessage, user: str) -> Why | None:
        if message.seen_by or user == message.user or self._workspace.people[user].is_bot:
            return None  # nobody is notified of what only they see
        if self._workspace.channels[message.channel].kind == "im":
            return "direct message"
        if self._workspace.calls(message, user):
            return "mention"
        return "reply" if self._follows(message, user) else None

    def _follows(self, message: SlackMessage, user: str) -> bool:
        """Whether somebody wrote in that thread before, or is called in its first message."""
        if message.thread_ts is None:
            return False
        root = self._workspace.thread_of(message)
        replies = self._workspace.replies(message.channel, root.ts)
        wrote = any(one.user == user for one in (root, *replies))
        return wrote or self._workspace.calls(root, user)


def _as_json(one: _Notification) -> Payload:
    message = one.message
    return {
        "channel": message.channel,
        "ts": message.ts,
        "thread_ts": message.thread_ts,
        "user": message.user,
        "bot": message.by_bot,
        "why": one.why,
        "text": one.text or message.text,
        "now": message.text,
    }
