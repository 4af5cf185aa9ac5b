"""People, as a payload and Slack say, and the port that looks them up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

CHANNEL = "channel"
"""Among those who may decide: the members of the thread's channel."""


MOST_MEMBERS = 500
"""Maximum number of members of a channel whose members approve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The sender of a payload, as Slack (not the payload's text) says.

    Attributes:
        user_id: Slack user id.
        team_id: The person's home workspace; empty when Slack did not say.
        enterprise_id: The person's organisation on Enterprise Grid; empty without one.
        payload: Id of the payload, for the audit; empty where nobody has clicked.
    """

    user_id: str
    team_id: str
    enterprise_id: str = ""
    payload: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user, as Slack knows them.

    Attributes:
        user_id: Slack user id.
        team_id: Home workspace.
        name: The name that people see.
        is_bot: An app, not a person.
        is_guest: A single-channel or multi-channel guest.
        is_external: From another organisation (Slack Connect).
        is_deleted: Deactivated.
        timezone: Name of the zone that they have chosen; empty when Slack does not say.
        locale: Their language and region, such as `de-DE`; empty when Slack does not say.
        is_admin: An admin or owner of the workspace.
        enterprise_id: Their organization on Enterprise Grid; empty without one.
        own_team_id: The workspace that Slack says is theirs. On Enterprise Grid it may be another
            than `team_id`, in which they are at home, too. Empty when Slack does not say.
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

    def is_home(self, actor: Actor, team_id: str) -> bool:
        """Whether somebody is of a workspace, by their payload and by what Slack says of them."""
        if actor.team_id and actor.team_id == team_id:
            return True
        # On Enterprise Grid a payload may name no team, the organisation, or another workspace of
        # it, in which its sender sees the channel. Then what Slack says of the user counts.
        is_of_house = bool(self.enterprise_id) and actor.enterprise_id == self.enterprise_id
        return (not actor.team_id or is_of_house) and self.team_id == team_id


class Directory(Protocol):
    """Looks people up. A look-up that fails raises `DirectoryError`; it never guesses.

    An answer is at most ten minutes old, and newer than any change that Slack has told the bot of.
    """

    async def person(self, user_id: str) -> Person:
        """Read a user."""
        ...

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        """User ids of the members of a channel."""
        ...

    async def is_public(self, channel_id: str) -> bool:
        """Whether every full member of the workspace can read a channel."""
        ...

    async def is_in(self, channel_id: str) -> bool:
        """Whether the bot is in a channel."""
        ...

    async def group_members(self, group_id: str) -> frozenset[str]:
        """User ids of the members of a user group."""
        ...
