"""The contract of WhisperStore: private answers are work with a lease."""

from __future__ import annotations

from bot.stores import Stores
from tests.contract.builders import a_whisper


async def test_a_whisper_is_added_once(storage: Stores) -> None:
    assert await storage.ephemeral_messages.insert(a_whisper())
    assert not await storage.ephemeral_messages.insert(a_whisper(text="another"))

    assert await storage.ephemeral_messages.due(now_ms=1_000, limit=9) == [a_whisper()]


async def test_what_its_reader_can_withdraw_stands_in_it(storage: Stores) -> None:
    whisper = a_whisper(withdraw=("apr_1", "apr_2"))
    await storage.ephemeral_messages.insert(whisper)

    assert await storage.ephemeral_messages.due(now_ms=1_000, limit=9) == [whisper]


async def test_what_its_reader_can_decide_stands_in_it(storage: Stores) -> None:
    whisper = a_whisper(decide=("apr_1",))
    await storage.ephemeral_messages.insert(whisper)

    assert await storage.ephemeral_messages.due(now_ms=1_000, limit=9) == [whisper]


async def test_its_language_stands_in_it(storage: Stores) -> None:
    whisper = a_whisper(language="de")
    await storage.ephemeral_messages.insert(whisper)

    assert await storage.ephemeral_messages.due(now_ms=1_000, limit=9) == [whisper]


async def test_due_whispers_come_earliest_first(storage: Stores) -> None:
    for name, due_ms in [("late", 30), ("early", 10), ("later", 40), ("never", None)]:
        await storage.ephemeral_messages.insert(a_whisper(name, due_ms=due_ms))

    due = await storage.ephemeral_messages.due(now_ms=30, limit=9)

    assert [whisper.message_id for whisper in due] == ["early", "late"]
    assert len(await storage.ephemeral_messages.due(now_ms=99, limit=1)) == 1
    assert await storage.ephemeral_messages.due(now_ms=99, limit=0) == []


async def test_one_process_has_the_lease(storage: Stores) -> None:
    await storage.ephemeral_messages.insert(a_whisper())

    first = await storage.ephemeral_messages.claim(
        "whisper-1", owner="a", now_ms=1_000, until_ms=2_000
    )
    assert first == a_whisper(due_ms=2_000, leased_by="a", leased_until_ms=2_000, fence=1)
    assert await storage.ephemeral_messages.due(now_ms=1_999, limit=9) == []
    assert (
        await storage.ephemeral_messages.claim("whisper-1", owner="b", now_ms=1_999, until_ms=9_000)
        is None
    )

    second = await storage.ephemeral_messages.claim(
        "whisper-1", owner="b", now_ms=2_000, until_ms=3_000
    )
    assert second is not None
    assert second.fence == 2
    assert not await storage.ephemeral_messages.release("whisper-1", fence=1, due_ms=None)
    assert await storage.ephemeral_messages.release("whisper-1", fence=2, due_ms=5_000)
    assert await storage.ephemeral_messages.due(now_ms=5_000, limit=9) == [
        second.changed(due_ms=5_000, leased_by="", leased_until_ms=0)
    ]


async def test_a_whisper_that_was_told_is_never_due_again(storage: Stores) -> None:
    born_leased = a_whisper(leased_by="a", leased_until_ms=2_000, due_ms=2_000, fence=1)
    await storage.ephemeral_messages.insert(born_leased)

    assert await storage.ephemeral_messages.release("whisper-1", fence=1, due_ms=None)

    assert await storage.ephemeral_messages.due(now_ms=10**12, limit=9) == []
    assert not await storage.ephemeral_messages.release("whisper-1", fence=1, due_ms=7)
    assert (
        await storage.ephemeral_messages.claim("unknown", owner="a", now_ms=1, until_ms=2) is None
    )
