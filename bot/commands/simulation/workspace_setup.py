"""Set up the people, groups and channels of a case in the sandbox."""

from __future__ import annotations

from typing import Any

from bot.commands.simulation.cases import ZONE, World
from bot.commands.simulation.models import Data
from bot.sandbox.workspace.records import SlackChannel, SlackUser, UserGroup
from bot.sandbox.workspace.state import Workspace

_STRANGERS = "T0STRANGER"


def settle_in(workspace: Workspace, world: World) -> None:
    """Put the people, groups and channels of a world into a workspace, in place of its own."""
    bot = workspace.person(workspace.bot_user)
    workspace.people.clear()
    workspace.groups.clear()
    workspace.channels.clear()
    workspace.people[bot.id] = bot
    for user, flags in world.people.items():
        workspace.people[user] = _person(user, flags, workspace.team_id)
    for name, members in world.usergroups.items():
        workspace.groups[name] = UserGroup(
            id=name, handle=name.lower(), name=name, members=list(members)
        )
    for name, members in world.channels.items():
        workspace.channels[name] = _channel(name, members, bot.id, has_bot=name in world.bot_in)


def _person(user: str, flags: Data, team_id: str) -> SlackUser:
    return SlackUser(
        id=user,
        name=user.lower(),
        real_name=user.removeprefix("U0").title(),
        team_id=_STRANGERS if flags.get("external") else team_id,
        is_bot=bool(flags.get("bot")),
        is_restricted=bool(flags.get("guest")),
        is_stranger=bool(flags.get("external")),
        deleted=bool(flags.get("deactivated")),
        tz=ZONE.key,
    )


def _channel(name: str, members: Any, bot: str, *, has_bot: bool) -> SlackChannel:
    if isinstance(members, dict):
        members = [f"U0CROWD{number:04}" for number in range(int(members["size"]))]
    is_direct = name.startswith("D")
    return SlackChannel(
        id=name,
        name=name.lower(),
        kind="im" if is_direct else "channel",
        members=[*members, *([bot] if has_bot or is_direct else [])],
    )
