"""The contract of the store of starts, on each engine."""

from __future__ import annotations

import asyncio

import pytest

from bot.records.starts import ThreadStart, revisions_of
from bot.stores import Stores
from storage.documents import update
from storage.errors import RecordConflictError
from tests.contract.builders import THREAD_ID, a_start, a_thread

OURS = {"origin.program": "trg_pager"}


async def ids(storage: Stores, where: dict[str, object], **options: object) -> list[str]:
    page = await storage.starts.find(where, sort=["-created_ms"], **options)  # type: ignore[arg-type]
    return [start.id for start in page.documents]


async def test_an_id_is_inserted_once(storage: Stores) -> None:
    """Two replicas at the due minute, or two webhooks with one key."""
    starts = [a_start("sch_1", text=text) for text in ("one", "two")]
    inserted = await asyncio.gather(*(storage.starts.insert(start) for start in starts))
    assert sorted(map(len, inserted)) == [0, 1]


async def test_a_start_comes_back_as_it_was_stored(storage: Stores) -> None:
    start = a_start(
        title="Alert: p99",
        text="{}",
        metadata={"alert": "a1"},
        deliveries=("m1", "m2"),
        depth=1,
        under="1.2",
        thread_id=THREAD_ID,
        ended="stopped",
        message_ts="1.3",
        lifted_by="U2",
    )
    await storage.starts.insert(start)
    storage.starts.known.clear()
    assert await storage.starts.get(start.id) == start


async def test_starts_are_found_and_counted_for_the_limits(storage: Stores) -> None:
    for number in range(4):
        under = "1.2" if number == 3 else ""
        await storage.starts.insert(a_start(f"thr_{number}", created_ms=number, under=under))
    await storage.starts.insert(a_start("thr_c", created_ms=2, channel_id="C2"))
    since = {"created_ms": {"$gt": 0}}
    assert await storage.starts.count({"channel_id": "C1", **since}) == 3
    assert await storage.starts.count(since) == 4
    roots = await ids(storage, {**OURS, "under": "", **since}, limit=2)
    assert roots == ["thr_c", "thr_2"]


async def test_the_newest_start_of_a_key_is_found(storage: Stores) -> None:
    for number in range(3):
        await storage.starts.insert(
            a_start(f"thr_{number}", created_ms=number, key_digest="k" if number < 2 else "")
        )
    assert await ids(storage, {"key_digest": "k"}, limit=1) == ["thr_1"]


async def test_a_due_start_is_claimed_once_and_released_in_its_write(storage: Stores) -> None:
    await storage.starts.insert(a_start(due_ms=5))
    assert not await storage.starts.due(now_ms=4, limit=9)
    assert [start.id for start in await storage.starts.due(now_ms=5, limit=9)] == ["thr_1"]
    claims = [storage.starts.claim("thr_1", owner=o, now_ms=5, until_ms=99) for o in ("a", "b")]
    (claimed,) = [start for start in await asyncio.gather(*claims) if start is not None]
    assert claimed.fence == 1

    def begun(start: ThreadStart) -> ThreadStart:
        return start.changed(thread_id=THREAD_ID, due_ms=None)

    with pytest.raises(RecordConflictError):
        await update(storage.starts, "thr_1", begun, fence=7, releases=True, patience_s=0)
    await update(storage.starts, "thr_1", begun, fence=1, writes_due=True, releases=True)
    stored = await storage.starts.get("thr_1")
    assert (stored.thread_id, stored.due_ms, stored.leased_until_ms) == (THREAD_ID, None, 0)


async def test_revisions_rise_with_the_start_and_its_thread(storage: Stores) -> None:
    await storage.starts.insert(a_start(thread_id=THREAD_ID), a_start("thr_2"))
    await storage.threads.ensure(a_thread())
    first = await revisions_of(storage.starts, storage.threads, ["thr_1", "thr_2", "thr_3"])
    assert first.keys() == {"thr_1", "thr_2"}
    await storage.threads.wake(THREAD_ID, now_ms=5)
    await update(storage.starts, "thr_2", lambda start: start.changed(ended="stopped"))
    later = await revisions_of(storage.starts, storage.threads, ["thr_1", "thr_2"])
    assert all(later[name] > first[name] for name in later)
