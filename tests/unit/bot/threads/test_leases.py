"""The lease of a thread: prolonged while the work lasts, and never outlived by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from agents.models import say
from bot.records.thread import Thread
from bot.threads.worker import Threads
from storage.errors import StoreUnavailableError
from tests.support.fakes import FakeClock
from tests.support.stores import SqliteStores
from tests.unit.bot.office import THREAD_ID, Office, an_incoming

ASK = "<@UBOT> hi"
LEASE_MS = 15_000


@dataclass
class Beats:
    """What happens to the lease, one beat after the other; time goes on by sleeping."""

    clock: FakeClock
    outcomes: list[bool | Exception]
    until: list[int] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.forward(seconds=seconds)
        await asyncio.sleep(0)

    async def extend(self, _: str, *, fence: int, until_ms: int) -> bool:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        self.until.append(until_ms)
        return outcome


async def endless(_: Thread) -> list[str]:
    await asyncio.Event().wait()
    return []


async def working(
    storage: SqliteStores, make: Callable[[FakeClock], Beats]
) -> tuple[Threads, Beats, int]:
    """A thread with endless work; how its lease fares is what the test says."""
    office = Office(storage, [say("Hello.")])
    await office.inbox.receive(an_incoming(ASK))
    beats = make(office.clock)
    storage.threads.extend = beats.extend  # type: ignore[assignment]
    inbox = SimpleNamespace(sort=endless)
    threads = replace(office.threads, inbox=inbox, sleep=beats.sleep, beat=beats.sleep)  # type: ignore[arg-type]
    return threads, beats, office.clock()


async def test_a_lost_lease_ends_the_work_at_once(storage: SqliteStores) -> None:
    threads, beats, began_ms = await working(storage, lambda clock: Beats(clock, [True, False]))
    with pytest.raises(asyncio.CancelledError):
        await threads.work(THREAD_ID)
    assert beats.slept == [5.0, 5.0]
    assert beats.until[0] == began_ms + 5_000 + LEASE_MS


async def test_a_fault_that_passes_ends_nothing(storage: SqliteStores) -> None:
    gone = StoreUnavailableError("gone")
    threads, beats, began_ms = await working(
        storage, lambda clock: Beats(clock, [gone, gone, True, False])
    )
    with pytest.raises(asyncio.CancelledError):
        await threads.work(THREAD_ID)
    assert beats.slept == [5.0, 0.5, 0.5, 5.0]
    assert beats.until[0] == began_ms + 6_000 + LEASE_MS


async def test_a_store_that_does_not_answer_is_not_waited_for_beyond_the_end(
    storage: SqliteStores,
) -> None:
    threads, _, _ = await working(storage, lambda clock: Beats(clock, []))

    async def hangs(*_: object, **__: object) -> bool:
        await asyncio.Event().wait()
        return True

    storage.threads.extend = hangs
    threads = replace(threads, lease=threads.lease / 500, sleep=asyncio.sleep, beat=asyncio.sleep)
    threads.clock.follow()  # type: ignore[attr-defined]
    await storage.threads.wake(THREAD_ID, now_ms=threads.clock())
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await threads.work(THREAD_ID)


async def test_work_that_was_cut_off_is_found_again_at_once(storage: SqliteStores) -> None:
    threads, _, _ = await working(storage, lambda clock: Beats(clock, [False]))
    with pytest.raises(asyncio.CancelledError):
        await threads.work(THREAD_ID)
    second = Office(storage, [say("Hello.")], clock=threads.clock, owner="second")  # type: ignore[arg-type]
    assert not (await storage.threads.get(THREAD_ID)).was_cut_off  # it is no crash
    assert await second.sweep.tick() == 1
    await second.queue.run()
    assert second.shown() == ["Hello."]


async def test_work_that_does_not_end_with_its_lease_keeps_nobody_from_the_thread(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [say("Hello.")])
    await office.inbox.receive(an_incoming(ASK))
    is_cut_off, is_stuck = asyncio.Event(), asyncio.Event()
    beats, inbox = Beats(office.clock, [False]), SimpleNamespace()

    async def stubborn(_: Thread) -> list[str]:
        inbox.sort = office.inbox.sort
        try:
            return await endless(_)
        finally:  # as a tool does that closes a dead connection
            is_cut_off.set()
            await is_stuck.wait()

    inbox.sort = stubborn
    storage.threads.extend = beats.extend  # type: ignore[assignment]
    threads = replace(office.threads, inbox=inbox, sleep=beats.sleep, beat=beats.sleep)  # type: ignore[arg-type]
    stubborn_work = asyncio.create_task(threads.work(THREAD_ID))
    await is_cut_off.wait()
    office.clock.forward(seconds=15)
    await replace(threads, sleep=asyncio.sleep, beat=asyncio.sleep).work(THREAD_ID)
    is_stuck.set()
    with pytest.raises(asyncio.CancelledError):
        await stubborn_work
    assert office.shown() == ["Hello."]


async def test_a_thread_that_others_cut_off_is_not_given_up(storage: SqliteStores) -> None:
    """Five processes died while they had it, and none while it alone was tried again."""
    office = Office(storage, [say("Hello.")])
    await office.inbox.receive(an_incoming(ASK))
    for _ in range(5):
        office.clock.forward(seconds=15)
        until_ms = office.clock() + 15_000
        assert await storage.threads.claim(
            THREAD_ID, owner="dead", now_ms=office.clock(), until_ms=until_ms
        )
    office.clock.forward(seconds=15)

    await office.later()

    assert office.shown() == ["Hello."]
    assert not (await storage.threads.get(THREAD_ID)).was_cut_off


async def crash(office: Office, *, times: int) -> None:
    """Let so many processes die while they try the thread alone."""
    store = office.storage.threads
    for _ in range(times):
        office.clock.forward(seconds=15)
        now = office.clock()
        thread = await store.claim(THREAD_ID, owner="dead", now_ms=now, until_ms=now + 15_000)
        assert thread is not None
        await store.count_crash(THREAD_ID, fence=thread.fence)
    office.clock.forward(seconds=15)


@pytest.mark.parametrize("at_end", [0, 1, 2])
async def test_i4_a_turn_is_given_up_in_words_though_a_process_dies_at_that_too(
    storage: SqliteStores, at_end: int
) -> None:
    office = Office(storage, [say("Hello.")])
    await office.inbox.receive(an_incoming(ASK))
    await crash(office, times=3 + at_end)

    await office.later()

    (text,) = office.shown()
    assert "This stopped my process 3 times" in text
    assert not (await storage.threads.get(THREAD_ID)).was_cut_off


async def test_a_thread_that_crashes_each_time_that_it_is_given_up_is_set_aside(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [say("Hello.")])
    await office.inbox.receive(an_incoming(ASK))
    await crash(office, times=6)

    await office.later()

    assert office.shown() == []
    assert await storage.threads.count_due(now_ms=office.clock()) == 0


@pytest.mark.parametrize("step", ["checkpoints.save", "threads.release"])
async def test_i4_a_process_that_outlives_faults_of_its_store_has_not_died_of_the_thread(
    storage: SqliteStores, step: str
) -> None:
    """A disk is full, or a server is changed, in the middle of the work, four times in a row."""
    office = Office(storage, [say("Hello.")] * 9)
    name, _, method = step.partition(".")
    store = getattr(storage, name)
    whole, faults = getattr(store, method), [StoreUnavailableError("gone")] * 4

    async def fails(*args: object, **more: object) -> object:
        if faults:
            raise faults.pop()
        return await whole(*args, **more)

    setattr(store, method, fails)
    thread_id = await office.inbox.receive(an_incoming(ASK))
    assert thread_id is not None
    while faults:
        with pytest.raises(StoreUnavailableError):
            await office.threads.work(thread_id)
        assert await office.sweep.tick() == 0  # the store is left alone for a while
        office.clock.forward(minutes=2)
    await office.later()

    assert office.shown() == ["Hello."]
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.turn_open, thread.due_ms, thread.was_cut_off) == (False, None, False)
