"""People who are away, and what follows when nobody is left who could decide (6.3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from bot.core.attendance.course import can_hasten
from bot.people.handed import absent_of, delegations_of
from bot.people.terms_of import terms_of
from bot.policy.terms import TermsError
from bot.ports.process import Clock
from storage.base import Storage
from storage.ports.rights import DelegationStore
from storage.records import Approval, DelegationRecord, Status

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Absences:
    """Says who is away from an approval; read once, for one moment.

    Args:
        delegations: Where absences and delegations are kept.
        clock: The time now.
    """

    delegations: DelegationStore
    clock: Clock
    _known: dict[str, Sequence[DelegationRecord]] = field(default_factory=dict)

    async def away(self, approval: Approval) -> Mapping[str, tuple[str, ...]]:
        """Find out who is not to be mentioned, and who is in their place; see `Audience`."""
        records = await self._records(approval)
        handed = delegations_of(records) if terms_of(approval).delegation else ()
        return {
            owner: tuple(one.delegate for one in handed if one.owner == owner)
            for owner in absent_of(records)
        }

    async def next_ms(self, approval: Approval) -> int | None:
        """When somebody stops standing in for a person who stays away; None where nobody does."""
        if not waits_for_people(approval):
            return None
        records = await self._records(approval)
        absent = absent_of(records)
        return min(
            (one.until_ms for one in records if one.delegate_id and one.owner_id in absent),
            default=None,
        )

    async def _records(self, approval: Approval) -> Sequence[DelegationRecord]:
        team_id = approval.team_id
        if team_id not in self._known:
            now = self.clock()
            self._known[team_id] = await self.delegations.current(team_id, now_ms=now)
        return self._known[team_id]


def waits_for_people(approval: Approval) -> bool:
    """Whether backups would be asked at once, if nobody were left."""
    if approval.status is not Status.PENDING or not approval.terms_json:
        return False
    try:
        terms = terms_of(approval)
    except TermsError:
        return False
    return can_hasten(approval, terms)


async def waiting_for_people(storage: Storage, team_id: str) -> AsyncIterator[Approval]:
    """All approvals of a workspace whose backups would be asked at once, if nobody were left."""
    approvals, after = await storage.restoring.pending(limit=_PAGE)
    while after:
        for approval in approvals:
            if approval.team_id == team_id and waits_for_people(approval):
                yield approval
        approvals, after = await storage.restoring.pending(limit=_PAGE, after=after)
