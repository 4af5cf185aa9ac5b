"""A clock that people put forward."""

from __future__ import annotations

import asyncio

from bot.clock import MovableClock
from tests.support.fakes import FakeClock

HOUR_MS = 3_600_000


class FakeFollower:
    """Notes when it looked for due work."""

    def __init__(self, clock: FakeClock, movable: MovableClock) -> None:
        self.clock, self.movable = clock, movable
        self.is_busy = False
        self.looked: list[int] = []

    async def rest(self) -> bool:
        await asyncio.sleep(0)
        return not self.is_busy

    async def run_due(self) -> None:
        self.looked.append(self.movable() - self.clock())

    async def next_due_ms(self) -> int | None:
        return self.clock() + HOUR_MS


def a_clock() -> tuple[MovableClock, FakeFollower]:
    clock = FakeClock()
    movable = MovableClock(of=clock)
    movable.follower = follower = FakeFollower(clock, movable)
    return movable, follower


async def test_it_goes_as_the_other_and_is_put_forward() -> None:
    clock, follower = a_clock()
    follower.clock.forward(minutes=5)
    assert clock() == follower.clock()
    assert await clock.skip_to(clock() + HOUR_MS)
    assert clock.ahead_ms == HOUR_MS
    assert clock() == follower.clock() + HOUR_MS
    assert clock.seconds() == clock() / 1_000
    assert follower.looked == [HOUR_MS]


async def test_it_is_never_put_back() -> None:
    clock, follower = a_clock()
    assert await clock.skip_to(clock() - HOUR_MS)
    assert clock.ahead_ms == 0
    assert follower.looked == [0]


async def test_it_stays_while_there_is_no_rest() -> None:
    clock, follower = a_clock()
    follower.is_busy = True
    assert not await clock.skip_to(clock() + HOUR_MS)
    assert clock.ahead_ms == 0
    assert follower.looked == []


async def test_it_stays_while_nobody_goes_by_it() -> None:
    clock = MovableClock(of=FakeClock())
    assert not await clock.skip_to(clock() + HOUR_MS)
    assert await clock.next_due_ms() is None
    assert clock.ahead_ms == 0


async def test_two_that_want_the_same_moment_put_it_forward_once() -> None:
    clock, _ = a_clock()
    due_ms = await clock.next_due_ms()
    assert due_ms is not None
    assert all(await asyncio.gather(clock.skip_to(due_ms), clock.skip_to(due_ms)))
    assert clock.ahead_ms == HOUR_MS
