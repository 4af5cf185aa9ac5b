"""Rights to freeze and to lift, by the policy in force (11.5, 11.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from bot.errors import DirectoryError, RefusalError
from bot.people.lookup import PATIENCE_S, problem_of
from bot.policy.evaluation.asking import group_of
from bot.policy.model import PolicyFile
from bot.policy.refusals import RefusalCode
from bot.policy.rotation import on_duty
from bot.ports.people import MOST_MEMBERS, Actor, Directory, Person
from bot.ports.process import Clock
from bot.records.terms import Group, TermsError
from bot.words import say

NOT_FREEZER = "not_freezer"
"""Code of the refusal of people who may not freeze or lift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeRights:
    """The people who may freeze and lift.

    Attributes:
        by: Groups whose members may freeze, by name; empty for admins of the workspace.
        lifters: Groups whose members may lift, by name; empty for admins of the workspace.
        count: How many people must lift.
        alert: Slack id of the channel that is told; empty for the place of the command.
    """

    by: Mapping[str, Group]
    lifters: Mapping[str, Group]
    count: int
    alert: str = ""

    @classmethod
    def of(cls, file: PolicyFile) -> FreezeRights:
        """Read the rights from a policy file."""
        entry = file.freeze
        return cls(
            by={name: group_of(file.groups[name], file) for name in entry.by},
            lifters={name: group_of(file.groups[name], file) for name in entry.lifters},
            count=entry.lift.count,
            alert=entry.alert or "",
        )


ADMINS_ONLY = FreezeRights(by={}, lifters={}, count=1)
"""The rights without a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeAccess:
    """Checks whether a person may freeze or lift. Fails closed.

    Attributes:
        directory: Looks people up.
        team_id: The bot's workspace.
        clock: The time now.
    """

    directory: Directory
    team_id: str
    clock: Clock

    async def check(self, groups: Mapping[str, Group], actor: Actor) -> None:
        """Refuse a person who is in none of the groups.

        People whom a group lists by their ids, and the person on call, need no look-up.

        Args:
            groups: The groups by name; empty for admins of the workspace.
            actor: The person.

        Raises:
            RefusalError: The person may not do this, or a look-up failed. The text names the
                command line.
        """
        if any(actor.user_id in self._listed(group) for group in groups.values()):
            return
        try:
            async with asyncio.timeout(PATIENCE_S):
                person = await self.directory.person(actor.user_id)
                problem = problem_of(person, actor, self.team_id)
                if problem is not None:
                    raise RefusalError(problem.value, RefusalCode(problem.value).words)
                is_among = await self._is_among(groups, person)
        except (DirectoryError, TimeoutError) as error:
            code = str(RefusalCode.LOOKUP_FAILED)
            raise RefusalError(code, say("refuse.freeze_lookup")) from error
        if not is_among:
            raise RefusalError(NOT_FREEZER, say("refuse.not_freezer", groups=_named(groups)))

    async def _is_among(self, groups: Mapping[str, Group], person: Person) -> bool:
        """Whether a person is in a group.

        Raises:
            DirectoryError: A look-up failed, and no other group has the person.
        """
        if not groups:
            return person.is_admin
        results = await asyncio.gather(
            *(self._members(group) for group in groups.values()), return_exceptions=True
        )
        for result in results:
            if not isinstance(result, BaseException) and person.user_id in result:
                return True
        failed = next((result for result in results if isinstance(result, BaseException)), None)
        if failed is not None:
            raise failed
        return False

    async def _members(self, group: Group) -> frozenset[str]:
        """Return the members of user groups and channels. A large channel has none."""
        usergroups = await asyncio.gather(*map(self.directory.group_members, group.usergroups))
        channels = await asyncio.gather(*map(self.directory.channel_members, group.channels))
        small = (members for members in channels if len(members) <= MOST_MEMBERS)
        return frozenset[str]().union(*usergroups, *small)

    def _listed(self, group: Group) -> frozenset[str]:
        """Return the people who are listed by id, and the person on call."""
        try:
            present = on_duty(group.rotation, self.clock()) if group.rotation else None
        except TermsError:  # the time zone is unknown on this machine
            present = None
        return frozenset(group.users) | ({present} if present else set())


def _named(groups: Mapping[str, Group]) -> str:
    names = [group.title or name for name, group in groups.items()] or [say("word.admins")]
    if len(names) == 1:
        return names[0]
    return say("line.or", a=", ".join(names[:-1]), b=names[-1])
