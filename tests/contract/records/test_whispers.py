"""The contract of WhisperStore: private answers are work with a lease."""

from __future__ import annotations

from dataclasses import replace

from storage.base import Storage
from tests.contract.builders import a_whisper


async def test_a_whisper_is_added_once(storage: Storage) -> None:
    assert await storage.whispers.add(a_whisper())
    assert not await storage.whispers.add(a_whisper(text="another"))

    assert await storage.whispers.due(now_ms=1_000, limit=9) == [a_whisper()]


async def test_what_its_reader_can_withdraw_stands_in_it(storage: Storage) -> None:
    whisper = a_whisper(withdraw_json='["apr_1", "apr_2"]')
    await storage.whispers.add(whisper)

    assert await storage.whispers.due(now_ms=1_000, limit=9) == [whisper]


async def test_what_its_reader_can_decide_stands_in_it(storage: Storage) -> None:
    whisper = a_whisper(decide_json='["apr_1"]')
    await storage.whispers.add(whisper)

    assert await storage.whispers.due(now_ms=1_000, limit=9) == [whisper]


async def test_its_language_stands_in_it(storage: Storage) -> None:
    whisper = a_whisper(language="de")
    await storage.whispers.add(whisper)

    assert await storage.whispers.due(now_ms=1_000, limit=9) == [whisper]


async def test_due_whispers_come_earliest_first(storage: Storage) -> None:
    for name, due_ms in [("late", 30), ("early", 10), ("later", 40), ("never", None)]:
        await storage.whispers.add(a_whisper(name, due_ms=due_ms))

    due = await storage.whispers.due(now_ms=30, limit=9)

    assert [whisper.whisper_id for whisper in due] == ["early", "late"]
    assert len(await storage.whispers.due(now_ms=99, limit=1)) == 1
    assert await storage.whispers.due(now_ms=99, limit=0) == []


async def test_one_process_has_the_lease(storage: Storage) -> None:
    await storage.whispers.add(a_whisper())

    first = await storage.whispers.claim("whisper-1", owner="a", now_ms=1_000, until_ms=2_000)
    assert first == a_whisper(due_ms=2_000, leased_by="a", leased_until_ms=2_000, fence=1)
    assert await storage.whispers.due(now_ms=1_999, limit=9) == []
    assert (
        await storage.whispers.claim("whisper-1", owner="b", now_ms=1_999, until_ms=9_000) is None
    )

    second = await storage.whispers.claim("whisper-1", owner="b", now_ms=2_000, until_ms=3_000)
    assert second is not None
    assert second.fence == 2
    assert not await storage.whispers.release("whisper-1", fence=1, due_ms=None)
    assert await storage.whispers.release("whisper-1", fence=2, due_ms=5_000)
    assert await storage.whispers.due(now_ms=5_000, limit=9) == [
        replace(second, due_ms=5_000, leased_by="", leased_until_ms=0)
    ]


async def test_a_whisper_that_was_told_is_never_due_again(storage: Storage) -> None:
    born_leased = a_whisper(leased_by="a", leased_until_ms=2_000, due_ms=2_000, fence=1)
    await storage.whispers.add(born_leased)

    assert await storage.whispers.release("whisper-1", fence=1, due_ms=None)

    assert await storage.whispers.due(now_ms=10**12, limit=9) == []
    assert not await storage.whispers.release("whisper-1", fence=1, due_ms=7)
    assert await storage.whispers.claim("unknown", owner="a", now_ms=1, until_ms=2) is None
