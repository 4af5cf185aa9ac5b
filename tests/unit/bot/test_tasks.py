"""Work of our own: kept, drained, cut off, and never silently lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from bot.tasks import (
    AT_ONCE,
    FEW,
    FRESH_S,
    LATEST_S,
    LONGEST_S,
    QUIET_S,
    STEP,
    Tasks,
    allowance,
)


async def test_idle_waits_for_all_work_and_what_it_starts() -> None:
    tasks = Tasks()
    done: list[str] = []

    async def inner() -> None:
        done.append("inner")

    async def outer() -> None:
        tasks.spawn(inner())
        done.append("outer")

    tasks.spawn(outer())
    await tasks.idle()
    assert done == ["outer", "inner"]


async def test_drain_waits() -> None:
    tasks = Tasks()
    gate = asyncio.Event()
    done: list[str] = []

    async def work() -> None:
        await gate.wait()
        done.append("work")

    tasks.spawn(work())
    asyncio.get_running_loop().call_soon(gate.set)
    await tasks.drain(patience=timedelta(seconds=5))
    assert done == ["work"]


async def test_drain_cuts_off_what_takes_too_long() -> None:
    tasks = Tasks()
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cut")

    tasks.spawn(work())
    await tasks.drain(patience=timedelta(milliseconds=10))
    assert ended == ["cut"]


async def test_after_drain_nothing_starts() -> None:
    tasks = Tasks()
    started: list[str] = []
    await tasks.drain(patience=timedelta(0))

    async def work() -> None:
        started.append("work")

    tasks.spawn(work())
    assert len(tasks) == 0
    await asyncio.sleep(0)
    assert started == []


async def test_a_failure_is_logged_and_harms_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = Tasks()
    done: list[str] = []

    async def fails() -> None:
        raise ValueError("broken")

    async def works() -> None:
        done.append("works")

    tasks.spawn(fails())
    tasks.spawn(works())
    await tasks.idle()
    assert done == ["works"]
    (record,) = caplog.records
    assert getattr(record, "action", "") == "work_failed"
    assert record.exc_info is not None


@dataclass
class Steady:
    """Time that goes on when it is told to."""

    seconds: float = 100.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Pieces:
    """Work that tells how much of it is done at a time."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: int = 0
    running: int = 0
    most: int = 0
    any_began: asyncio.Event = field(default_factory=asyncio.Event)

    async def piece(self) -> None:
        self.begun += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.any_began.set()
        await self.gate.wait()
        self.running -= 1

    async def next_look(self) -> None:
        """Wait until another piece has begun."""
        self.any_began.clear()
        async with asyncio.timeout(10):
            await self.any_began.wait()


@pytest.mark.parametrize(
    ("is_quiet", "waited_s", "fresh", "most"),
    [
        (True, 0, 0, STEP),
        (True, 0, AT_ONCE - 1, 1),
        (True, 0, AT_ONCE, 0),
        (True, 0, AT_ONCE + 5, 0),
        (False, 0, 0, 0),
        (False, LONGEST_S / 2, 0, 0),
        (False, LONGEST_S, 0, 1),
        (False, LONGEST_S, FEW - 1, 1),
        (False, LONGEST_S, FEW, 0),
        (False, LATEST_S, FEW, STEP),
        (False, LATEST_S, AT_ONCE, 0),
    ],
)
def test_how_much_may_begin(*, is_quiet: bool, waited_s: float, fresh: int, most: int) -> None:
    assert allowance(is_quiet=is_quiet, waited_s=waited_s, fresh=fresh) == most


async def test_a_burst_is_done_a_few_pieces_at_a_time() -> None:
    tasks, pieces = Tasks(Steady()), Pieces()
    for _ in range(200):
        tasks.spawn(pieces.piece())
    while pieces.begun < AT_ONCE:
        await pieces.next_look()
    assert len(tasks) == 200
    pieces.gate.set()
    await tasks.idle()
    assert (pieces.begun, pieces.most) == (200, AT_ONCE)


async def test_work_that_waits_for_a_model_makes_room() -> None:
    now, pieces = Steady(), Pieces()
    tasks = Tasks(now)
    for _ in range(2 * AT_ONCE):
        tasks.spawn(pieces.piece())
    while pieces.begun < 2 * AT_ONCE:
        await pieces.next_look()
        now.seconds += 2 * FRESH_S
    assert pieces.running == 2 * AT_ONCE
    pieces.gate.set()
    await tasks.idle()


async def test_people_go_first() -> None:
    now, pieces = Steady(), Pieces()
    tasks = Tasks(now)
    pieces.gate.set()
    tasks.begin_urgent()
    tasks.begin_urgent()
    tasks.spawn(pieces.piece())
    tasks.end_urgent()
    tasks._look()
    assert not tasks._running
    tasks.end_urgent()
    tasks._look()
    assert not tasks._running  # the next of them may come at once
    now.seconds += 2 * QUIET_S
    await tasks.idle()
    assert pieces.begun == 1


async def test_under_constant_clicks_work_begins_all_the_same() -> None:
    now, pieces = Steady(), Pieces()
    tasks = Tasks(now)
    tasks.begin_urgent()
    for _ in range(50):
        tasks.spawn(pieces.piece())
    now.seconds += LONGEST_S
    while pieces.begun < FEW:
        await pieces.next_look()
        assert pieces.begun == pieces.running
    tasks._look()
    assert pieces.running == FEW
    now.seconds += LATEST_S
    tasks._look()
    await pieces.next_look()
    assert pieces.running > FEW
    pieces.gate.set()
    await tasks.idle()
    assert pieces.begun == 50


async def test_the_stop_begins_what_waits_and_drops_what_is_too_much() -> None:
    tasks, pieces = Tasks(Steady()), Pieces()
    tasks.begin_urgent()
    for _ in range(200):
        tasks.spawn(pieces.piece())
    await tasks.drain(patience=timedelta(seconds=QUIET_S / 2))
    assert 0 < pieces.begun <= AT_ONCE
    assert len(tasks) == 0
