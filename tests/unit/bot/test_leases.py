"""The one loop for claimed work, and how long things may take."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from bot.leases import (
    CARD_RETRY,
    EPHEMERAL_RETRY,
    THREAD_RETRY,
    ClaimedRecord,
    ClaimedWork,
    Retry,
    check_order,
)
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
    holds: list[ClaimedRecord[Parcel]] = []

    async def work(hold: ClaimedRecord[Parcel]) -> bool:
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

    async def work(hold: ClaimedRecord[Parcel]) -> bool:
        fences.append(hold.record.fence)
        return hold.record.fence == 3

    await working(Shelf(9), FakeClock()).do("r1", work)
    assert fences == [1, 2, 3]


async def test_what_somebody_else_has_is_left_alone() -> None:
    async def work(_: ClaimedRecord[Parcel]) -> bool:
        raise AssertionError

    await working(Shelf(0), FakeClock()).do("r1", work)


@pytest.mark.parametrize(("gone_s", "is_enough"), [(0, True), (3, True), (4, False), (20, False)])
async def test_a_lease_from_birth_counts_from_the_birth(gone_s: int, *, is_enough: bool) -> None:
    clock = FakeClock()
    parcel = Parcel(1, clock() + 15_000)
    clock.forward(seconds=gone_s)
    hold = working(Shelf(0), clock).already_claimed(parcel)
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


@pytest.mark.parametrize("durations", [(2, 1), (1, 1), (1, 3, 2)])
def test_durations_out_of_order_are_refused(durations: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="out of order"):
        check_order(*(timedelta(seconds=duration) for duration in durations))
