"""Checks in Slack: people, user groups, and the bot's channels.

The checks wait for Slack's rate limits. A failed look-up is a fault like any other: the policy does
not take effect.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from bot.errors import DirectoryError
from bot.policy.parser.problems import Code, PolicyProblem
from bot.policy.parser.source import SourceNode
from bot.policy.values import CHANNEL, PERSON, USERGROUP
from bot.ports.people import MOST_MEMBERS, Person

logger = logging.getLogger(__name__)


def _log_size(channel_id: str, count: int) -> None:
    logger.warning(
        "%s has %d members, too many to approve",
        channel_id,
        count,
        extra={"action": "channel_too_large"},
    )


AT_ONCE = 5
"""The maximum number of parallel look-ups."""

_UNKNOWN = ("no_such_subteam", "subteam_not_found", "channel_not_found", "user_not_found")
_OUTSIDE = "not_in_channel"
_NO_GROUPS = ("plan_upgrade_required", "paid_teams_only")


class Lookups(Protocol):
    """The directory methods that the checks need. Failures raise `DirectoryError`."""

    async def person(self, user_id: str) -> Person:
        """Look up a user; an unknown user is external, without a workspace."""
        ...

    async def group_members(self, group_id: str) -> frozenset[str]:
        """Return the user ids of a user group's members."""
        ...

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        """Return the user ids of a channel's members."""
        ...


@dataclass(frozen=True, slots=True)
class _Fault:
    code: Code
    text: str
    remedy: str


_Look = Callable[[str], Awaitable[_Fault | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackFacts:
    """The workspace that a policy is checked against.

    Attributes:
        lookups: Its directory.
        bot_user_id: The bot, which must be in channels that are read or posted to.
        sleep: Waits a number of seconds for Slack's rate limit.
        warn: Receives each channel that is too large to decide, and its number of members.
    """

    lookups: Lookups
    bot_user_id: str
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    warn: Callable[[str, int], None] = _log_size


async def look_up(root: SourceNode, slack: SlackFacts) -> list[PolicyProblem]:
    """Look up every id of a file in Slack.

    Returns:
        The faults, by kind of id, then in order of position.
    """
    checks = _Lookups(slack)
    slots = asyncio.Semaphore(AT_ONCE)

    async def fault_of(look: _Look, name: str) -> _Fault | None:
        async with slots:
            while True:
                try:
                    return await look(name)
                except DirectoryError as error:
                    if error.again is None:
                        return _failed(name, error)
                    wait_s = error.again.total_seconds()
                logger.info(
                    "looking up %s again in %.0f s", name, wait_s, extra={"action": "lookup_waits"}
                )
                await slack.sleep(wait_s)

    wanted = [
        *((node, name, checks.person) for node, name in _ids(_people(root), PERSON)),
        *((node, name, checks.usergroup) for node, name in _ids(_usergroups(root), USERGROUP)),
        # Calls come only from channels that the bot is in, so these channels must only exist.
        *((node, name, checks.place) for node, name in _ids(_places(root), CHANNEL)),
        *((node, name, checks.channel) for node, name in _ids(_channels(root), CHANNEL)),
        *((node, name, checks.size) for node, name in _ids(_deciding(root), CHANNEL)),
    ]
    looks = {(name, look): None for _, name, look in wanted}
    outcomes = await asyncio.gather(*(fault_of(look, name) for name, look in looks))
    faults = dict(zip(looks, outcomes, strict=True))
    return [
        node.problem(fault.code, fault.text, fault.remedy)
        for node, name, look in wanted
        if (fault := faults[name, look]) is not None
    ]


class _Lookups:
    def __init__(self, slack: SlackFacts) -> None:
        self._lookups = slack.lookups
        self._bot_user_id = slack.bot_user_id
        self._warn = slack.warn

    async def person(self, user_id: str) -> _Fault | None:
        person = await self._lookups.person(user_id)
        traits = {
            "an app": person.is_bot,
            "a guest": person.is_guest,
            "not known in this workspace": not person.team_id,
            "of another workspace": person.is_external,
            "deactivated": person.is_deleted,
        }
        trait = next((words for words, has_it in traits.items() if has_it), "")
        remedy = "name active full members of this workspace"
        return _Fault("unknown_id", f"{user_id} is {trait}", remedy) if trait else None

    async def usergroup(self, group_id: str) -> _Fault | None:
        await self._lookups.group_members(group_id)
        return None

    async def place(self, channel_id: str) -> _Fault | None:
        await self._lookups.channel_members(channel_id)
        return None

    async def channel(self, channel_id: str) -> _Fault | None:
        members = await self._lookups.channel_members(channel_id)
        return None if self._bot_user_id in members else _outside(channel_id)

    async def size(self, channel_id: str) -> _Fault | None:
        """Warn if a channel is too large to decide.

        This is not a fault, because a channel may grow at any time.
        """
        with suppress(DirectoryError):  # `channel` reports it
            count = len(await self._lookups.channel_members(channel_id))
            if count > MOST_MEMBERS:
                self._warn(channel_id, count)
        return None


def _outside(channel_id: str) -> _Fault:
    remedy = "invite the bot there, or name another channel"
    return _Fault("bot_not_in_channel", f"the bot is not in {channel_id}", remedy)


def _failed(name: str, error: DirectoryError) -> _Fault:
    if error.detail.endswith(_OUTSIDE):
        return _outside(name)
    if error.detail.endswith(_UNKNOWN):
        remedy = "correct the id; to a private channel, invite the bot first"
        return _Fault("unknown_id", f"Slack doesn't recognize {name}", remedy)
    if error.detail.endswith(_NO_GROUPS):
        fault = f"{name} is a user group, and this Slack plan has none ({error.detail})"
        return _Fault("unresolvable", fault, "name people with users:, or upgrade the plan")
    detail = f" ({error.detail})" if error.detail else ""
    fault = f"{name} cannot be looked up{detail}"
    return _Fault("unresolvable", fault, "try again when Slack is reachable")


@dataclass(frozen=True, slots=True)
class NamedIds:
    """The ids in a policy file, sorted."""

    people: tuple[str, ...]
    usergroups: tuple[str, ...]
    channels: tuple[str, ...]


def ids_in(root: SourceNode) -> NamedIds:
    """Return all ids that `look_up` looks up."""

    def names(pairs: Iterator[tuple[SourceNode, str]], shape: str) -> tuple[str, ...]:
        return tuple(sorted({name for _, name in _ids(pairs, shape)}))

    return NamedIds(
        people=names(_people(root), PERSON),
        usergroups=names(_usergroups(root), USERGROUP),
        channels=names(chain(_places(root), _channels(root)), CHANNEL),
    )


def _ids(pairs: Iterator[tuple[SourceNode, str]], shape: str) -> Iterator[tuple[SourceNode, str]]:
    """Yield the well-formed ids. Malformed ids are reported by the models."""
    form = re.compile(shape)
    return (pair for pair in pairs if form.fullmatch(pair[1]))


def _groups(root: SourceNode) -> Iterator[SourceNode]:
    groups = root.get("groups")
    yield from (groups.entries or {}).values() if groups is not None else ()


def _people(root: SourceNode) -> Iterator[tuple[SourceNode, str]]:
    for group in _groups(root):
        yield from group.texts("users")
        yield from group.texts("rotation", "people")
        for override in group.each("rotation", "overrides"):
            yield from override.texts("user")


def _usergroups(root: SourceNode) -> Iterator[tuple[SourceNode, str]]:
    for group in _groups(root):
        yield from group.texts("usergroups")


def _channels(root: SourceNode) -> Iterator[tuple[SourceNode, str]]:
    for group in _groups(root):
        yield from group.texts("channels")
    yield from root.texts("freeze", "alert")
    for ask in _asks(root):
        yield from ask.texts("route", "channel")
        yield from ask.texts("break_glass", "alert")


def _deciding(root: SourceNode) -> Iterator[tuple[SourceNode, str]]:
    """Yield the channels whose members may decide."""
    has_here = False
    for group in _groups(root):
        yield from group.texts("channels")
        has_here = has_here or group.get("here") is not None
    if has_here:
        yield from _places(root)


def _places(root: SourceNode) -> Iterator[tuple[SourceNode, str]]:
    for rule in root.each("rules"):
        yield from rule.texts("when", "channel")


def _asks(root: SourceNode) -> Iterator[SourceNode]:
    thens = [rule.get("then") for rule in root.each("rules")]
    for node in (root.get("defaults"), *(then and then.get("ask") for then in thens)):
        if node is not None:
            yield node
    if (ask := root.get("default", "ask")) is not None:
        yield ask
