"""The records of a workspace: people, channels, messages, views."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Payload = dict[str, Any]
"""JSON as Slack sends and takes it."""
TokenKind = Literal["bot", "app"]
"""The kinds of tokens that calls are made with."""


@dataclass(slots=True, kw_only=True)
class SlackUser:
    """A member of the workspace, a guest, somebody of another workspace, or a bot."""

    id: str
    name: str
    """The name that people type after @; lower case."""
    real_name: str
    title: str = ""
    color: str = "4a6fa5"
    team_id: str
    """The home workspace; another one than ours for people of other companies."""
    is_bot: bool = False
    is_admin: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    is_hidden: bool = False
    """Whether users.info does not show them, as some people of other companies."""
    enterprise_id: str = ""
    """The organization on Enterprise Grid; empty without one."""
    teams: tuple[str, ...] = ()
    """On Enterprise Grid, the workspaces that somebody is in."""
    deleted: bool = False
    tz: str = "Etc/UTC"
    """The name of the time zone, as in the tz database; empty if Slack knows none."""
    locale: str = "en-US"
    email: str = ""

    @property
    def is_guest(self) -> bool:
        """Whether this person is a guest of either kind."""
        return self.is_restricted or self.is_ultra_restricted


@dataclass(slots=True, kw_only=True)
class SlackChannel:
    """A channel, or a direct message between one person and the bot."""

    id: str
    name: str
    kind: Literal["channel", "im"] = "channel"
    members: list[str] = field(default_factory=list)
    topic: str = ""
    section: str = "Channels"
    """The heading under which the page lists it."""
    is_private: bool = False
    is_mpim: bool = False
    """A direct message among several people; it is private, too."""
    is_archived: bool = False
    is_ext_shared: bool = False
    created: int = 0
    creator: str = ""

    @property
    def event_type(self) -> str:
        """The `channel_type` of events."""
        if self.kind == "im":
            return "im"
        if self.is_mpim:
            return "mpim"
        return "group" if self.is_private else "channel"


@dataclass(slots=True, kw_only=True)
class UserGroup:
    """A user group, mentioned as @handle."""

    id: str
    handle: str
    name: str
    members: list[str]


@dataclass(slots=True, kw_only=True)
class SlackMessage:
    """One message, of a person or of the bot, ephemeral ones included."""

    ts: str
    channel: str
    user: str
    text: str
    by_bot: bool = False
    blocks: list[Payload] | None = None
    attachments: list[Payload] | None = None
    thread_ts: str | None = None
    """The root's ts, in replies only."""
    broadcast: bool = False
    metadata: Payload | None = None
    typed: str | None = None
    """The words as a person typed them, to edit them."""
    edited: Payload | None = None
    is_streaming: bool = False
    is_deleted: bool = False
    seen_by: str | None = None
    """The only person who sees it, if it is ephemeral."""
    client_msg_id: str | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)
    """Name of an emoji → who reacted with it."""

    @property
    def root_ts(self) -> str:
        """The ts of the thread that this message is in, or would start."""
        return self.thread_ts or self.ts


def called_in(message: SlackMessage) -> str:
    """All mentions in the blocks of a message, as mrkdwn: also those that are elements."""
    mentions: list[str] = []
    nodes: list[Any] = [*(message.blocks or ())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            match node.get("type"):
                case "user":
                    mentions.append(f"<@{node.get('user_id')}>")
                case "usergroup":
                    mentions.append(f"<!subteam^{node.get('usergroup_id')}>")
                case "broadcast":
                    mentions.append(f"<!{node.get('range')}>")
                case "mrkdwn":
                    mentions.append(str(node.get("text")))
                case _:
                    nodes += node.values()
    return " ".join(mentions)


@dataclass(slots=True, kw_only=True)
class View:
    """An open modal, or a person's Home tab."""

    id: str
    user: str
    """The only person who sees it."""
    type: Literal["modal", "home"]
    content: Payload
    """The app's part: title, blocks, callback_id and so on."""
    hash: str
    root_id: str
    window: str = ""
    """The window that it belongs to; empty for all of that person's."""
    previous_id: str | None = None
    values: Payload = field(default_factory=dict)
    """The person's part: block_id → action_id → value."""


@dataclass(slots=True, kw_only=True)
class Change:
    """Something that people or the app may want to know."""

    kind: Literal["posted", "changed", "deleted"]
    message: SlackMessage
    previous: SlackMessage | None = None
    """The message as it was before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """One received Web API call; the token is left out."""

    method: str
    args: Payload
    error: str | None = None


@dataclass(slots=True, kw_only=True)
class Features:
    """The features that a workspace may lack."""

    streaming: bool = True
    """chat.startStream and its two sisters."""
    status: bool = True
    """assistant.threads.setStatus."""
    agent_view: bool = True
    """Sessions with a stop button, and suggested prompts."""
    page: int = 1_000
    """The most that a page of members or channels has; Slack may give fewer than were asked for."""
