"""The world of a case: its people, groups, channels and tools, as a policy and Slack see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agents.policy.base import TIME_LIMIT, Allow, Ask, Deny, Ruling, in_time
from agents.policy.combine import strictest
from bot.config.durations import parse_duration
from bot.errors import DirectoryError
from bot.policy.evaluation.context import (
    PolicyQuestion,
    PolicyWorld,
    ProgramFacts,
    ToolFacts,
    with_defaults,
)
from bot.policy.rotation import on_duty
from bot.ports.people import Person
from bot.records.origin import RequestDoor
from bot.records.terms import Group
from bot.rehearsal.case_schema import CaseError, Data

BOT = "U0COUNTER"
"""The bot's user in the world of a case."""
CHANNEL = "C0OPS"
"""Default channel of a call."""
SAID = ("U0ROSA",)
"""Default requesters of a call."""
_TEAM = "T0CASES"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The simulated world of a case.

    Attributes:
        people: Flags by Slack user id: `guest`, `external`, `bot`, `deactivated`, `admin`.
        usergroups: Members by user group id.
        channels: Members by channel id, or a `size`.
        bot_in: Ids of the channels that the bot is a member of.
        agents: Names of the agents.
        tools: By name: `schema`, `tags`, `risk`, `gate`.
        limits: Limits of models by the name of the agent, as in a file of agents.
    """

    people: Mapping[str, Data]
    usergroups: Mapping[str, list[str]]
    channels: Mapping[str, Any]
    bot_in: tuple[str, ...]
    agents: tuple[str, ...]
    tools: Mapping[str, Data]
    limits: Mapping[str, Data] = field(default_factory=dict)

    def changed(self, parts: Mapping[str, Any]) -> World:
        """Return the world with some entries replaced."""
        data: Data = {
            "people": {**self.people, **parts.get("people", {})},
            "usergroups": {**self.usergroups, **parts.get("usergroups", {})},
            "channels": {**self.channels, **parts.get("channels", {})},
            "bot_in": parts.get("bot_in", self.bot_in),
            "agents": parts.get("agents", self.agents),
            "tools": {**self.tools, **parts.get("tools", {})},
            "limits": {**self.limits, **parts.get("limits", {})},
        }
        return read_world(data)


def read_world(data: Mapping[str, Any]) -> World:
    """Return the world under `world` in a file of cases."""
    return World(
        people={name: dict(flags) for name, flags in (data.get("people") or {}).items()},
        usergroups={
            name: list(members) for name, members in (data.get("usergroups") or {}).items()
        },
        channels=dict(data.get("channels") or {}),
        bot_in=tuple(data.get("bot_in") or ()),
        agents=tuple(data.get("agents") or ("agent",)),
        tools=dict(data.get("tools") or {}),
        limits=dict(data.get("limits") or {}),
    )


def policy_world(world: World) -> PolicyWorld:
    """Return the tools and agents of a world."""
    tools = tuple(tool_facts(world, name) for name in world.tools)
    return PolicyWorld(tools=tools, agents=frozenset(world.agents))


def tool_facts(world: World, name: str) -> ToolFacts:
    """Return the facts about a tool.

    Raises:
        CaseError: The world has no tool of this name.
    """
    if name not in world.tools:
        raise CaseError(f"there is no tool {name!r} in the world of the case")
    tool = world.tools[name]
    return ToolFacts(
        name=name,
        tags=tuple(tool.get("tags", ())),
        risk=tool.get("risk", "medium"),
        gate=tool.get("gate", "none"),
        schema=tool.get("schema", {}),
    )


def question_of(world: World, call: Mapping[str, Data]) -> PolicyQuestion:
    """Return a call as input of an evaluation.

    Args:
        world: The world of the case.
        call: `tool` and `args`; optionally `said`, `channel`, `agent`, `origin` and `program`.
    """
    facts = tool_facts(world, str(call["tool"]))
    program = program_of(call.get("program"))
    usual = RequestDoor.SLACK if program is None else RequestDoor.API
    door = RequestDoor(str(call.get("origin", usual)))
    return PolicyQuestion(
        tool=facts,
        arguments=with_defaults(facts.schema, call.get("args", {})),
        requesters=tuple(call.get("said", SAID)),
        channel=str(call.get("channel", CHANNEL)),
        agent=program.name if program else str(call.get("agent", world.agents[0])),
        gated=program is not None or facts.gate != "none" or bool(call.get("code")),
        door=door,
        program=program,
        is_unattended=program is None and door is not RequestDoor.SLACK,
    )


def program_of(data: Data | None) -> ProgramFacts | None:
    """Return the program of a call, from `name`, `trusted` and `claimed`."""
    if data is None:
        return None
    claimed = frozenset(map(str, data.get("claimed", ())))
    is_trusted = data.get("trusted") is True
    return ProgramFacts(name=str(data["name"]), is_trusted=is_trusted, claimed=claimed)


async def ruling_in_code(code: Sequence[Data]) -> Ruling | None:
    """Return the ruling of policies in code on a call; None without any.

    A failing policy denies, as in the bot.
    """
    rulings = [
        await in_time(partial(_ruled, policy), str(policy.get("rule", "")), time_limit=TIME_LIMIT)
        for policy in code
    ]
    return strictest(rulings) if rulings else None


async def _ruled(policy: Data) -> Ruling:
    if policy.get("fails"):
        raise RuntimeError("a policy in code that fails")
    if policy.get("allow"):
        return Allow()
    if "deny" in policy:
        return Deny(str(policy["deny"]), rule=str(policy.get("rule", "")))
    return Ask(
        kind="approval",
        rule=str(policy["rule"]),
        approvers=tuple(policy.get("approvers", ())),
        expires_in=parse_duration(str(policy["expires"])) if "expires" in policy else None,
    )


def members_of(
    world: World, at_ms: int | None = None
) -> Callable[[Group], Awaitable[frozenset[str] | None]]:
    """Return a function that looks up members of groups.

    Args:
        world: The world of the case.
        at_ms: Time of the click, for the person on duty. None for conditions on requesters: during
            an evaluation, rotations and `here` are unknown.
    """

    async def members(group: Group) -> frozenset[str] | None:
        if group.here or (group.rotation and at_ms is None):
            return None
        user_ids = set(group.users)
        for name in group.usergroups:
            user_ids |= set(world.usergroups[name])
        for name in group.channels:
            user_ids |= _members(world, name)
        if group.rotation and at_ms is not None and (user := on_duty(group.rotation, at_ms)):
            user_ids.add(user)
        return frozenset(user_ids)

    return members


def _members(world: World, channel: str) -> frozenset[str]:
    members = world.channels[channel]
    return frozenset(members) if isinstance(members, list) else frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldLookups:
    """Looks up the people, user groups and channels of a world.

    Attributes:
        is_down: Whether all look-ups fail.
    """

    world: World
    is_down: bool = False

    async def person(self, user_id: str) -> Person:
        """Look up a user; an unknown user is external, without a workspace."""
        self._answer()
        flags = self.world.people.get(user_id)
        if flags is None:
            return Person(user_id=user_id, team_id="", name=user_id, is_external=True)
        return Person(
            user_id=user_id,
            team_id=_TEAM,
            name=user_id,
            is_bot=bool(flags.get("bot")),
            is_guest=bool(flags.get("guest")),
            is_external=bool(flags.get("external")),
            is_deleted=bool(flags.get("deactivated")),
        )

    async def group_members(self, group_id: str) -> frozenset[str]:
        """Return the user ids of a user group's members."""
        self._answer()
        if group_id not in self.world.usergroups:
            raise DirectoryError("usergroups.users.list: no_such_subteam")
        return frozenset(self.world.usergroups[group_id])

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        """Return the user ids of a channel's members, including the bot."""
        self._answer()
        if channel_id not in self.world.channels:
            raise DirectoryError("conversations.members: channel_not_found")
        bot = {BOT} if channel_id in self.world.bot_in else set()
        return _members(self.world, channel_id) | bot

    def _answer(self) -> None:
        if self.is_down:
            raise DirectoryError("no answer in time")
