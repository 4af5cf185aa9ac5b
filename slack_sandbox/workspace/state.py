"""The state of the workspace: its people, its messages, and the agent view's sessions."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.blocks import named_blocks
from slack_sandbox.workspace.changes import Changes
from slack_sandbox.workspace.ids import Ids, Triggers
from slack_sandbox.workspace.people import APP, BOT, BOT_USER, TEAM, Cast, direct_message
from slack_sandbox.workspace.records import (
    Change,
    Features,
    Payload,
    SlackChannel,
    SlackMessage,
    SlackUser,
    UserGroup,
    called_in,
)
from slack_sandbox.workspace.typed import Typed, TypedNames, typed
from slack_sandbox.workspace.views import ViewStore

_EVERYBODY = {"channel", "here", "everyone"}


class Workspace:
    """Everything that the sandbox remembers; it lives in memory only."""

    team_id = TEAM
    team_name = "Acme"
    team_domain = "acme-sandbox"
    app_id = APP
    bot_id = BOT
    bot_user = BOT_USER

    def __init__(
        self, clock: Callable[[], float], *, cast: Cast, scopes: set[str], token: str
    ) -> None:
        self.clock = clock
        self.ids = Ids(clock)
        self.changes = Changes()
        self.triggers = Triggers(clock, self.ids.secret)
        self.views = ViewStore(self.ids, self.changes)
        self.agent_view = AgentView(self.changes)
        self.features = Features()
        self.scopes = scopes
        self.verification_token = token
        self.url = ""
        self.people: dict[str, SlackUser] = {person.id: person for person in cast.people}
        self.channels: dict[str, SlackChannel] = {channel.id: channel for channel in cast.channels}
        self.groups: dict[str, UserGroup] = {group.id: group for group in cast.groups}
        self.examples = cast.examples
        """Examples of what can be written to the app, each with a note; none without the demo."""
        self.statuses: dict[tuple[str, str], str] = {}
        self.on_change: list[Callable[[Change], None]] = []
        self.on_reaction: list[Callable[[SlackMessage, str, str, bool], None]] = []
        """Called with the message, the person, the emoji's name, and whether it was added."""
        self.on_connection: list[Callable[[], None]] = []
        self.on_status: list[Callable[[str, str, str], None]] = []
        self._messages: dict[str, dict[str, SlackMessage]] = {}

    @property
    def bot_name(self) -> str:
        """The name that people type to mention the bot."""
        return self.people[self.bot_user].name

    # ---- people and channels ----------------------------------------------------------------

    def person(self, user_id: object) -> SlackUser:
        """The person with that id.

        Raises:
            RefusedError: There is none.
        """
        person = self.people.get(str(user_id))
        if person is None:
            raise RefusedError("user_not_found")
        return person

    def direct_message(self, user_id: object) -> SlackChannel:
        """The DM of a person with the bot; made if there is none yet."""
        person = self.person(user_id)
        for channel in self.channels.values():
            if channel.kind == "im" and person.id in channel.members:
                return channel
        channel = direct_message(self.ids.new("D"), person.id, self.bot_user)
        self.channels[channel.id] = channel
        return channel

    def has_channel(self, user_id: str, channel_id: object) -> SlackChannel:
        """A channel as its member `user_id` reaches it.

        Raises:
            RefusedError: There is no such channel, or the person is not in it.
        """
        channel = self.channels.get(str(channel_id))
        if channel is None:
            raise RefusedError("channel_not_found")
        if user_id not in channel.members:
            hidden = channel.is_private or channel.kind == "im"
            raise RefusedError("channel_not_found" if hidden else "not_in_channel")
        return channel

    # ---- messages ---------------------------------------------------------------------------

    def post(self, channel: SlackChannel, user: str, text: str, **more: Any) -> SlackMessage:
        """Add a message; `more` are further fields of the record."""
        message = SlackMessage(ts=self.ids.ts(), channel=channel.id, user=user, text=text, **more)
        message.blocks = self._named(message.blocks)
        self._messages.setdefault(channel.id, {})[message.ts] = message
        if message.by_bot and message.thread_ts:
            self.set_status(channel.id, message.thread_ts, "")
        self._tell(Change(kind="posted", message=message))
        return message

    def change(self, message: SlackMessage, **fields: Any) -> None:
        """Replace fields of a message."""
        previous = copy(message)
        for name, value in fields.items():
            setattr(message, name, value)
        if "blocks" in fields:
            message.blocks = self._named(message.blocks)
        self._tell(Change(kind="changed", message=message, previous=previous))

    def react(self, message: SlackMessage, user: str, name: str, *, on: bool) -> None:
        """Add somebody's reaction to a message, or take it back.

        Raises:
            RefusedError: It is there already, or was not there.
        """
        users = message.reactions.get(name, [])
        if (user in users) == on:
            raise RefusedError("already_reacted" if on else "no_reaction")
        left = [*users, user] if on else [other for other in users if other != user]
        message.reactions = {**message.reactions, name: left}
        if not left:
            del message.reactions[name]
        for listener in self.on_reaction:
            listener(message, user, name, on)
        self.changes.tell()

    def remove(self, message: SlackMessage) -> None:
        """Delete a message. Its replies stay, below a tombstone in its place."""
        previous = copy(message)
        message.is_deleted = True
        message.text, message.blocks = "This message was deleted.", None
        message.metadata = None
        self._tell(Change(kind="deleted", message=message, previous=previous))

    def message(self, channel_id: str, ts: object) -> SlackMessage:
        """The message, also an ephemeral one.

        Raises:
            RefusedError: There is none, or not any more.
        """
        message = self._messages.get(channel_id, {}).get(str(ts))
        if message is None or message.is_deleted:
            raise RefusedError("message_not_found")
        return message

    def public(self, channel_id: str) -> list[SlackMessage]:
        """Return the messages that all see in a channel, oldest first; deleted roots included."""
        return [
            message
            for message in self._messages.get(channel_id, {}).values()
            if message.seen_by is None
            and (not message.is_deleted or self.replies(channel_id, message.ts))
        ]

    def visible(self, channel_id: str, user: str) -> list[SlackMessage]:
        """Return the messages that one person sees in a channel, oldest first."""
        private = self.ephemerals(user, channel_id)
        return sorted([*self.public(channel_id), *private], key=lambda message: message.ts)

    def ephemerals(self, user: str, channel_id: str | None = None) -> list[SlackMessage]:
        """The ephemeral messages of one person, oldest first."""
        return [
            message
            for known, messages in self._messages.items()
            for message in messages.values()
            if message.seen_by == user and not message.is_deleted and channel_id in (None, known)
        ]

    def replies(self, channel_id: str, root_ts: str) -> list[SlackMessage]:
        """The replies below a message, oldest first; ephemeral ones are not among them."""
        return [
            message
            for message in self._messages.get(channel_id, {}).values()
            if message.thread_ts == root_ts and not message.is_deleted and message.seen_by is None
        ]

    def thread_of(self, message: SlackMessage) -> SlackMessage:
        """The root of the thread that a message is in."""
        return self._messages[message.channel][message.root_ts]

    def reply_root(self, channel: SlackChannel, thread_ts: object) -> str | None:
        """Return the thread of a new message; None if the root is gone.

        Slack does not refuse such a message: it appears in the channel.

        Raises:
            RefusedError: The message is a reply itself: Slack would put the new message in the
                wrong place.

        Source:
            https://github.com/slack-go/slack/issues/1571
        """
        root = self._messages.get(channel.id, {}).get(str(thread_ts or ""))
        if root is None or root.seen_by is not None:
            return None
        if root.thread_ts is not None:
            raise RefusedError("cannot_reply_to_message")
        return None if root.is_deleted and not self.replies(channel.id, root.ts) else root.ts

    def thread_root(self, channel: SlackChannel, thread_ts: object) -> str:
        """Return the root of an existing thread.

        Raises:
            RefusedError: There is no such message, or it is a reply itself.
        """
        root_ts = self.reply_root(channel, thread_ts)
        if root_ts is None:
            raise RefusedError("thread_not_found")
        return root_ts

    def typed(self, text: str) -> Typed:
        """Return a person's typed text as Slack stores it, with its mentions and links."""
        rooms = [room for room in self.channels.values() if room.kind == "channel"]
        names = TypedNames(
            people=self._named_person,
            rooms={room.name: room.id for room in rooms},
            public={room.id: room.name for room in rooms if not room.is_private},
        )
        return typed(text, names)

    def calls(self, message: SlackMessage, user: str) -> bool:
        """Whether a message calls a person anywhere in it: in its text, or in its blocks."""
        return self.mentions(message.text, user) or self.mentions(called_in(message), user)

    def mentions(self, text: str, user: str) -> bool:
        """Whether a text calls a person, by name, group or everybody."""
        if f"<@{user}>" in text or any(f"<!{word}>" in text for word in _EVERYBODY):
            return True
        mine = [group.id for group in self.groups.values() if user in group.members]
        return any(f"<!subteam^{group}" in text for group in mine)

    def set_status(self, channel_id: str, thread_ts: str, text: str) -> None:
        """Show, or with an empty text hide, what the bot is doing in a thread."""
        key = (channel_id, thread_ts)
        if self.statuses.get(key, "") == text:
            return
        self.statuses[key] = text
        for listener in self.on_status:
            listener(channel_id, thread_ts, text)
        self.changes.tell()

    def connection_changed(self) -> None:
        """Say that the app has come or gone."""
        for listener in self.on_connection:
            listener()
        self.changes.tell()

    def _named(self, blocks: list[Payload] | None) -> list[Payload] | None:
        return named_blocks(blocks, self.ids.new) or None

    def _named_person(self, name: str) -> Payload | None:
        if name in _EVERYBODY:
            return {"type": "broadcast", "range": name}
        for person in self.people.values():
            if person.name.lower() == name:
                return {"type": "user", "user_id": person.id}
        for group in self.groups.values():
            if group.handle == name:
                return {"type": "usergroup", "usergroup_id": group.id}
        return None

    def _tell(self, change: Change) -> None:
        for listener in self.on_change:
            listener(change)
        self.changes.tell()


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
        for listener in self.on_session:
            listener(key, after)
        self.changes.tell()
        return after

    def suggest(self, channel_id: str, prompts: Payload) -> None:
        """Offer prompts in a direct message, in place of those before."""
        self.prompts[channel_id] = prompts
        for listener in self.on_prompts:
            listener(channel_id, prompts)
        self.changes.tell()
