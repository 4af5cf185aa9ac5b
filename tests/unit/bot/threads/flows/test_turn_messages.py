"""What is the input of a turn, when two processes begin it (I4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agents.core.errors import CheckpointConflictError
from agents.models import say
from bot.records.messages import Message
from bot.records.thread import Thread
from bot.threads.message_event import Incoming
from bot.threads.thread_pass import ThreadPass
from bot.threads.worker import MAX_ATTEMPTS
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import Proxy
from tests.unit.bot.office import THREAD_ID, KilledError, Office, an_incoming

FIRST = an_incoming("<@UBOT> pay Mia", ts="1800000000.000001")
LATER = an_incoming("Only 5, please", ts="1800000000.000002")


@dataclass
class Held:
    """An inbox in which something happens right before messages are taken."""

    inbox: Any
    before: Callable[[], Awaitable[None]]

    def __getattr__(self, name: str) -> object:
        return getattr(self.inbox, name)

    async def take(self, message_ids: Sequence[str], *, turn: int) -> Sequence[Message]:
        await self.before()
        taken: Sequence[Message] = await self.inbox.take(message_ids, turn=turn)
        return taken


async def claimed(office: Office) -> tuple[ThreadPass, list[str]]:
    """The thread as this process has claimed it, and the messages that it may work on."""
    now = office.clock()
    thread = await office.storage.threads.claim(
        THREAD_ID, owner=office.owner, now_ms=now, until_ms=now + 15_000
    )
    assert thread is not None
    work = ThreadPass(thread=thread)
    return work, list(await office.inbox.sort(work))


async def received(office: Office, incoming: Incoming) -> None:
    assert await office.inbox.receive(incoming) == THREAD_ID


async def texts_of(storage: SqliteStores, thread: Thread) -> list[str]:
    messages: Sequence[Message] = await storage.inbox.of_turn(THREAD_ID, thread.turn)
    return [message.text for message in messages]


async def test_i4_who_lost_the_lease_begins_no_turn_with_a_part_of_its_messages(
    storage: SqliteStores,
) -> None:
    """One process sleeps before it takes messages, and wakes when the other one has looked."""
    sleeper = Office(storage, [say("I have read it.")], owner="sleeper")
    await received(sleeper, FIRST)
    old, admitted = await claimed(sleeper)
    sleeper.turns.begin(old)

    async def wake_up() -> None:
        with pytest.raises(CheckpointConflictError):
            await sleeper.turns.step(old, admitted)

    sleeper.clock.now_ms += 60_000
    other = Office(storage, [say("I have read both.")], clock=sleeper.clock, owner="other")
    await received(other, LATER)
    work, both = await claimed(other)
    assert (len(admitted), len(both)) == (1, 2)
    other.turns.begin(work)
    proxy: Any = Proxy(storage, {"inbox": Held(storage.inbox, wake_up)})
    await replace(other.turns, storage=proxy).step(work, both)
    assert await texts_of(storage, work.thread) == ["pay Mia", "Only 5, please"]
    assert sleeper.model.calls == 0
    said = str(other.model.inputs[0])
    assert "pay Mia" in said
    assert "Only 5" in said


async def test_i4_messages_of_a_turn_that_was_never_opened_are_found(storage: SqliteStores) -> None:
    first = Office(storage, [])
    set_turn = storage.threads.set_turn

    async def dies(*_: object, **__: object) -> bool:
        raise KilledError

    storage.threads.set_turn = dies  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        await first.hear("<@UBOT> pay Mia")
    storage.threads.set_turn = set_turn  # type: ignore[method-assign]
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.turn, thread.turn_open) == (0, False)
    second = Office(storage, [say("Paid."), say("That, too.")], clock=first.clock, owner="second")
    second.clock.forward(seconds=15)
    await second.hear("<@UBOT> and Ben", ts="1800000000.000002")  # read after that, or with it
    assert "pay Mia" in str(second.model.inputs[0])
    assert "and Ben" in str(second.model.inputs[-1])
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.turn_open, thread.due_ms) == (False, None)


async def test_i4_what_a_sleeper_takes_after_the_look_for_it_is_found(
    storage: SqliteStores,
) -> None:
    """It takes them late, under no lease any more, and may not open the turn."""
    sleeper = Office(storage, [], owner="sleeper")
    await received(sleeper, FIRST)
    old, admitted = await claimed(sleeper)
    sleeper.turns.begin(old)
    new = storage.inbox.new

    async def late(thread_id: str, *, limit: int) -> Sequence[Message]:
        storage.inbox.new = new  # type: ignore[method-assign]
        with pytest.raises(CheckpointConflictError):
            await sleeper.turns.step(old, admitted)
        return await new(thread_id, limit=limit)

    other = Office(storage, [say("I have read it.")], clock=sleeper.clock, owner="other")
    other.clock.now_ms += 60_000
    storage.inbox.new = late  # type: ignore[method-assign]
    await other.threads.work(THREAD_ID)
    assert other.shown() == ["I have read it."]
    assert await texts_of(storage, await storage.threads.get(THREAD_ID)) == ["pay Mia"]


async def test_i4_a_turn_that_fails_before_it_is_open_says_so(storage: SqliteStores) -> None:
    office, faults = Office(storage, []), [ZeroDivisionError()] * MAX_ATTEMPTS
    set_turn = storage.threads.set_turn

    async def faulty(*args: Any, **more: Any) -> bool:
        if faults:
            raise faults.pop()
        return await set_turn(*args, **more)

    storage.threads.set_turn = faulty  # type: ignore[method-assign]
    await office.hear("<@UBOT> pay Mia")
    for _ in range(MAX_ATTEMPTS):
        assert office.shown() == [] or not faults
        await office.later(minutes=10)
    assert len(office.shown()) == 1
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.turn, thread.turn_open, thread.due_ms) == (1, False, None)
