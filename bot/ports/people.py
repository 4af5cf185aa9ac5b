"""People, as stated by a payload and by Slack, and the port that looks them up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

CHANNEL = "channel"
"""In a list of approvers: all members of the thread's channel."""


MOST_MEMBERS = 500
"""Maximum number of members of a channel whose members approve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The sender of a payload, from the fields that Slack sets, not from text.

    Attributes:
        user_id: Slack user id.
        team_id: The sender's workspace; empty if the payload does not name it.
        enterprise_id: The sender's organization on Enterprise Grid; empty without one.
        payload: Id of the payload, for the audit; empty if the bot acts without a click.
    """

    user_id: str
    team_id: str
    enterprise_id: str = ""
    payload: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user's profile in Slack.

    Attributes:
        user_id: Slack user id.
        team_id: The bot's workspace if the user is a member of it, else the user's own workspace;
            empty if the user is unknown.
        name: Display name.
        is_bot: Whether the user is an app or Slackbot.
        is_guest: Whether the user is a single-channel or multi-channel guest.
        is_external: Whether the user is not a member of the bot's workspace (Slack Connect).
        is_deleted: Whether the user is deactivated.
        timezone: IANA name of the user's time zone; empty if unknown.
        locale: Language and region, such as `de-DE`; empty if unknown.
        is_admin: Whether the user is an admin or owner of the workspace.
        enterprise_id: The user's organization on Enterprise Grid; empty without one.
        own_team_id: The workspace in the user's profile; empty if unknown. On Enterprise Grid it
            can differ from `team_id`, because a user can be a member of several workspaces.
    """

    user_id: str
    team_id: str
    name: str
    is_bot: bool = False
    is_guest: bool = False
    is_external: bool = False
    is_deleted: bool = False
    timezone: str = ""
    locale: str = ""
    is_admin: bool = False
    enterprise_id: str = ""
    own_team_id: str = ""

    @property
    def is_full_member(self) -> bool:
        """Whether the user is an active full member of the bot's workspace."""
        return not (self.is_bot or self.is_deleted or self.is_guest or self.is_external)

    def is_home(self, actor: Actor, team_id: str) -> bool:
        """Whether the user is a member of a workspace, by the payload and the profile."""
        if actor.team_id and actor.team_id == team_id:
            return True
        # On Enterprise Grid, a payload may name no workspace, the organization, or another
        # workspace of the organization that shares the channel. Then the profile decides.
        is_of_house = bool(self.enterprise_id) and actor.enterprise_id == self.enterprise_id
        return (not actor.team_id or is_of_house) and self.team_id == team_id


class Directory(Protocol):
    """Looks people up in Slack. A failed look-up raises `DirectoryError`.

    An answer is at most ten minutes old, and newer than any change that Slack has reported.
    """

    async def person(self, user_id: str) -> Person:
        """Return a user's profile."""
        ...

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        """Return the user ids of a channel's members."""
        ...

    async def is_public(self, channel_id: str) -> bool:
        """Whether every full member of the workspace can read a channel."""
        ...

    async def is_in(self, channel_id: str) -> bool:
        """Whether the bot is in a channel."""
        ...

    async def group_members(self, group_id: str) -> frozenset[str]:
        """Return the user ids of a user group's members."""
        ...


class NamingDirectory(Directory, Protocol):
    """Looks up names, too."""

    async def group_name(self, group_id: str) -> str:
        """Return the handle of a user group, with `@`."""
        ...

    async def channel_name(self, channel_id: str) -> str:
        """Return a channel's name, without `#`; empty for a direct message."""
        ...


def is_person(name: str) -> bool:
    """Whether a recipient id is a person."""
    return name[:1] in {"U", "W"}


def is_usergroup(name: str) -> bool:
    """Whether a recipient id is a user group."""
    return name[:1] == "S"


def is_channel(name: str) -> bool:
    """Whether a recipient id is a channel, or `channel`; it mentions no person."""
    return name == CHANNEL or name[:1] in {"C", "G"}
