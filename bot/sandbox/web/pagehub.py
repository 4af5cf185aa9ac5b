"""The content of the page, and news for open pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from aiohttp import web

from bot.sandbox.workspace.payloads import view_payload
from bot.sandbox.workspace.records import (
    Change,
    Payload,
    SlackChannel,
    SlackMessage,
    SlackUser,
    View,
)
from bot.sandbox.workspace.state import Workspace
from bot.sandbox.workspace.tasks import BackgroundTasks


class PageHub:
    """Draws the workspace as one person sees it, and sends changes to their open pages."""

    def __init__(self, workspace: Workspace, tasks: BackgroundTasks) -> None:
        self._workspace = workspace
        self._tasks = tasks
        self._sockets: dict[str, list[web.WebSocketResponse]] = {}
        self._looking_at: dict[str, str] = {}
        self._read_until: dict[tuple[str, str], str] = {}
        self.is_connected: Callable[[], bool] = lambda: False
        self.troubles: Callable[[], int] = lambda: 0
        self.ahead: Callable[[], float | None] = lambda: None
        workspace.on_change.append(self._changed)
        workspace.on_status.append(self._status)
        workspace.on_connection.append(self.refresh)
        workspace.views.on_view.append(self._viewed)

    # ---- what one person sees ---------------------------------------------------------------

    def state(self, me: SlackUser) -> Payload:
        """The workspace as `me` sees it, without messages."""
        workspace = self._workspace
        rooms = [one for one in workspace.channels.values() if _may_see(one, me.id)]
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
            "troubles": self.troubles(),
            "ahead": self.ahead(),
        }

    def messages(self, me: str, channel_id: str) -> Payload:
        """The messages of a channel; the person has read them then."""
        channel = self._workspace.has_channel(me, channel_id)
        self._looking_at[me] = channel.id
        self.read(me, channel.id)
        visible = self._workspace.visible(channel.id, me)
        return {"ok": True, "messages": [self.message(message, me) for message in visible]}

    def message(self, message: SlackMessage, me: str) -> Payload:
        """One message as the page draws it."""
        replies = self._workspace.replies(message.channel, message.ts)
        return {
            "ts": message.ts,
            "thread_ts": message.thread_ts or (message.ts if replies else None),
            "user": message.user,
            "bot": message.by_bot,
            "text": message.text,
            "blocks": message.blocks,
            "ephemeral": message.seen_by is not None,
            "edited": message.edited is not None,
            "streaming": message.is_streaming,
            "broadcast": message.broadcast,
            "reply_count": len(replies),
            "latest_reply": replies[-1].ts if replies else None,
            "deleted": message.is_deleted,
            "mentions_me": self._workspace.mentions(message.text, me),
        }

    def read(self, user: str, channel_id: str) -> None:
        """Remember that a person has seen everything in a channel."""
        visible = self._workspace.visible(channel_id, user)
        if visible:
            self._read_until[user, channel_id] = visible[-1].ts

    # ---- open pages -------------------------------------------------------------------------

    def enter(self, user: str, socket: web.WebSocketResponse) -> None:
        """A page was opened; it gets what is open for that person."""
        self._sockets.setdefault(user, []).append(socket)
        for view in self._workspace.views.stack(user):
            self.tell(user, {"type": "view", "view": view_payload(self._workspace, view)})
        for (channel, thread_ts), text in self._workspace.statuses.items():
            if text and _may_see(self._workspace.channels[channel], user):
                self.tell(user, _status_event(channel, thread_ts, text))

    def leave(self, user: str, socket: web.WebSocketResponse) -> None:
        """A page was closed."""
        self._sockets[user].remove(socket)
        if not self._sockets[user]:
            self._looking_at.pop(user, None)

    def tell(self, user: str, event: Payload) -> None:
        """Send an event to all open pages of a person."""
        for socket in self._sockets.get(user, []):
            self._tasks.start(_send(socket, event))

    def refresh(self) -> None:
        """Ask all pages to load the state again."""
        for user in list(self._sockets):
            self.tell(user, {"type": "state"})

    async def close(self) -> None:
        """Close all pages' connections."""
        for sockets in list(self._sockets.values()):
            for socket in list(sockets):
                await socket.close()

    # ---- news -------------------------------------------------------------------------------

    def _changed(self, change: Change) -> None:
        message = change.message
        for user in self._audience(message):
            if self._looking_at.get(user) == message.channel:
                self.read(user, message.channel)
            self.tell(user, self._event(change, user))

    def _event(self, change: Change, user: str) -> Payload:
        message = change.message
        if change.kind == "deleted":
            return {"type": "message_deleted", "channel": message.channel, "ts": message.ts}
        kind = "message" if change.kind == "posted" else "message_changed"
        shown = self.message(message, user)
        return {"type": kind, "channel": message.channel, "message": shown}

    def _audience(self, message: SlackMessage) -> list[str]:
        if message.seen_by is not None:
            return [message.seen_by]
        return self._workspace.channels[message.channel].members

    def _status(self, channel_id: str, thread_ts: str, text: str) -> None:
        for user in self._workspace.channels[channel_id].members:
            self.tell(user, _status_event(channel_id, thread_ts, text))

    def _viewed(self, kind: Literal["view", "view_closed"], view: View, everything: bool) -> None:  # noqa: FBT001 - called with what the store tells
        event: Payload = {"type": kind, "view_id": view.id, "all": everything}
        if kind == "view":
            event = {"type": "view", "view": view_payload(self._workspace, view)}
        self.tell(view.user, event)

    def _channel(self, channel: SlackChannel, me: str) -> Payload:
        shown: Payload = {
            "id": channel.id,
            "name": channel.name,
            "kind": channel.kind,
            "member": me in channel.members,
            "members": channel.members,
            "topic": channel.topic,
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
        return sum(1 for one in visible if one.ts > since and one.user != me)


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
    }


def _status_event(channel: str, thread_ts: str, text: str) -> Payload:
    return {"type": "status", "channel": channel, "thread_ts": thread_ts, "text": text}


async def _send(socket: web.WebSocketResponse, event: Payload) -> None:
    try:
        await socket.send_json(event)
    except ConnectionError:
        return  # The page has gone; its handler forgets it.
