"""Absences, and whether the remaining approvers can reach the quorum."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from cachetools import LRUCache

from bot.approvals.changes import blocked
from bot.approvals.due.approval_pass import write_held
from bot.approvals.due.escalation_state import can_hasten
from bot.clock import milliseconds
from bot.leases import LOOK_PATIENCE
from bot.people.lookup import absent_of, delegations_of
from bot.people.quorum import QuorumCheck
from bot.ports.process import Clock
from bot.records.approval import Approval, Kind, Status
from bot.records.approval_queries import ApprovalCollection
from bot.records.people import DelegationRecord, DelegationStore
from bot.stores import Stores

LOOK_AGAIN = timedelta(minutes=1)
"""Interval of checks while no person can decide."""
_PAGE = 100
_REMEMBERED = 1_000
"""Number of approvals whose requested checks this process remembers."""


@dataclass(frozen=True, slots=True)
class Absences:
    """Absences that affect an approval, cached for one pass."""

    delegations: DelegationStore
    clock: Clock
    _known: dict[str, Sequence[DelegationRecord]] = field(default_factory=dict)

    async def away(self, approval: Approval) -> Mapping[str, tuple[str, ...]]:
        """Return absent people, with the people to mention instead; see `Audience`."""
        records = await self._records(approval)
        handed = delegations_of(records) if approval.terms.delegation else ()
        return {
            owner: tuple(
                delegation.delegate
                for delegation in handed
                if delegation.owner == owner and delegation.is_for(approval.approval_id)
            )
            for owner in absent_of(records)
        }

    async def next_ms(self, approval: Approval) -> int | None:
        """Return when the next delegation of an absent approver ends, or None."""
        if not waits_for_people(approval):
            return None
        records = await self._records(approval)
        absent = absent_of(records)
        return min(
            (
                record.until_ms
                for record in records
                if record.delegate_id and record.owner_id in absent
            ),
            default=None,
        )

    async def _records(self, approval: Approval) -> Sequence[DelegationRecord]:
        team_id = approval.team_id
        if team_id not in self._known:
            now = self.clock()
            self._known[team_id] = await self.delegations.current(team_id, now_ms=now)
        return self._known[team_id]


@dataclass(frozen=True, slots=True)
class QuorumMonitor:
    """Checks the quorum at steps, after refused votes, and while too few approvers are left."""

    _asked_ms: LRUCache[str, int] = field(default_factory=lambda: LRUCache(_REMEMBERED))
    _asked: LRUCache[str, bool] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    def asks(self, approval: Approval, now_ms: int) -> bool:
        """Whether a refused vote triggers a check; limited in frequency."""
        since_ms = now_ms - self._asked_ms.get(approval.approval_id, 0)
        if approval.status is not Status.PENDING or since_ms < milliseconds(LOOK_AGAIN):
            return False
        self._asked_ms[approval.approval_id] = now_ms
        self._asked[approval.approval_id] = True
        return True

    async def note_obstacle(
        self,
        approval: Approval,
        approvals: ApprovalCollection,
        quorum_check: QuorumCheck,
        *,
        is_step: bool,
    ) -> Approval:
        """Store whether an approval can be decided. Failed look-ups change nothing.

        Args:
            approval: A pending approval.
            approvals: Stored approvals.
            quorum_check: Checks whether the quorum can be reached.
            is_step: Whether an escalation step is due.
        """
        is_asked = self._asked.pop(approval.approval_id, False)
        if approval.kind is Kind.QUESTION or not (is_step or is_asked or approval.stuck):
            return approval
        try:
            async with asyncio.timeout(LOOK_PATIENCE.total_seconds()):
                missing = await quorum_check.missing(approval)
        except TimeoutError:
            return approval
        stuck = str(missing) if missing is not None else ""
        if stuck == approval.stuck:
            return approval
        now_ms = quorum_check.clock()
        write = partial(blocked, why=stuck, digest=approval.digest, now_ms=now_ms)
        return await write_held(approvals, approval, write) or approval


def waits_for_people(approval: Approval) -> bool:
    """Whether the approval would escalate at once if no approver were left."""
    return approval.status is Status.PENDING and can_hasten(approval, approval.terms)


async def waiting_for_people(storage: Stores, team_id: str) -> AsyncIterator[Approval]:
    """Yield approvals that would escalate at once if no approver were left."""
    approvals, after = await storage.restoring.pending(limit=_PAGE)
    while after:
        for approval in approvals:
            if approval.team_id == team_id and waits_for_people(approval):
                yield approval
        approvals, after = await storage.restoring.pending(limit=_PAGE, after=after)
