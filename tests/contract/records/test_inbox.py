"""The contract of InboxStore."""

from typing import Any

import pytest

from bot.records.messages import MessageStatus
from bot.stores import Stores
from tests.contract.builders import THREAD_ID, a_message

FIRST, SECOND, THIRD = (f"1700000000.00{i}000" for i in (1, 2, 3))


async def test_a_message_is_kept_once(storage: Stores) -> None:
    message = a_message(text='<!channel> `x` "ü" \U0001f600 \x00 ' + "a" * 40_000)

    assert await storage.inbox.add(message)
    assert not await storage.inbox.add(a_message(text="another"))
    assert await storage.inbox.new(THREAD_ID, limit=10) == [message]


async def test_new_messages_come_oldest_first(storage: Stores) -> None:
    for ts in (SECOND, THIRD, FIRST):
        await storage.inbox.add(a_message(ts))
    await storage.inbox.add(a_message("1700000000.000001", thread_id="another"))

    assert [m.ts for m in await storage.inbox.new(THREAD_ID, limit=10)] == [FIRST, SECOND, THIRD]
    assert [m.ts for m in await storage.inbox.new(THREAD_ID, limit=2)] == [FIRST, SECOND]
    assert await storage.inbox.new(THREAD_ID, limit=0) == []


async def test_a_turn_takes_messages(storage: Stores) -> None:
    for ts in (FIRST, SECOND, THIRD):
        await storage.inbox.add(a_message(ts))
    ids = [a_message(ts).message_id for ts in (SECOND, FIRST)]

    await storage.inbox.take(ids, turn=4)

    taken = await storage.inbox.of_turn(THREAD_ID, 4)
    assert [(m.ts, m.turn, m.status) for m in taken] == [
        (FIRST, 4, MessageStatus.TAKEN),
        (SECOND, 4, MessageStatus.TAKEN),
    ]
    assert [m.ts for m in await storage.inbox.new(THREAD_ID, limit=10)] == [THIRD]


async def test_a_taken_message_stays_with_its_turn(storage: Stores) -> None:
    message = a_message()
    await storage.inbox.add(message)
    await storage.inbox.take([message.message_id], turn=1)

    await storage.inbox.take([message.message_id, "unknown"], turn=2)

    assert len(await storage.inbox.of_turn(THREAD_ID, 1)) == 1
    assert await storage.inbox.of_turn(THREAD_ID, 2) == []


async def test_taking_says_what_the_turn_has_now(storage: Stores) -> None:
    for ts in (FIRST, SECOND, THIRD):
        await storage.inbox.add(a_message(ts))
    first, second, third = (a_message(ts).message_id for ts in (FIRST, SECOND, THIRD))

    taken = [
        await storage.inbox.take(ids, turn=4)
        for ids in ([second], [second], [third, second, first], [third, first])
    ]
    assert [[m.ts for m in messages] for messages in taken] == [
        [SECOND],
        [SECOND],
        [FIRST, SECOND, THIRD],
        [FIRST, THIRD],
    ]
    assert await storage.inbox.take([first], turn=5) == []
    assert await storage.inbox.take([first, second], turn=5) == []


async def test_a_message_that_no_turn_has_taken_can_be_revised(storage: Stores) -> None:
    message = a_message()
    await storage.inbox.add(message)
    revised = await storage.inbox.revise(message.message_id, "now")
    assert revised == message.changed(text="now", revision=1)
    assert await storage.inbox.new(message.thread_id, limit=5) == [revised]
    await storage.inbox.take([message.message_id], turn=1)
    late = await storage.inbox.revise(message.message_id, "later")
    assert late == message.changed(text="now", revision=2, status=MessageStatus.TAKEN, turn=1)
    assert await storage.inbox.revise("T:C:9", "nothing") is None


async def test_a_process_that_dies_while_a_turn_takes_messages_leaves_the_newest(
    storage: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        await storage.inbox.add(a_message(name))
    replace, left = storage.inbox.collection.replace, [None, KeyboardInterrupt()]

    async def dies(*args: Any, **options: Any) -> Any:
        if (error := left.pop(0)) is not None:
            raise error
        return await replace(*args, **options)

    monkeypatch.setattr(storage.inbox.collection, "replace", dies)
    ids = [a_message(name).message_id for name in "cab"]
    with pytest.raises(KeyboardInterrupt):
        await storage.inbox.take(ids, turn=1)
    assert [message.ts for message in await storage.inbox.new(THREAD_ID, limit=9)] == ["b", "c"]
