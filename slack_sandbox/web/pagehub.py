"""The page's content with each person's notifications, and updates for open pages."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final, Literal

from aiohttp import web

from slack_sandbox.workspace.changes import BackgroundTasks
from slack_sandbox.workspace.guide import Guide
from slack_sandbox.workspace.payloads import reactions_payload, view_payload
from slack_sandbox.workspace.records import (
    Change,
    Payload,
    SlackChannel,
    SlackMessage,
    SlackUser,
    View,
)
from slack_sandbox.workspace.state import AgentSession, Key, Workspace
from slack_sandbox.workspace.surfaces import Surfaces


@dataclass(eq=False, frozen=True, slots=True, kw_only=True)
class OpenPage:
    """A window in which the page is open."""

    window: str
    """Its name; another one after each reload."""
    socket: web.WebSocketResponse


class PageHub:
    """Draws the workspace as one person sees it, and sends changes to their open pages."""

    def __init__(
        self,
        workspace: Workspace,
        tasks: BackgroundTasks,
        surfaces: Surfaces,
        guide: Guide | None = None,
    ) -> None:
        self.surfaces = surfaces
        self._guide = None if guide is None else asdict(guide)
        self._workspace = workspace
        self._tasks = tasks
        self._pages: dict[str, list[OpenPage]] = {}
        self._looking_at: dict[str, str] = {}
        self._read_until: dict[tuple[str, str], str] = {}
        self.is_connected: Callable[[], bool] = lambda: False
        self.troubles: Callable[[], int] = lambda: 0
        self.ahead: Callable[[], float | None] = lambda: None
        self.notifications = Notifications(workspace, self._notify)
        workspace.on_change.append(self._changed)
        workspace.on_reaction.append(self._reacted)
        workspace.on_status.append(self._status)
        workspace.agent_view.on_session.append(self._session)
        workspace.agent_view.on_prompts.append(self._prompts)
        workspace.on_connection.append(self.refresh)
        workspace.views.on_view.append(self._viewed)

    # ---- what one person sees ---------------------------------------------------------------

    def state(self, me: SlackUser) -> Payload:
        """The workspace as `me` sees it, without messages."""
        workspace = self._workspace
        rooms = [room for room in workspace.channels.values() if _may_see(room, me.id)]
        return {
            "ok": True,
            "team": {"id": workspace.team_id, "name": workspace.team_name},
            "me": me.id,
            "people": [_person(person) for person in workspace.people.values()],
            "channels": [self._channel(channel, me.id) for channel in rooms],
            "groups": [
                {
                    "id": group.id,
                    "handle": group.handle,
                    "name": group.name,
                    "members": group.members,
                }
                for group in workspace.groups.values()
            ],
            "bot": {
                "user_id": workspace.bot_user,
                "name": workspace.bot_name,
                "connected": self.is_connected(),
            },
            "examples": [list(example) for example in workspace.examples],
            "surfaces": asdict(self.surfaces),
            "guide": self._guide,
            "troubles": self.troubles(),
            "ahead": self.ahead(),
        }

    def messages(self, me: str, channel_id: str) -> Payload:
        """The messages of a channel; the person has read them then."""
        channel = self._workspace.has_channel(me, channel_id)
        self._looking_at[me] = channel.id
        self.read(me, channel.id)
        visible = self._workspace.visible(channel.id, me)
        return {"ok": True, "messages": [self.message(message) for message in visible]}

    def message(self, message: SlackMessage) -> Payload:
        """One message as the page draws it."""
        replies = self._workspace.replies(message.channel, message.ts)
        return {
            "ts": message.ts,
            "thread_ts": message.thread_ts or (message.ts if replies else None),
            "user": message.user,
            "bot": message.by_bot,
            "text": message.text,
            "typed": message.typed,
            "blocks": message.blocks,
            "ephemeral": message.seen_by is not None,
            "edited": message.edited is not None,
            "streaming": message.is_streaming,
            "broadcast": message.broadcast,
            "reply_count": len(replies),
            "latest_reply": replies[-1].ts if replies else None,
            "deleted": message.is_deleted,
            "reactions": reactions_payload(message),
        }

    def read(self, user: str, channel_id: str) -> None:
        """Remember that a person has seen everything in a channel."""
        visible = self._workspace.visible(channel_id, user)
        if visible:
            self._read_until[user, channel_id] = visible[-1].ts

    # ---- open pages -------------------------------------------------------------------------

    def enter(self, user: str, page: OpenPage) -> None:
        """A page was opened, or is back; it gets its open forms and that person's Home tab."""
        self._pages.setdefault(user, []).append(page)
        views = self._workspace.views
        mine = [
            open_view for open_view in views.stack(user) if open_view.window in ("", page.window)
        ]
        for view in [*mine, *filter(None, [views.home(user)])]:
            self._send(page, {"type": "view", "view": view_payload(self._workspace, view)})
        for (channel, thread_ts), text in self._workspace.statuses.items():
            if text and _may_see(self._workspace.channels[channel], user):
                self.tell(user, _status_event(channel, thread_ts, text))
        self._show_agents(user)

    def _show_agents(self, user: str) -> None:
        """Show what Slack's surface for agents has for a person."""
        shown, channels = self._workspace.agent_view, self._workspace.channels
        for key, session in shown.sessions.items():
            if _may_see(channels[key[0]], user):
                self.tell(user, _session_event(key, session))
        for channel, prompts in shown.prompts.items():
            if user in channels[channel].members:
                self.tell(user, _prompts_event(channel, prompts))

    def leave(self, user: str, page: OpenPage) -> None:
        """A page was closed."""
        self._pages[user].remove(page)
        if not self._pages[user]:
            self._looking_at.pop(user, None)

    def tell(self, user: str, event: Payload, window: str = "") -> None:
        """Send an event to all open pages of a person, or to one window."""
        for page in self._pages.get(user, []):
            if window in ("", page.window):
                self._send(page, event)

    def refresh(self) -> None:
        """Ask all pages to load the state again."""
        for user in list(self._pages):
            self.tell(user, {"type": "state"})

    async def close(self) -> None:
        """Close all pages' connections."""
        for pages in list(self._pages.values()):
            for page in list(pages):
                await page.socket.close()

    # ---- news -------------------------------------------------------------------------------

    def _changed(self, change: Change) -> None:
        message = change.message
        for user in self._audience(message):
            if self._looking_at.get(user) == message.channel:
                self.read(user, message.channel)
            self.tell(user, self._event(change))

    def _event(self, change: Change) -> Payload:
        message = change.message
        if change.kind == "deleted":
            return {"type": "message_deleted", "channel": message.channel, "ts": message.ts}
        kind = "message" if change.kind == "posted" else "message_changed"
        shown = self.message(message)
        return {"type": kind, "channel": message.channel, "message": shown}

    def _audience(self, message: SlackMessage) -> list[str]:
        if message.seen_by is not None:
            return [message.seen_by]
        return self._workspace.channels[message.channel].members

    def _reacted(self, message: SlackMessage, user: str, name: str, added: bool) -> None:  # noqa: ARG002, FBT001 - called with what the workspace tells
        self._changed(Change(kind="changed", message=message))

    def _notify(self, user: str, shown: Payload) -> None:
        self.tell(user, {"type": "notification", "notification": shown})

    def _send(self, page: OpenPage, event: Payload) -> None:
        self._tasks.start(_send(page.socket, event))

    def _status(self, channel_id: str, thread_ts: str, text: str) -> None:
        for user in self._workspace.channels[channel_id].members:
            self.tell(user, _status_event(channel_id, thread_ts, text))

    def _session(self, key: Key, session: AgentSession) -> None:
        for user in self._workspace.channels[key[0]].members:
            self.tell(user, _session_event(key, session))

    def _prompts(self, channel_id: str, prompts: Payload) -> None:
        for user in self._workspace.channels[channel_id].members:
            self.tell(user, _prompts_event(channel_id, prompts))

    def _viewed(self, kind: Literal["view", "view_closed"], view: View, everything: bool) -> None:  # noqa: FBT001 - called with what the store tells
        event: Payload = {"type": kind, "view_id": view.id, "all": everything}
        if kind == "view":
            event = {"type": "view", "view": view_payload(self._workspace, view)}
        self.tell(view.user, event, view.window)

    def _channel(self, channel: SlackChannel, me: str) -> Payload:
        shown: Payload = {
            "id": channel.id,
            "name": channel.name,
            "kind": channel.kind,
            "member": me in channel.members,
            "members": channel.members,
            "topic": channel.topic,
            "section": channel.section,
            "has_bot": self._workspace.bot_user in channel.members,
            "unread": self._unread(channel, me),
            "archived": channel.is_archived,
        }
        if channel.kind == "im":
            shown["with"] = next(user for user in channel.members if user != me)
        return shown

    def _unread(self, channel: SlackChannel, me: str) -> int:
        if me not in channel.members:
            return 0
        since = self._read_until.get((me, channel.id), "")
        visible = self._workspace.visible(channel.id, me)
        return sum(1 for message in visible if message.ts > since and message.user != me)


def _may_see(channel: SlackChannel, user: str) -> bool:
    return user in channel.members or (channel.kind == "channel" and not channel.is_private)


def _person(person: SlackUser) -> Payload:
    initials = "".join(word[0] for word in person.real_name.split()[:2]).upper()
    return {
        "id": person.id,
        "name": person.name,
        "real_name": person.real_name,
        "title": person.title,
        "guest": person.is_guest,
        "gone": person.deleted,
        "stranger": person.is_stranger,
        "bot": person.is_bot,
        "color": f"#{person.color}",
        "initials": initials,
        "tz": person.tz,
    }


def _status_event(channel: str, thread_ts: str, text: str) -> Payload:
    return {"type": "status", "channel": channel, "thread_ts": thread_ts, "text": text}


def _session_event(key: Key, session: AgentSession) -> Payload:
    channel, thread_ts = key
    return {"type": "session", "channel": channel, "thread_ts": thread_ts, **asdict(session)}


def _prompts_event(channel: str, prompts: Payload) -> Payload:
    return {"type": "prompts", "channel": channel, **prompts}


async def _send(socket: web.WebSocketResponse, event: Payload) -> None:
    try:
        await socket.send_json(event)
    except ConnectionError:
        return  # The page has gone; its handler forgets it.


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
        notifications = self._of.get(user, ())
        return [
            _as_json(notification)
            for notification in reversed(notifications)
            if not notification.message.is_deleted
        ]

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
        wrote = any(reply.user == user for reply in (root, *replies))
        return wrote or self._workspace.calls(root, user)


def _as_json(notification: _Notification) -> Payload:
    message = notification.message
    return {
        "channel": message.channel,
        "ts": message.ts,
        "thread_ts": message.thread_ts,
        "user": message.user,
        "bot": message.by_bot,
        "why": notification.why,
        "text": notification.text or message.text,
        "now": message.text,
    }
