"""The tick: what is due is started, and no failure ends the ticking."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import cast

import pytest

from agents.models import call, say
from bot.leases import LEASE
from bot.observability.readiness import STANDING_STILL, Readiness
from bot.records.approval import Status
from bot.scheduler import BETWEEN_TICKS, LATE, DueWork, Scheduler, TimeLapse
from bot.tasks import Tasks
from storage.errors import StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.unit.bot.office import Office, an_incoming

ASK = "<@UBOT> pay Mia"
PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
SOON = timedelta(milliseconds=5)


async def test_work_that_a_crash_dropped_is_found(storage: SqliteStores) -> None:
    office = Office(storage, [say("Hello.")])
    await office.inbox.receive(an_incoming(ASK))
    other = Office(storage, [say("Hello.")], clock=office.clock, owner="other")
    other.clock.forward(seconds=LEASE.total_seconds())
    assert await other.sweep.tick() == 1
    await other.queue.run()
    assert other.shown() == ["Hello."]


async def test_work_that_is_still_this_process_s_own_is_done_by_its_tick(
    storage: SqliteStores,
) -> None:
    """Whoever took the message was cut off; its lease is here."""
    office = Office(storage, [say("Hello.")])
    await office.inbox.receive(an_incoming(ASK))
    await office.later()
    assert office.shown() == ["Hello."]


def lapse_of(office: Office, *, patience: timedelta = timedelta(seconds=5)) -> TimeLapse:
    tasks = Tasks()
    return TimeLapse(replace(office.sweep, spawn=tasks.spawn), tasks, patience=patience)


async def test_look_does_what_is_due_before_it_ends(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    approval = await office.asked(ASK)
    lapse = lapse_of(office)
    assert await lapse.next_due_ms() == approval.due_ms
    office.clock.forward(minutes=15)
    await lapse.run_due()
    assert office.notifier.reminders == [approval.approval_id]
    later = await storage.approvals.get(approval.approval_id)
    assert await lapse.next_due_ms() == later.due_ms != approval.due_ms


async def test_next_of_several_things_that_are_due(storage: SqliteStores) -> None:
    office = Office(storage, [say("Hello.")])
    assert await lapse_of(office).next_due_ms() is None
    await office.inbox.receive(an_incoming(ASK))
    assert await lapse_of(office).next_due_ms() == office.clock()


async def test_rest_waits_for_the_end_of_work_and_gives_up(storage: SqliteStores) -> None:
    office = Office(storage, [])
    lapse, end = lapse_of(office, patience=SOON), asyncio.Event()
    assert await lapse.rest()

    async def work() -> None:
        await end.wait()

    lapse.tasks.spawn(work())
    assert not await lapse.rest()
    end.set()
    assert await replace(lapse, patience=timedelta(seconds=5)).rest()


class FailingSweep:
    """Raises what it is told to, in order; then says that it is done."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.done = asyncio.Event()

    async def tick(self) -> int:
        if self.errors:
            raise self.errors.pop(0)
        self.done.set()
        return 0


async def ticked(sweep: FailingSweep) -> None:
    scheduler = Scheduler(cast(DueWork, sweep), every=SOON)
    scheduler.start()
    try:
        async with asyncio.timeout(60):
            await sweep.done.wait()
    finally:
        scheduler.stop()


@pytest.mark.parametrize(
    "error", [lambda: StoreUnavailableError("down"), lambda: ValueError("a fault of ours")]
)
async def test_a_failed_tick_is_followed_by_another(
    error: Callable[[], Exception], caplog: pytest.LogCaptureFixture
) -> None:
    await ticked(FailingSweep(error()))
    assert "tick_failed" in [getattr(record, "action", "") for record in caplog.records]


class SetClock(datetime):
    """APScheduler's clock, which a test can put back."""

    behind = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> SetClock:
        return cls.fromtimestamp(time.time() - cls.behind.total_seconds(), tz)


@pytest.fixture
def put_back(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Puts the clock by which APScheduler waits back; the steady clock goes on."""
    for module in ("schedulers.base", "executors.base", "triggers.interval"):
        monkeypatch.setattr(f"apscheduler.{module}.datetime", SetClock)
    return lambda behind: monkeypatch.setattr(SetClock, "behind", behind)


BACK = [timedelta(seconds=90), timedelta(hours=1), timedelta(days=30)]
EVERY = timedelta(milliseconds=200)


@pytest.mark.parametrize("behind", BACK)
async def test_i4_a_clock_that_is_put_back_stops_no_reminder_and_no_expiry(
    storage: SqliteStores, put_back: Callable[[timedelta], None], behind: timedelta
) -> None:
    office = Office(storage, [PAY, say("Nobody answered.")])
    approval = await office.asked(ASK)
    ticks: asyncio.Queue[None] = asyncio.Queue()

    class Sweep:
        failing: Mapping[str, Exception] = MappingProxyType({})

        async def tick(self) -> None:
            await office.later()
            ticks.put_nowait(None)

        async def seal(self) -> None:
            pass

    scheduler = Scheduler(cast(DueWork, Sweep()), every=EVERY)
    readiness = Readiness(storage, is_late=scheduler.is_late, now=ticks.qsize)
    scheduler.start()
    async with asyncio.timeout(60):  # less than any of `BACK`, which APScheduler alone would wait
        await ticks.get()
        office.clock.forward(minutes=-behind / timedelta(minutes=1))
        put_back(behind)
        await ticks.get()  # the one that APScheduler has planned already
        await ticks.get()
        office.clock.now_ms = approval.created_ms + 15 * 60_000  # the reminder is due by any clock
        while await readiness.fault():
            await ticks.get()
        while not office.notifier.reminders:
            await ticks.get()
        office.clock.forward(hours=8)
        while (await storage.approvals.get(approval.approval_id)).status is not Status.EXPIRED:
            await ticks.get()
    scheduler.stop()


async def test_a_scheduler_that_does_not_tick_is_not_ready(storage: SqliteStores) -> None:
    now = [0]
    scheduler = Scheduler(cast(DueWork, FailingSweep()), steady=lambda: now[0])
    readiness = Readiness(storage, is_late=scheduler.is_late, now=lambda: now[0])
    await scheduler.tick()
    assert await readiness.fault() == ""

    now[0] += LATE * BETWEEN_TICKS // timedelta(milliseconds=1) + 1
    assert await readiness.fault() == STANDING_STILL

    await scheduler.tick()
    now[0] += 1_000
    assert await readiness.fault() == ""


async def test_stop_is_harmless_before_the_start_and_twice() -> None:
    scheduler = Scheduler(cast(DueWork, FailingSweep()), every=SOON)
    scheduler.stop()
    scheduler.start()
    scheduler.stop()
    await asyncio.sleep(0)  # the shutdown takes one turn of the loop
    scheduler.stop()


class HangingSweep:
    """A sweep that never ends."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()

    async def tick(self) -> int:
        self.has_begun.set()
        await asyncio.Event().wait()
        return 0

    async def seal(self) -> None:
        await asyncio.Event().wait()


async def test_a_stop_during_a_tick_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    sweep = HangingSweep()
    others = asyncio.all_tasks()
    scheduler = Scheduler(cast(DueWork, sweep), every=SOON)
    scheduler.start()
    async with asyncio.timeout(60):
        await sweep.has_begun.wait()
    scheduler.stop()
    await asyncio.wait(asyncio.all_tasks() - others, timeout=60)
    assert asyncio.all_tasks() == others
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("error", [StoreUnavailableError("down"), ValueError("a fault of ours")])
async def test_a_failed_look_at_the_policy_is_followed_by_another(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("bot.scheduler.BETWEEN_LOOKS", SOON)
    errors, looked = [error], asyncio.Event()

    async def look() -> None:
        if errors:
            raise errors.pop()
        looked.set()

    scheduler = Scheduler(cast(DueWork, FailingSweep()), watch=look)
    scheduler.start()
    try:
        async with asyncio.timeout(60):
            await looked.wait()
    finally:
        scheduler.stop()
    assert "tick_failed" in [getattr(record, "action", "") for record in caplog.records]
