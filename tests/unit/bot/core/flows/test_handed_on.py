"""What was decided here is handed on to the pass that goes on with it, in place of a look.

Only to that pass, only where nobody has had the thread since, and only what is still as it was
handed on; else the records say how it was decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents.models import call, say
from bot.core.attendance.signs import WAITS
from bot.core.decisions.unseen import Surface
from storage.records import Approval, Decision, Status
from storage.sqlite import SqliteStorage
from tests.unit.bot.core.attendance.test_signs import on_root
from tests.unit.bot.office import ADA, THREAD_ID, Office, an_actor

FEW, MANY = 2, 8
"""Open approvals that are all read whole, and more."""


async def asked(storage: SqliteStorage, count: int) -> tuple[Office, list[Approval]]:
    calls = [call("pay", {"to": "Mia", "amount": n}, id=f"c{n}") for n in range(count)]
    office = Office(storage, [calls, say("Done.")], expects_ends=True)
    await office.hear("<@UBOT> pay")
    return office, await office.open_approvals()


async def voted(office: Office, card: Approval) -> Approval:
    """Approve it; nothing of what follows."""
    seen = await office.approvals.find(card.approval_id, an_actor(ADA), shown=card.digest)
    decision = Decision(status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest=seen.digest)
    return await office.approvals.decide(seen, decision, an_actor(ADA), surface=Surface.CARD)


def rejected(approval: Approval) -> Approval:
    """The same approval as nobody has decided it."""
    decision = Decision(status=Status.REJECTED, by=ADA, at_ms=1, digest=approval.digest)
    return replace(approval, status=Status.REJECTED, decision=decision)


async def woken(office: Office, handed: Sequence[Approval]) -> None:
    """The thread goes on, with something else handed on than what is on record."""
    lease = office.woken.offer()
    thread = await office.storage.threads.wake(THREAD_ID, now_ms=office.clock(), lease=lease)
    office.woken.keep(THREAD_ID, thread, lease)
    office.attendance.decided.keep(THREAD_ID, handed)
    await office.threads.work(THREAD_ID)


def without_looks(office: Office, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Nobody may look at what is open by these ways."""

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("it was looked at")

    for name in names:
        monkeypatch.setattr(office.storage.approvals, name, refused)


async def test_one_decision_is_not_read_again(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    office, (card,) = await asked(storage, 1)
    without_looks(office, monkeypatch, "open_of", "heads_of", "get_all")
    await office.decide(card)
    assert office.ran == [("pay", ("Mia", 0, "card"))]


async def test_one_of_many_is_found_by_its_revision(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    office, cards = await asked(storage, MANY)
    without_looks(office, monkeypatch, "open_of", "get_all")
    await office.decide(cards[3])
    assert office.ran == [("pay", ("Mia", 3, "card"))]


async def test_what_has_changed_since_is_read(storage: SqliteStorage) -> None:
    office, cards = await asked(storage, MANY)
    stored = await voted(office, cards[0])
    await woken(office, [replace(rejected(stored), revision=stored.revision - 1)])
    assert office.ran == [("pay", ("Mia", 0, "card"))]


@pytest.mark.parametrize("count", [1, FEW, MANY])
async def test_it_counts_only_where_nobody_has_had_the_thread_since(
    storage: SqliteStorage, count: int
) -> None:
    office, cards = await asked(storage, count)
    stored = await voted(office, cards[0])
    now = office.clock()
    await storage.threads.wake(THREAD_ID, now_ms=now)
    other = await storage.threads.claim(THREAD_ID, owner="other", now_ms=now, until_ms=now + 9)
    assert other is not None
    await storage.threads.release(THREAD_ID, fence=other.fence, wakes=other.wakes, now_ms=now)
    await woken(office, [rejected(stored)])
    assert office.ran == [("pay", ("Mia", 0, "card"))]


async def test_what_is_handed_on_is_not_all_where_more_waits(storage: SqliteStorage) -> None:
    office, (first, second) = await asked(storage, FEW)
    await voted(office, second)
    await woken(office, [await voted(office, first)])
    assert sorted(office.ran, key=str) == [("pay", ("Mia", n, "card")) for n in range(FEW)]


async def test_what_nobody_has_decided_lets_nothing_run(storage: SqliteStorage) -> None:
    office, (card,) = await asked(storage, 1)
    await woken(office, [card])
    assert (office.ran, await office.open_approvals()) == ([], [card])


async def test_a_pass_that_may_not_use_it_leaves_nothing_to_the_next(
    storage: SqliteStorage,
) -> None:
    office, (card,) = await asked(storage, 1)
    now = office.clock()
    await storage.threads.wake(THREAD_ID, now_ms=now)
    other = await storage.threads.claim(THREAD_ID, owner="other", now_ms=now, until_ms=now + 9)
    assert other is not None
    await storage.threads.release(THREAD_ID, fence=other.fence, wakes=other.wakes, now_ms=now)
    await woken(office, [rejected(card)])
    assert list(office.attendance.decided.take(THREAD_ID)) == []


async def test_it_is_handed_on_once(storage: SqliteStorage) -> None:
    office, (card,) = await asked(storage, 1)
    await office.decide(card)
    assert list(office.attendance.decided.take(THREAD_ID)) == []


@pytest.mark.parametrize(("count", "looks"), [(3, 0), (MANY, 1)])
async def test_the_root_says_that_something_waits_without_a_look(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch, count: int, looks: int
) -> None:
    office, cards = await asked(storage, count)
    reads = 0
    heads_of = storage.approvals.heads_of

    async def counted(thread_id: str) -> Any:
        nonlocal reads
        reads += 1
        return await heads_of(thread_id)

    monkeypatch.setattr(storage.approvals, "heads_of", counted)
    await office.decide(cards[0])
    assert (reads, WAITS in on_root(office)) == (looks, True)
    for card in cards[1:]:
        assert WAITS in on_root(office)
        await office.decide(card)
    assert on_root(office) == ["ran"]


async def test_who_ends_last_takes_the_sign_off(storage: SqliteStorage) -> None:
    """Two end at one moment: what one of them has read does not keep the sign for the other."""
    office, cards = await asked(storage, 2)
    for card in cards:
        await voted(office, card)
    heads = await storage.approvals.heads_of(THREAD_ID)
    assert WAITS in on_root(office)
    before = [replace(one, status=Status.PENDING) for one in heads]
    office.attendance.saw(THREAD_ID, [heads[0], before[1]])  # after the first, before the second
    await office.attendance.attend(cards[1].approval_id)
    assert on_root(office).count(WAITS) == 0
    office.queue.drop()
