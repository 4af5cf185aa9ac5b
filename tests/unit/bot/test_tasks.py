"""Work of our own: kept, drained, cut off, and never silently lost."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from bot.tasks import AT_ONCE, Closings, Tasks, close_in_time


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


async def test_work_that_is_held_back_begins_at_the_end_of_the_block() -> None:
    tasks, pieces = Tasks(), Pieces()
    with tasks.held_back():
        tasks.spawn(pieces.piece())
        tasks.spawn(pieces.piece())
        await asyncio.sleep(0)
        assert (len(tasks), pieces.begun) == (0, 0)
    assert len(tasks) == 2
    pieces.gate.set()
    await tasks.idle()
    assert pieces.begun == 2


async def test_work_that_is_held_back_begins_however_the_block_ends() -> None:
    tasks, pieces = Tasks(), Pieces()
    pieces.gate.set()

    async def breaks() -> None:
        with tasks.held_back():
            tasks.spawn(pieces.piece())
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await breaks()
    await tasks.idle()
    assert pieces.begun == 1


async def test_what_others_spawn_meanwhile_is_not_held_back() -> None:
    tasks, pieces = Tasks(), Pieces()

    async def other() -> None:
        tasks.spawn(pieces.piece())

    with tasks.held_back():
        await asyncio.create_task(other())
        await pieces.until(1)
    pieces.gate.set()
    await tasks.idle()


async def test_what_is_held_back_at_the_stop_is_dropped() -> None:
    tasks, pieces = Tasks(), Pieces()
    work = pieces.piece()
    with tasks.held_back():
        tasks.spawn(work)
        await tasks.drain(patience=timedelta(0))
    assert len(tasks) == 0
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED


async def test_a_failure_is_logged_and_harms_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
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

    async def until(self, begun: int) -> None:
        """Wait until so many pieces have begun."""
        async with asyncio.timeout(60):
            while self.begun < begun:
                self.any_began.clear()
                await self.any_began.wait()


async def test_a_burst_is_done_a_few_pieces_at_a_time() -> None:
    tasks, pieces = Tasks(long_s=60), Pieces()
    for _ in range(200):
        tasks.spawn(pieces.piece())
    await pieces.until(AT_ONCE)
    await asyncio.sleep(0)
    assert (len(tasks), pieces.begun) == (200, AT_ONCE)
    pieces.gate.set()
    await tasks.idle()
    assert (pieces.begun, pieces.most) == (200, AT_ONCE)


async def test_work_that_waits_for_others_gives_its_place_to_the_next() -> None:
    tasks, pieces = Tasks(2, long_s=0.001), Pieces()
    for _ in range(10):
        tasks.spawn(pieces.piece())
    await pieces.until(10)
    assert pieces.running == 10
    pieces.gate.set()
    await tasks.idle()


async def test_a_place_is_given_back_once() -> None:
    tasks, slow, pieces = Tasks(1, long_s=0.001), Pieces(), Pieces()
    tasks.spawn(slow.piece())
    tasks.spawn(slow.piece())
    await slow.until(2)  # the first has given its place to the second
    slow.gate.set()
    await tasks.idle()
    tasks._long_s = 60
    for _ in range(3):
        tasks.spawn(pieces.piece())
    await pieces.until(1)
    await asyncio.sleep(0)
    assert pieces.running == 1
    pieces.gate.set()
    await tasks.idle()


async def test_the_stop_drops_what_has_not_begun() -> None:
    tasks, pieces = Tasks(2, long_s=60), Pieces()
    for _ in range(200):
        tasks.spawn(pieces.piece())
    await tasks.drain(patience=timedelta(milliseconds=1))
    assert pieces.begun == 2
    assert len(tasks) == 0


async def test_what_is_cut_off_before_its_first_step_is_closed() -> None:
    tasks, pieces = Tasks(), Pieces()
    work = pieces.piece()
    tasks.spawn(work)
    await tasks.drain(patience=timedelta(0))
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
    assert pieces.running <= 1


async def test_one_that_ends_before_anybody_waits_is_not_missed() -> None:
    tasks, slow, quick = Tasks(), Pieces(), Pieces()
    quick.gate.set()
    tasks.spawn(slow.piece())
    tasks.spawn(quick.piece())
    one_ended = tasks.one_ended()
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(tasks) == 1
    async with asyncio.timeout(60):
        await one_ended
    slow.gate.set()
    await tasks.idle()


async def test_what_does_not_close_in_time_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    was_told, gate = asyncio.Event(), asyncio.Event()

    async def close() -> None:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            was_told.set()
            await gate.wait()  # takes no notice of it
        raise OSError("nobody waits for that any more")

    await close_in_time("the disk", close, within_s=0.001)
    assert caplog.messages == ["the disk did not close in time"]
    await was_told.wait()
    gate.set()


async def test_all_is_closed_though_one_closing_fails() -> None:
    closed: list[str] = []
    closings = Closings()

    async def fails() -> None:
        raise OSError("broken")

    async def works() -> None:
        await asyncio.sleep(0)
        closed.append("second")

    closings.add("first", fails)
    closings.add("second", works)
    with pytest.raises(OSError, match="broken"):
        await closings.close()
    assert closed == ["second"]


async def test_of_several_closings_that_fail_none_goes_unsaid(
    caplog: pytest.LogCaptureFixture,
) -> None:
    closings = Closings()

    async def first() -> None:
        raise OSError("broken")

    async def second() -> None:
        raise OSError("broken, too")

    closings.add("first", first)
    closings.add("second", second)
    with pytest.raises(OSError, match=r"broken$"):
        await closings.close()
    assert [str((record.exc_info or (None, None))[1]) for record in caplog.records] == [
        "broken, too"
    ]


async def test_what_all_spawn_can_be_held_back_also_what_was_held_back_before() -> None:
    tasks, pieces = Tasks(), Pieces()
    pieces.gate.set()

    async def answers() -> None:
        with tasks.held_back():
            tasks.spawn(pieces.piece())
        tasks.spawn(pieces.piece())

    with tasks.held_back(of_all=True):
        await asyncio.create_task(answers())
        assert len(tasks) == 0
    await tasks.idle()
    assert pieces.begun == 2
