"""Several approvals that one person decides at one moment: each on record, told once for all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from bot.people.lookup import DelegationCache
from bot.records.approval import Approval, Status
from bot.records.approval_queries import of_turn
from bot.records.people import DelegationRecord
from storage.errors import StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.due.test_batch_cards import an_office, asked
from tests.unit.bot.office import ADA, Office, an_actor


async def voted(office: Office, cards: Sequence[Approval]) -> list[Approval]:
    """Approve all, as a batch does: read together, each by a vote of its own."""
    stored = []
    for card in cards:
        seen = await office.approvals.get_pending(
            card.approval_id, an_actor(ADA), shown=card.digest, known=card
        )
        stored.append(await office.approve_alone(seen))
    return stored


async def test_what_was_voted_stays_voted_when_the_process_dies(storage: SqliteStores) -> None:
    office, cards = await asked(storage, "a", "b", "c")
    await voted(office, cards[:2])  # and nothing that follows
    office.queue.drop()
    other = an_office(storage, owner="other", clock=office.clock)
    await other.later(seconds=20)
    status_by_id = {
        approval.approval_id: approval.status
        for approval in await of_turn(storage.approvals, cards[0].checkpoint_id)
    }
    assert [status_by_id[card.approval_id] for card in cards] == [
        Status.APPROVED,
        Status.APPROVED,
        Status.PENDING,
    ]
    assert [argument for _, argument in other.ran] == ["a", "b"]


class _Powers:
    def __init__(self) -> None:
        self.reads = 0
        self.is_away = False

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        self.reads += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise StoreUnavailableError("away")
        return ()


async def test_handed_rights_are_read_once_for_a_moment() -> None:
    powers = _Powers()
    once = DelegationCache(powers)
    await asyncio.gather(*(once.current("T1", now_ms=number) for number in range(5)))
    await once.current("T2", now_ms=9)
    assert powers.reads == 2


async def test_no_vote_counts_while_handed_rights_cannot_be_read() -> None:
    powers = _Powers()
    powers.is_away = True
    once = DelegationCache(powers)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            await once.current("T1", now_ms=1)
