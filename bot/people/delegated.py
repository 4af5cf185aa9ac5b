"""Stored delegations and absences (6.1, 6.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from bot.people.model import DelegationRecord
from bot.policy.eligibility import Delegation


class PowersNow(Protocol):
    """Reads the delegations of a workspace."""

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        """Return the valid records; see `DelegationStore.current`."""


def delegations_of(records: Iterable[DelegationRecord]) -> tuple[Delegation, ...]:
    """Return the delegations, oldest first."""
    return tuple(
        Delegation(
            owner=one.owner_id,
            delegate=one.delegate_id,
            until_ms=one.until_ms,
            group=one.group_name,
            approval_id=one.approval_id,
        )
        for one in records
        if one.delegate_id
    )


def absent_of(records: Iterable[DelegationRecord]) -> dict[str, int]:
    """Return absent people by user id, with the end of each absence."""
    found: dict[str, int] = {}
    for one in records:
        if not one.delegate_id:
            found[one.owner_id] = max(one.until_ms, found.get(one.owner_id, 0))
    return found
