"""Look up people, groups and delegations, for a click and for one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Protocol, TypeVar

from bot.errors import DirectoryError
from bot.policy.eligibility import Delegation, PeopleSnapshot, Problem
from bot.policy.rotation import on_duty
from bot.ports.people import MOST_MEMBERS, Actor, Directory, Person
from bot.ports.policy import CurrentPolicy
from bot.ports.process import Clock
from bot.records.approval import Approval
from bot.records.people import DelegationRecord
from bot.records.terms import CODE, Group, Terms, TermsError
from bot.words import languages


class PowersNow(Protocol):
    """Reads the delegations of a workspace."""

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        """Return the valid records; see `DelegationStore.current`."""


def delegations_of(records: Iterable[DelegationRecord]) -> tuple[Delegation, ...]:
    """Return the delegations, oldest first."""
    return tuple(
        Delegation(
            owner=record.owner_id,
            delegate=record.delegate_id,
            until_ms=record.until_ms,
            group=record.group_name,
            approval_id=record.approval_id,
        )
        for record in records
        if record.delegate_id
    )


def absent_of(records: Iterable[DelegationRecord]) -> dict[str, int]:
    """Return absent people by user id, with the end of each absence."""
    ends: dict[str, int] = {}
    for record in records:
        if not record.delegate_id:
            ends[record.owner_id] = max(record.until_ms, ends.get(record.owner_id, 0))
    return ends


T = TypeVar("T")

PATIENCE_S = 2.0
"""Longest time of all look-ups for a click, in seconds. Later results are ignored."""
MOST_LOOKED_UP = 25
"""Maximum number of people per look-up. Above it, all are assumed able to decide."""
_DIRECT = "D"


@dataclass(frozen=True, slots=True)
class PeopleLookup:
    """Looks up people and groups for one decision, within two seconds.

    Failed look-ups are missing from the result; callers must then refuse.

    Args:
        directory: Looks people up.
        policy: The policy in force: people outside its groups do not count.
        clock: The time now.
        delegations: Reads delegations; None to ignore them.
    """

    directory: Directory
    policy: CurrentPolicy
    clock: Clock
    delegations: PowersNow | None = None

    async def snapshot_of(
        self,
        approval: Approval,
        terms: Terms,
        *,
        people: Iterable[Actor],
        groups: Iterable[str],
        patience_s: float = PATIENCE_S,
        handed: Sequence[Delegation] | None = None,
    ) -> PeopleSnapshot:
        """Look up people and groups concurrently.

        Args:
            approval: The approval to decide.
            terms: Its terms.
            people: People whose votes count or are being cast.
            groups: Names of the relevant groups.
            patience_s: Timeout in seconds.
            handed: Delegations already read for this click; None reads them.
        """
        view = _View(approval, self.clock())
        if handed is None and self.delegations is not None and terms.delegation:
            records = await self.delegations.current(approval.team_id, now_ms=self.clock())
            handed = delegations_of(records)
        definitions = {name: self._definitions(terms, name) for name in set(groups)}
        everything = [group for both in definitions.values() for group in both]
        actors = {actor.user_id: actor for actor in people}
        name = approval.approval_id
        handed = [
            delegation
            for delegation in handed or ()
            if delegation.delegate in actors and delegation.is_for(name)
        ]
        for delegation in handed:  # both people must be active members
            actors.setdefault(delegation.owner, Actor(user_id=delegation.owner, team_id=""))
        looked_up = await _DirectoryAnswers.look_up(
            self.directory,
            people=actors,
            usergroups={usergroup for group in everything for usergroup in group.usergroups},
            channels={channel for group in everything for channel in channels_of(group, approval)},
            patience_s=patience_s,
        )
        return PeopleSnapshot(
            people={
                name: problem_of(person, actors[name], approval.team_id)
                for name, person in looked_up.people.items()
            },
            members=view.members_by_name(definitions, looked_up),
            requesters=frozenset(approval.all_requesters),
            editors=frozenset(approval.edits.editors),
            counted=frozenset(approval.counted),
            persons=looked_up.people,
            read_ms=view.at_ms,
            delegations=tuple(handed),
            again=looked_up.again,
        )

    def _definitions(self, terms: Terms, name: str) -> tuple[Group, ...]:
        """Return the frozen and the current definition: only members of both count."""
        frozen = terms.groups.get(name, Group())
        present = self.policy.groups()
        if present is None or name.startswith(CODE):
            return (frozen,)
        now = present.get(name, Group())
        return (frozen,) if now == frozen else (frozen, now)


def frozen_members(approval: Approval) -> dict[str, frozenset[str]] | None:
    """Return the frozen channel members by channel; None if not stored."""
    if approval.members is None:
        return None
    return {channel: frozenset(members) for channel, members in approval.members.items()}


def channels_of(group: Group, approval: Approval) -> tuple[str, ...]:
    """Return the channels whose members count in a group."""
    here = group.here and not is_direct(approval)
    return (*group.channels, approval.channel_id) if here else group.channels


def is_direct(approval: Approval) -> bool:
    """Whether the approval was requested in a direct message."""
    return approval.channel_id.startswith(_DIRECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _DirectoryAnswers:
    """Results of look-ups, by id, without failed ones.

    Attributes:
        people: By user id.
        usergroups: Members by user group.
        channels: Members by channel.
        again: Slack's retry-after for failed look-ups; None if unknown.
    """

    people: Mapping[str, Person]
    usergroups: Mapping[str, frozenset[str]]
    channels: Mapping[str, frozenset[str]]
    again: timedelta | None

    @classmethod
    async def look_up(
        cls,
        directory: Directory,
        *,
        people: Iterable[str],
        usergroups: Iterable[str],
        channels: Iterable[str],
        patience_s: float,
    ) -> _DirectoryAnswers:
        waits: list[timedelta] = []
        by_person, by_group, by_channel = await asyncio.gather(
            _each(people, directory.person, patience_s, waits),
            _each(usergroups, directory.group_members, patience_s, waits),
            _each(channels, directory.channel_members, patience_s, waits),
        )
        again = max(waits, default=None)
        return cls(people=by_person, usergroups=by_group, channels=by_channel, again=again)


async def _each(
    names: Iterable[str],
    look_up: Callable[[str], Coroutine[Any, Any, T]],
    patience_s: float,
    waits: list[timedelta],
) -> dict[str, T]:
    """Look up each name; add the retry-after of failures to `waits`."""
    tasks = {name: asyncio.ensure_future(look_up(name)) for name in names}
    if not tasks:
        return {}
    try:
        await asyncio.wait(tasks.values(), timeout=max(patience_s, 0))
    finally:
        for task in tasks.values():
            task.cancel()
    results: dict[str, T] = {}
    for name, task in tasks.items():
        if task.done() and not task.cancelled():
            try:
                results[name] = task.result()
            except DirectoryError as error:
                waits.extend([error.again] if error.again is not None else [])
    return results


@dataclass(frozen=True, slots=True)
class _View:
    """Groups as seen from one approval at one time."""

    approval: Approval
    at_ms: int

    def members_by_name(
        self, definitions: Mapping[str, Sequence[Group]], looked_up: _DirectoryAnswers
    ) -> dict[str, frozenset[str]]:
        """Return the people in all definitions of a group, by name, if known."""
        members: dict[str, frozenset[str]] = {}
        for name, groups in definitions.items():
            sets = [self.members(group, looked_up) for group in groups]
            known = [user_ids for user_ids in sets if user_ids is not None]
            if any(not user_ids for user_ids in known):
                members[name] = frozenset()  # an empty group is known to be empty
            elif len(known) == len(sets):
                members[name] = frozenset.intersection(*known)
        return members

    def members(self, group: Group, looked_up: _DirectoryAnswers) -> frozenset[str] | None:
        """Return the people of a group; None if a part could not be looked up."""
        try:
            on_duty_now = on_duty(group.rotation, self.at_ms) if group.rotation else None
        except TermsError:  # the time zone is unknown on this machine
            return None
        parts = [frozenset(group.users), frozenset([on_duty_now] if on_duty_now else [])]
        for name in group.usergroups:
            if name not in looked_up.usergroups:
                return None
            parts.append(looked_up.usergroups[name])
        for name in channels_of(group, self.approval):
            if name not in looked_up.channels:
                return None
            members = looked_up.channels[name]
            if len(members) <= MOST_MEMBERS:  # in a larger channel, no member may decide
                frozen = frozen_members(self.approval) or {}
                parts.append(members & frozen.get(name, frozenset()))
        return frozenset.union(*parts)


async def left_by_requester(
    directory: Directory, approval: Approval
) -> Literal["", "workspace", "channel"]:
    """Return what the first requester has left: the workspace, the channel, or nothing.

    The owner of a program need not be in the channel, but must be a full member of the workspace.

    Raises:
        DirectoryError: A look-up failed.
    """
    by = approval.requester_id
    person = await directory.person(by)
    if approval.origin.program:
        return "" if person.is_full_member else "workspace"
    if person.is_deleted:
        return "workspace"
    if is_direct(approval) or by in await directory.channel_members(approval.channel_id):
        return ""
    return "channel"


async def locale_of(directory: Directory, user_id: str) -> str:
    """Return a person's locale; empty if irrelevant or unknown."""
    if len(languages()) > 1:
        with suppress(DirectoryError):
            return (await directory.person(user_id)).locale
    return ""


def problem_of(person: Person, actor: Actor, team_id: str) -> Problem | None:
    """Return why a person can never vote, or None."""
    if person.is_deleted:
        return Problem.DEACTIVATED
    if person.is_bot:
        return Problem.BOT
    if person.is_external or not person.is_home(actor, team_id):
        return Problem.EXTERNAL
    return Problem.GUEST if person.is_guest else None


@dataclass(frozen=True, slots=True)
class LookupOnce:
    """Directory that caches answers for one request or step.

    Clicks need fresh answers; see `PeopleLookup`.
    """

    directory: Directory
    _answers: dict[tuple[str, str], asyncio.Future[Any]] = field(default_factory=dict)

    async def person(self, user_id: str) -> Person:
        """Look up a person; see `Directory.person`."""
        return await self._once("person", user_id, self.directory.person)

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        """Look up members; see `Directory.channel_members`."""
        return await self._once("channel", channel_id, self.directory.channel_members)

    async def is_public(self, channel_id: str) -> bool:
        """Look up a channel; see `Directory.is_public`."""
        return await self._once("public", channel_id, self.directory.is_public)

    async def is_in(self, channel_id: str) -> bool:
        """Look up the bot's membership; see `Directory.is_in`."""
        return await self._once("room", channel_id, self.directory.is_in)

    async def group_members(self, group_id: str) -> frozenset[str]:
        """Look up members; see `Directory.group_members`."""
        return await self._once("group", group_id, self.directory.group_members)

    async def _once(self, kind: str, name: str, look_up: Callable[[str], Awaitable[T]]) -> T:
        known = self._answers.get((kind, name))
        if known is None:
            known = self._answers[kind, name] = asyncio.ensure_future(_tried(look_up, name))
        answer: T | DirectoryError = await asyncio.shield(known)
        if isinstance(answer, DirectoryError):
            raise answer
        return answer


async def _tried(look_up: Callable[[str], Awaitable[T]], name: str) -> T | DirectoryError:
    try:
        return await look_up(name)
    except DirectoryError as error:
        return error


@dataclass(frozen=True, slots=True)
class DelegationCache:
    """Caches delegations for one request, like `LookupOnce`."""

    powers: PowersNow
    _read: dict[str, asyncio.Future[Sequence[DelegationRecord]]] = field(default_factory=dict)

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        """Return delegations as of the first call; see `DelegationStore.current`."""
        known = self._read.get(team_id)
        if known is None:
            reading = self.powers.current(team_id, now_ms=now_ms)
            known = self._read[team_id] = asyncio.ensure_future(reading)
        return await asyncio.shield(known)
