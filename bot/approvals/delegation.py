"""Delegations and absences.

They decide nothing: rights are read again at each click.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.errors import RefusalError, UserFacingError
from bot.people.access import Access
from bot.people.lookup import delegations_of, problem_of
from bot.policy.eligibility import Delegation, Problem
from bot.policy.refusals import LONGEST_MS, RefusalCode, judge_delegation
from bot.ports.people import Actor, Person
from bot.ports.policy import CurrentPolicy
from bot.ports.process import Clock
from bot.records.people import DelegationRecord
from bot.stores import Stores
from bot.words import say

_GROUP = re.compile("[a-z0-9-]{1,40}", re.ASCII)
AWAY = ""
"""Delegate id of an absence."""


def _nothing(_: str) -> None:
    """Ignore the change."""


@dataclass(frozen=True, slots=True)
class Delegating:
    """Lets people delegate their right to approve, and be away."""

    storage: Stores
    access: Access
    policy: CurrentPolicy
    clock: Clock
    left: Callable[[str], None] = _nothing

    async def hand_over(
        self,
        actor: Actor,
        *,
        team_id: str,
        delegate_id: str,
        until_ms: int,
        group: str = "",
        approval_id: str = "",
    ) -> DelegationRecord:
        """Delegate a person's right; an earlier delegation of the same scope ends.

        Args:
            actor: The delegating person.
            team_id: The workspace.
            delegate_id: Slack user id of the delegate.
            until_ms: End of the delegation.
            group: The only policy group to delegate; empty for all.
            approval_id: The only request to delegate; empty for all.

        Returns:
            The delegation as stored.

        Raises:
            RefusalError: The delegation is not possible.
            DirectoryError: A person could not be looked up.
        """
        new = self._record(actor, team_id, delegate_id, until_ms, group)
        new = new.changed(approval_id=approval_id)
        try:
            await self._check(actor, new)
        except UserFacingError as error:
            await self._note_refusal(new, error)
            raise
        await self.storage.delegations.add(new)
        if refusal := await self._late_refusal(new):
            await self.storage.delegations.end(new.delegation_id, now_ms=self.clock())
            await self._note_refusal(new, refusal)
            raise refusal
        await self._note(Act.DELEGATED, new)
        for delegation in await self.own(actor, team_id=team_id):
            if delegation.delegation_id != new.delegation_id and _scope(delegation) == _scope(new):
                await self._end(delegation)
        return new

    async def end(self, actor: Actor, *, team_id: str) -> Sequence[DelegationRecord]:
        """End and return all delegations of a person."""
        delegations = await self.own(actor, team_id=team_id)
        for delegation in delegations:
            await self._end(delegation)
        if delegations:
            self.left(team_id)
        return delegations

    async def own(self, actor: Actor, *, team_id: str) -> Sequence[DelegationRecord]:
        """Return the valid delegations of a person."""
        return [
            delegation
            for delegation in await self._current(actor, team_id)
            if delegation.delegate_id
        ]

    async def ending(
        self, actor: Actor, *, team_id: str, group: str = "", approval_id: str = ""
    ) -> list[str]:
        """Return ids of the delegates that a new delegation of this scope would replace."""
        delegations, scope = await self.own(actor, team_id=team_id), (group, approval_id)
        return list(
            dict.fromkeys(
                delegation.delegate_id for delegation in delegations if _scope(delegation) == scope
            )
        )

    async def handed_to(self, actor: Actor, *, team_id: str) -> Sequence[DelegationRecord]:
        """Return the valid delegations to a person."""
        delegations = await self.storage.delegations.current(team_id, now_ms=self.clock())
        return [delegation for delegation in delegations if delegation.delegate_id == actor.user_id]

    async def go_away(self, actor: Actor, *, team_id: str, until_ms: int) -> DelegationRecord:
        """Store that a person is away until a time; they may still decide.

        Raises:
            RefusalError: The time is in the past or too far ahead.
            NotApproverError: The person is not an active member.
            DirectoryError: The person could not be looked up.
        """
        new = self._record(actor, team_id, AWAY, until_ms, "")
        try:
            await self.access.check_person(actor, team_id=team_id)
            _check_time(until_ms, self.clock())
        except UserFacingError as error:
            await self._note_refusal(new, error)
            raise
        before = await self._absences(actor, team_id)
        await self.storage.delegations.add(new)
        await self._note(Act.AWAY, new)
        for delegation in before:
            await self.storage.delegations.end(delegation.delegation_id, now_ms=self.clock())
        self.left(team_id)
        return new

    async def come_back(self, actor: Actor, *, team_id: str) -> bool:
        """End an absence; return whether there was one."""
        absences = await self._absences(actor, team_id)
        for absence in absences:
            if await self.storage.delegations.end(absence.delegation_id, now_ms=self.clock()):
                await self._note(Act.AWAY, absence, is_over=True)
        return bool(absences)

    async def _check(self, actor: Actor, new: DelegationRecord) -> None:
        if new.group_name:
            known = self.policy.groups()
            if known is None or new.group_name not in known:
                is_name = _GROUP.fullmatch(new.group_name)  # other texts could contain markup
                name = f"“{new.group_name}”" if is_name else say("line.so_named")
                words = say("refuse.no_group", name=name)
                raise RefusalError(RefusalCode.BAD_DELEGATE.value, words)
        _check_time(new.until_ms, self.clock())
        people: dict[str, Problem | None] = {}
        for member in (actor, Actor(user_id=new.delegate_id, team_id="")):
            person: Person = await self.access.directory.person(member.user_id)
            people[member.user_id] = problem_of(person, member, new.team_id)
        _check_delegate(new, people)
        now = self.clock()
        others = await self.storage.delegations.current(new.team_id, now_ms=now)
        if any((other.owner_id, other.delegate_id) == _back(new) for other in others):
            code = RefusalCode.BAD_DELEGATE
            raise RefusalError(code.value, say("refuse.delegate_cycle"))
        _raise(_judge(new, others, people=people, now_ms=now))

    async def _late_refusal(self, new: DelegationRecord) -> RefusalError | None:
        """Return a refusal if concurrent delegations form a cycle."""
        now = self.clock()
        delegations = await self.storage.delegations.current(new.team_id, now_ms=now)
        mine = (new.created_ms, new.delegation_id)
        before = [
            delegation
            for delegation in delegations
            if (delegation.created_ms, delegation.delegation_id) < mine
        ]
        people = dict.fromkeys((new.owner_id, new.delegate_id))
        refusal = _judge(new, before, people=people, now_ms=now)
        return RefusalError(refusal.value, refusal.words) if refusal else None

    async def _current(self, actor: Actor, team_id: str) -> list[DelegationRecord]:
        delegations = await self.storage.delegations.current(team_id, now_ms=self.clock())
        return [delegation for delegation in delegations if delegation.owner_id == actor.user_id]

    async def _absences(self, actor: Actor, team_id: str) -> list[DelegationRecord]:
        return [
            delegation
            for delegation in await self._current(actor, team_id)
            if not delegation.delegate_id
        ]

    async def _end(self, delegation: DelegationRecord) -> None:
        if await self.storage.delegations.end(delegation.delegation_id, now_ms=self.clock()):
            await self._note(Act.DELEGATION_ENDED, delegation)

    def _record(
        self, actor: Actor, team_id: str, delegate_id: str, until_ms: int, group: str
    ) -> DelegationRecord:
        return DelegationRecord(
            delegation_id=f"dlg_{uuid4().hex}",
            team_id=team_id,
            owner_id=actor.user_id,
            delegate_id=delegate_id,
            group_name=group,
            created_ms=self.clock(),
            until_ms=until_ms,
        )

    async def _note(self, act: Act, delegation: DelegationRecord, *, is_over: bool = False) -> None:
        await note(
            self.storage.audit,
            act,
            key=f"{delegation.delegation_id}:over" if is_over else delegation.delegation_id,
            at_ms=self.clock(),
            about="",
            by=delegation.owner_id,
            team_id=delegation.team_id,
            delegate=delegation.delegate_id,
            group=delegation.group_name,
            request=delegation.approval_id,
            until_ms=delegation.until_ms,
            over=is_over or "",
        )

    async def _note_refusal(self, delegation: DelegationRecord, error: UserFacingError) -> None:
        await note(
            self.storage.audit,
            Act.REFUSED,
            key=delegation.delegation_id,
            at_ms=self.clock(),
            about="",
            by=delegation.owner_id,
            team_id=delegation.team_id,
            delegate=delegation.delegate_id,
            why=str(error),
            code=error.code,
        )


def _scope(delegation: DelegationRecord) -> tuple[str, str]:
    """Return the scope of a delegation: a group or a request."""
    return delegation.group_name, delegation.approval_id


def _back(new: DelegationRecord) -> tuple[str, str]:
    return new.delegate_id, new.owner_id


def _judge(
    new: DelegationRecord,
    others: Sequence[DelegationRecord],
    *,
    people: dict[str, Problem | None],
    now_ms: int,
) -> RefusalCode | None:
    (made,) = delegations_of([new])
    known: tuple[Delegation, ...] = delegations_of(others)
    return judge_delegation(made, others=known, people=people, now_ms=now_ms)


def _check_time(until_ms: int, now_ms: int) -> None:
    """Refuse a time that is in the past or too far ahead.

    Raises:
        RefusalError: With the reason.
    """
    if until_ms <= now_ms:
        words = say("refuse.time_over")
    elif until_ms - now_ms > LONGEST_MS:
        words = say("refuse.time_long")
    else:
        return
    raise RefusalError(RefusalCode.BAD_DELEGATE.value, words)


def _check_delegate(new: DelegationRecord, people: Mapping[str, Problem | None]) -> None:
    """Refuse a delegate who is the owner or not an active member.

    Raises:
        RefusalError: With the reason.
    """
    if new.delegate_id == new.owner_id:
        words = say("refuse.delegate_self")
    elif people[new.owner_id] is None and people[new.delegate_id] is not None:
        words = say("refuse.delegate_inactive")
    else:
        return
    raise RefusalError(RefusalCode.BAD_DELEGATE.value, words)


def _raise(refusal: RefusalCode | None) -> None:
    if refusal is not None:
        raise RefusalError(refusal.value, refusal.words)
