"""A message that begins a thread is stored before the thread."""

from __future__ import annotations

import pytest

from agents.models import say
from bot.records.thread import Thread
from storage.errors import RecordNotFoundError
from tests.support.stores import SqliteStores
from tests.unit.bot.office import THREAD_ID, KilledError, Office, an_incoming

ASK = "<@UBOT> hi"


async def answered(office: Office) -> int:
    """How many of its tick's work there was; all of it is done."""
    count = await office.sweep.tick()
    await office.queue.run()
    return count


async def test_another_process_finds_the_messages_of_one_that_died(storage: SqliteStores) -> None:
    office = Office(storage, [say("Hello.")])
    await office.hear(ASK)
    await office.inbox.receive(an_incoming("and?", ts="1800000000.000002"))
    other = Office(
        storage, [say("That is it.")], clock=office.clock, notifier=office.notifier, owner="other"
    )
    assert await answered(other) == 1
    assert other.shown() == ["Hello.", "That is it."]


async def test_a_message_without_its_thread_comes_again(storage: SqliteStores) -> None:
    office, add = Office(storage, []), storage.threads.add

    async def dies(thread: Thread) -> bool:
        raise KilledError

    storage.threads.add = dies  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        await office.hear(ASK)
    storage.threads.add = add  # type: ignore[method-assign]
    with pytest.raises(RecordNotFoundError):
        await storage.threads.get(THREAD_ID)
    other = Office(storage, [say("Hello.")], clock=office.clock, owner="other")
    await other.hear(ASK)  # it was not acknowledged: Slack sends it again
    assert other.shown() == ["Hello."]
    assert len(await storage.inbox.of_turn(THREAD_ID, 1)) == 1


async def test_one_message_in_two_processes_is_read_once(storage: SqliteStores) -> None:
    """Each sees no thread yet; both make it, and one of them has its lease."""
    office = Office(storage, [say("Hello.")])
    other = Office(
        storage, [say("Hello.")], clock=office.clock, notifier=office.notifier, owner="other"
    )
    add = storage.threads.add

    async def overtaken(thread: Thread) -> bool:
        storage.threads.add = add  # type: ignore[method-assign]
        await other.inbox.receive(an_incoming(ASK))
        return await add(thread)

    storage.threads.add = overtaken  # type: ignore[method-assign]
    await office.hear(ASK)
    await other.threads.work(THREAD_ID)
    assert other.shown() == ["Hello."]
    assert office.model.calls + other.model.calls == 1
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.due_ms, thread.leased_until_ms) == (None, 0)


@pytest.mark.parametrize("text", ["<@UBOT> stop", "<@UBOT>"])
async def test_what_is_refused_belongs_to_a_thread(storage: SqliteStores, text: str) -> None:
    office = Office(storage, [])
    assert await office.inbox.receive(an_incoming(text, has_files=True)) is None
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.due_ms, thread.leased_until_ms) == (None, 0)
