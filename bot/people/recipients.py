"""Recipients: whom to tell, that is, whom a message about an approval mentions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from bot.errors import DirectoryError
from bot.people.lookup import MOST_LOOKED_UP, PATIENCE_S, PeopleLookup
from bot.policy.eligibility import Eligibility, PeopleSnapshot
from bot.policy.missing_approvers import possible_voters
from bot.policy.progress import ballot_of
from bot.policy.tally import Ballot
from bot.ports.people import Actor, Directory, is_channel, is_person, is_usergroup
from bot.ports.policy import CurrentPolicy, NoPolicy
from bot.ports.process import Clock
from bot.records.approval import Approval
from bot.records.terms import Terms

MOST_PEOPLE = 10
"""Maximum number of people to mention in a message. User groups have one handle."""

Away = Callable[[Approval], Awaitable[Mapping[str, tuple[str, ...]]]]
"""Returns absent people by user id, with the people to mention instead."""


async def nobody_away(_: Approval) -> Mapping[str, tuple[str, ...]]:
    """Return no absent people."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """People whose vote is missing, as far as known."""

    people: frozenset[str]
    groups: frozenset[str]

    def wants(self, user_id: str, groups: Iterable[str]) -> bool:
        """Whether a member of these groups is awaited; unknown people are."""
        return user_id in self.people or any(name not in self.groups for name in groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Finds whom to mention and which channels they can see."""

    directory: Directory
    clock: Clock
    policy: CurrentPolicy = field(default_factory=NoPolicy)
    away: Away = nobody_away

    async def waiting(self, approval: Approval, terms: Terms, *, steps: int) -> Waiting:
        """Return whose votes are missing after a number of escalation steps.

        Raises:
            TermsError: A time zone is unknown on this machine.
        """
        ballot, groups = _asked_now(approval, terms, steps)
        lookup = PeopleLookup(self.directory, self.policy, self.clock)
        snapshot = await lookup.snapshot_of(approval, terms, people=(), groups=groups)
        user_ids = possible_voters(ballot, snapshot)
        if len(user_ids) <= MOST_LOOKED_UP:  # above that, one person is assumed able
            people = [Actor(user_id=user_id, team_id="") for user_id in user_ids]
            able = await lookup.snapshot_of(approval, terms, people=people, groups=())
            user_ids = possible_voters(ballot, replace(snapshot, people=able.people))
        return Waiting(people=user_ids, groups=frozenset(snapshot.members))

    async def able(
        self, approval: Approval, terms: Terms, people: Collection[str], *, steps: int
    ) -> frozenset[str]:
        """Return the people who certainly could fill a further slot now.

        Failed look-ups give an empty result.

        Raises:
            TermsError: A time zone is unknown on this machine.
        """
        ballot, groups = _asked_now(approval, terms, steps)
        actors = [Actor(user_id=user_id, team_id="") for user_id in people]
        lookup = PeopleLookup(self.directory, self.policy, self.clock)
        snapshot = await lookup.snapshot_of(approval, terms, people=actors, groups=groups)
        if not snapshot.knows(groups=Eligibility(terms, snapshot).excluded):
            return frozenset()
        free = possible_voters(ballot, snapshot) & {*people}
        return frozenset(user_id for user_id in free if snapshot.is_able(user_id))

    async def members(self, approval: Approval, names: Iterable[str]) -> frozenset[str]:
        """Return present members of user groups among recipients, as far as known."""
        away = await self.away(approval)
        members = await self._members([name for name in names if is_usergroup(name)])
        return frozenset[str]().union(*members.values()) - away.keys()

    async def to_mention(
        self,
        approval: Approval,
        names: Mapping[str, tuple[str, ...]],
        waiting: Waiting,
        *,
        silent: Collection[str],
    ) -> tuple[str, ...]:
        """Return the recipients to mention now, in order, without duplicates."""
        away = await self.away(approval)
        wanted = waiting.people - {*silent}
        members = await self._members([name for name in names if is_usergroup(name)])
        recipients: dict[str, None] = {}
        for name, groups in names.items():
            if is_person(name) and waiting.wants(name, groups) and name not in silent:
                recipients.update(dict.fromkeys(away.get(name, (name,))))
            elif is_channel(name) or (
                is_usergroup(name) and self._is_any_left(members.get(name), wanted, away)
            ):
                recipients[name] = None
        return tuple(recipients)

    async def awaited_among(
        self, approval: Approval, people: Collection[str], waiting: Waiting
    ) -> tuple[str, ...]:
        """Return the people whose vote is missing, or the delegates of absent ones."""
        if not people:
            return ()
        away = await self.away(approval)
        lent = {
            delegate
            for owner, delegates in away.items()
            if owner in waiting.people
            for delegate in delegates
        }
        return tuple(user_id for user_id in people if user_id in waiting.people or user_id in lent)

    async def is_deserted(self, approval: Approval, terms: Terms) -> bool:
        """Whether all possible approvers are absent without a delegate."""
        away = await self.away(approval) if terms.escalate else {}
        if not away:
            return False
        waiting = await self.waiting(approval, terms, steps=0)
        return bool(waiting.people) and all(away.get(user_id) == () for user_id in waiting.people)

    async def absent(self, channel_id: str, people: Collection[str]) -> frozenset[str]:
        """Return people who are not in a channel; empty if unknown."""
        if not people:
            return frozenset()
        try:
            async with asyncio.timeout(PATIENCE_S):
                members = await self.directory.channel_members(channel_id)
        except (DirectoryError, TimeoutError):
            return frozenset()
        return frozenset(people) - members

    async def _members(self, names: Iterable[str]) -> dict[str, frozenset[str]]:
        """Return members of user groups, as far as known."""
        by_group: dict[str, frozenset[str]] = {}

        async def look_up(name: str) -> None:
            with suppress(DirectoryError, TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    by_group[name] = await self.directory.group_members(name)

        await asyncio.gather(*(look_up(name) for name in names))
        return by_group

    @staticmethod
    def _is_any_left(
        members: frozenset[str] | None,
        wanted: frozenset[str],
        away: Mapping[str, tuple[str, ...]],
    ) -> bool:
        return members is None or any(
            user_id in wanted and user_id not in away for user_id in members
        )


def _asked_now(approval: Approval, terms: Terms, steps: int) -> tuple[Ballot, frozenset[str]]:
    """Return the ballot after escalation steps, and the groups of its stage.

    Raises:
        TermsError: A time zone is unknown on this machine.
    """
    ballot = replace(ballot_of(approval), steps=steps)
    stage = ballot.stages[0 if ballot.is_doubt else ballot.stage]
    rights = Eligibility(terms, PeopleSnapshot(people={}, members={}))
    names = {name for requirement in stage.approve for name in rights.groups(requirement, steps)}
    return ballot, frozenset({*names, *rights.excluded})
