"""A process works on a thread once at a time, and what somebody wants meanwhile is done."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.models import say
from storage.errors import StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.unit.bot.office import THREAD_ID, Office, an_incoming


async def test_what_comes_after_the_release_is_looked_for_once_more(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(storage, [say("One."), say("Two.")])
    release = storage.threads.release

    async def released(thread_id: str, **more: Any) -> bool:
        is_done = await release(thread_id, **more)
        monkeypatch.setattr(storage.threads, "release", release)
        await office.inbox.receive(an_incoming("<@UBOT> and this", ts="1800000000.000200"))
        await office.threads.work(THREAD_ID)
        return is_done

    monkeypatch.setattr(storage.threads, "release", released)
    await office.hear("<@UBOT> hello")
    assert office.shown() == ["One.", "Two."]
    assert (await storage.threads.get(THREAD_ID)).due_ms is None


class Interrupted:
    """A pass that other things happen to while it reads its messages."""

    def __init__(self, office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
        self.office, self.monkeypatch = office, monkeypatch
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()
        self.new = office.storage.inbox.new

    async def begin(self) -> asyncio.Task[None]:
        """Begin a pass, up to there."""
        self.monkeypatch.setattr(self.office.storage.inbox, "new", self._wait)
        await self.office.inbox.receive(an_incoming("<@UBOT> hello"))
        work = asyncio.create_task(self.office.threads.work(THREAD_ID))
        await self.begun.wait()
        self.monkeypatch.setattr(self.office.storage.inbox, "new", self.new)
        return work

    async def _wait(self, *args: Any, **more: Any) -> Any:
        self.begun.set()
        await self.goes_on.wait()
        return await self.new(*args, **more)

    async def sleep_over_the_lease(self) -> None:
        """Its lease ends; another process has the thread for a while, and rests; then it wakes."""
        office = self.office
        office.clock.forward(minutes=1)
        now, threads = office.clock(), office.storage.threads
        taken = await threads.claim(THREAD_ID, owner="other", now_ms=now, until_ms=now + 15_000)
        assert taken is not None
        await threads.release(THREAD_ID, fence=taken.fence, wakes=taken.wakes, now_ms=now)
        await office.inbox.receive(an_incoming("<@UBOT> more", ts="1800000000.000200"))
        await office.threads.work(THREAD_ID)  # it is at it, as far as it knows


async def test_who_came_while_a_pass_was_cut_off_begins_anew(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(storage, [say("One.")])
    play = Interrupted(office, monkeypatch)
    work = await play.begin()
    await play.sleep_over_the_lease()
    work.cancel("the lease was lost")
    with pytest.raises(asyncio.CancelledError):
        await work
    await office.queue.run()  # at once, and not with the next tick
    assert office.shown() == ["One."]
    assert (await storage.threads.get(THREAD_ID)).due_ms is None


async def test_a_pass_that_lost_its_lease_unawares_goes_on_with_the_new_one(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(storage, [say("One.")])
    play = Interrupted(office, monkeypatch)
    work = await play.begin()
    await play.sleep_over_the_lease()
    play.goes_on.set()
    await work
    await office.queue.run()
    assert office.shown() == ["One."]
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.due_ms, thread.leased_by) == (None, "")


async def test_who_came_for_more_before_the_database_went_away_begins_anew(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(storage, [say("One.")])
    release = storage.threads.release

    async def away(*_: Any, **__: Any) -> bool:
        monkeypatch.setattr(storage.threads, "release", release)
        await office.threads.work(THREAD_ID)
        raise StoreUnavailableError("away")

    monkeypatch.setattr(storage.threads, "release", away)
    with pytest.raises(StoreUnavailableError):
        await office.hear("<@UBOT> hello")
    assert len(office.queue.waiting) == 1
    await office.queue.run()
