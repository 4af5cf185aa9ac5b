"""Several approvals that one person decides at one moment: each on record, told once for all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from bot.approvals.disclosure import Surface
from bot.approvals.due import thread_reactions
from bot.people.lookup import DelegationCache
from bot.records.approval import Approval, Decision, Status
from bot.records.approval_queries import ApprovalCollection, of_turn, open_of
from bot.records.people import DelegationRecord
from storage.errors import StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.due.test_batch_cards import an_office, asked
from tests.unit.bot.approvals.due.test_thread_reactions import on_root
from tests.unit.bot.office import ADA, THREAD_ID, Office, an_actor


async def voted(office: Office, cards: Sequence[Approval]) -> list[Approval]:
    """Approve all, as a batch does: read together, each by a vote of its own."""
    stored = []
    for card in cards:
        seen = await office.approvals.get_pending(
            card.approval_id, an_actor(ADA), shown=card.digest, known=card
        )
        decision = Decision(
            status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest=seen.digest
        )
        stored.append(
            await office.approvals.decide(seen, decision, an_actor(ADA), surface=Surface.CARD)
        )
    return stored


async def followed(office: Office, stored: Sequence[Approval]) -> None:
    await office.approvals.tell(stored)
    for approval in stored:
        office.queue.spawn(office.attendance.attend(approval.approval_id, announced=approval))
    await office.queue.run()


async def test_the_thread_is_woken_once_for_all(storage: SqliteStores) -> None:
    office, cards = await asked(storage, "a", "b", "c")
    stored = await voted(office, cards)
    before = await storage.threads.get(THREAD_ID)
    await office.approvals.tell(stored)
    assert (await storage.threads.get(THREAD_ID)).wakes == before.wakes + 1
    await followed(office, [])
    assert [argument for _, argument in office.ran] == ["a", "b", "c"]


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


async def test_somebody_who_changed_it_meanwhile_goes_before(storage: SqliteStores) -> None:
    office, (first, second) = await asked(storage, "a", "b")
    await office.decide(second, Status.REJECTED)
    with pytest.raises(Exception, match="rejected") as caught:
        await voted(office, [second])
    assert type(caught.value).__name__ == "ApprovalClosedError"
    assert (await storage.approvals.get(first.approval_id)).status is Status.PENDING


@pytest.mark.parametrize("count", [3, 8])
async def test_the_sign_is_looked_at_once_for_all_that_ended(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    looks: list[str] = []

    async def noted(collection: ApprovalCollection, thread_id: str) -> Sequence[Approval]:
        looks.append(thread_id)
        return await open_of(collection, thread_id)

    office, cards = await asked(storage, *"abcdefgh"[:count])
    stored = await voted(office, cards)
    monkeypatch.setattr(thread_reactions, "open_of", noted)
    for approval in stored:  # before any of the calls has run
        await office.attendance.attend(approval.approval_id, announced=approval)
    assert on_root(office) == ["starts"]
    assert len(looks) == 2  # before the end is shown, and after; not twice for each


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
