"""Work of our own: kept, drained, cut off, and never silently lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from bot.tasks import Tasks


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
    await tasks.drain(patience=timedelta(0))

    async def work() -> None:
        raise AssertionError("started")

    tasks.spawn(work())
    await tasks.idle()


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
