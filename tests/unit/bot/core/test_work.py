"""The one loop for claimed work, and how long things may take."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from bot.core.work import (
    BEAT,
    CARD_RETRY,
    EPHEMERAL_RETRY,
    LEASE,
    THREAD_RETRY,
    UNUSED,
    ClaimedWork,
    Hold,
    Retry,
    TakenLeases,
    check_order,
    to_its_end,
)
from storage.records import Approval
from tests.contract.builders import an_approval
from tests.support.fakes import FakeClock


@dataclass(frozen=True)
class Parcel:
    """A record under a lease."""

    fence: int
    leased_until_ms: int


@dataclass
class Shelf:
    """Has work so many times."""

    times: int
    claims: list[tuple[str, str, int, int]] = field(default_factory=list)

    async def claim(
        self, record_id: str, /, *, owner: str, now_ms: int, until_ms: int
    ) -> Parcel | None:
        if len(self.claims) >= self.times:
            return None
        self.claims.append((record_id, owner, now_ms, until_ms))
        return Parcel(len(self.claims), until_ms)


def working(shelf: Shelf, clock: FakeClock) -> ClaimedWork[Parcel]:
    return ClaimedWork(claim=shelf.claim, owner="me", clock=clock)


async def test_work_is_claimed_for_a_lease() -> None:
    shelf, clock = Shelf(1), FakeClock()
    holds: list[Hold[Parcel]] = []

    async def work(hold: Hold[Parcel]) -> bool:
        holds.append(hold)
        return True

    await working(shelf, clock).do("r1", work)
    assert shelf.claims == [("r1", "me", clock(), clock() + 15_000)]
    (hold,) = holds
    assert (hold.record.fence, hold.since_ms) == (1, clock())
    left = hold.deadline - asyncio.get_running_loop().time()
    assert 0 < left <= 12


async def test_what_came_meanwhile_is_done_under_a_new_claim() -> None:
    fences: list[int] = []

    async def work(hold: Hold[Parcel]) -> bool:
        fences.append(hold.record.fence)
        return hold.record.fence == 3

    await working(Shelf(9), FakeClock()).do("r1", work)
    assert fences == [1, 2, 3]


async def test_what_somebody_else_has_is_left_alone() -> None:
    async def work(_: Hold[Parcel]) -> bool:
        raise AssertionError

    await working(Shelf(0), FakeClock()).do("r1", work)


@pytest.mark.parametrize(("gone_s", "is_enough"), [(0, True), (3, True), (4, False), (20, False)])
async def test_a_lease_from_birth_counts_from_the_birth(gone_s: int, *, is_enough: bool) -> None:
    clock = FakeClock()
    parcel = Parcel(1, clock() + 15_000)
    clock.forward(seconds=gone_s)
    hold = working(Shelf(0), clock).born(parcel)
    assert (hold is not None) == is_enough
    if hold is not None:
        left = hold.deadline - asyncio.get_running_loop().time()
        assert left <= 12 - gone_s


def test_what_slack_asks_for_goes_before_our_own_wait() -> None:
    retry = Retry(timedelta(seconds=5), timedelta(minutes=1))
    assert retry.wait_ms(7, "r1", timedelta(seconds=2)) == 2_000
    assert 5_000 <= retry.wait_ms(0, "r1") <= 6_250
    assert 60_000 <= retry.wait_ms(7, "r1") <= 75_000


@pytest.mark.parametrize("retry", [THREAD_RETRY, CARD_RETRY, EPHEMERAL_RETRY])
def test_what_failed_is_not_tried_all_the_time(retry: Retry) -> None:
    waits = [retry.wait_ms(attempts, "r1") for attempts in range(12)]
    assert waits[0] >= 5_000
    assert waits[-1] >= 2 * 60_000


def test_a_lease_outlives_a_beat_that_fails() -> None:
    assert 2 * BEAT < LEASE


@pytest.mark.parametrize("durations", [(2, 1), (1, 1), (1, 3, 2)])
def test_durations_out_of_order_are_refused(durations: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="out of order"):
        check_order(*(timedelta(seconds=duration) for duration in durations))


def test_durations_in_order() -> None:
    check_order(timedelta(seconds=1), timedelta(seconds=2), timedelta(minutes=1))


def marked(office_clock: FakeClock, taken: TakenLeases[Approval], *, revision: int = 1) -> Approval:
    """What a write returns that took along the lease that is offered now."""
    lease = taken.offer()
    assert lease is not None
    stored = replace(
        an_approval(revision=revision, fence=1),
        leased_by=lease.owner,
        leased_until_ms=lease.until_ms,
        due_ms=lease.until_ms,
    )
    assert lease.until_ms == office_clock() + LEASE.total_seconds() * 1000
    taken.keep(stored.approval_id, stored, lease)
    return stored


def test_a_lease_that_a_write_took_along_is_had_once() -> None:
    clock = FakeClock()
    taken: TakenLeases[Approval] = TakenLeases("me", clock)
    stored = marked(clock, taken)
    assert taken.pop(stored.approval_id) == stored
    assert taken.pop(stored.approval_id) is None


def test_under_a_taken_lease_the_newest_record_is_the_one() -> None:
    clock = FakeClock()
    taken: TakenLeases[Approval] = TakenLeases("me", clock)
    stored = marked(clock, taken)
    clock.forward(seconds=1)
    newer = replace(stored, revision=2, due_ms=clock())
    taken.keep(newer.approval_id, newer, taken.offer())
    assert taken.pop(stored.approval_id) == newer


def test_a_lease_that_somebody_else_has_is_not_ours() -> None:
    clock = FakeClock()
    taken: TakenLeases[Approval] = TakenLeases("me", clock)
    first = marked(clock, taken)
    others = replace(first, leased_by="other", fence=2)
    taken.keep(others.approval_id, others, taken.offer())
    assert taken.pop(first.approval_id) == first  # the fence keeps it from writing
    taken.keep(others.approval_id, others, taken.offer())
    assert taken.pop(first.approval_id) is None


def test_a_process_that_stops_takes_no_lease_that_others_would_wait_for() -> None:
    taken: TakenLeases[Approval] = TakenLeases("me", FakeClock(), lambda: True)
    assert taken.offer() is None


async def test_work_begins_with_the_lease_that_it_is_given() -> None:
    shelf, clock = Shelf(1), FakeClock()
    given = Hold(Parcel(7, 1), 0, 1.0)
    fences: list[int] = []

    async def work(hold: Hold[Parcel]) -> bool:
        fences.append(hold.record.fence)
        return len(fences) == 2

    await working(shelf, clock).do("p", work, hold=given)
    assert fences == [7, 1]  # there was more to do: claimed as ever


async def test_a_lease_that_nobody_has_come_for_is_known_after_a_while() -> None:
    clock = FakeClock()
    taken: TakenLeases[Approval] = TakenLeases("me", clock)
    lease = taken.offer()
    assert lease is not None
    until_ms = lease.until_ms
    record = an_approval(leased_by="me", leased_until_ms=until_ms, due_ms=until_ms, fence=1)
    taken.keep(record.approval_id, record, lease)
    assert taken.unused() == []
    clock.forward(seconds=UNUSED.total_seconds())
    assert taken.unused() == [record.approval_id]
    taken.pop(record.approval_id)
    assert taken.unused() == []


async def test_a_write_comes_to_its_end_though_nobody_waits() -> None:
    gate, ended = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        await gate.wait()
        ended.set()
        raise ValueError("told to nobody")

    waiting = asyncio.create_task(to_its_end(write()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()
    await ended.wait()
    with pytest.raises(ValueError, match="told"):
        await to_its_end(write())
