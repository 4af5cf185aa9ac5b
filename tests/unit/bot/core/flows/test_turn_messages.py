"""What is the input of a turn, when two processes begin it (I4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agents.core.errors import CheckpointConflictError
from agents.models import say
from bot.core.talk.incoming import Incoming
from bot.people.passes import ThreadPass
from storage.records import Message, Thread
from storage.sqlite import SqliteStorage
from tests.unit.bot.counter_stage import Proxy
from tests.unit.bot.office import THREAD_ID, Office, an_incoming

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
    """The thread as this process has it since the wake, and the messages that it may work on."""
    thread = office.woken.pop(THREAD_ID)
    assert thread is not None
    work = ThreadPass(thread=thread)
    return work, list(await office.inbox.sort(work))


async def received(office: Office, incoming: Incoming) -> None:
    assert await office.inbox.receive(incoming) == THREAD_ID


async def texts_of(storage: SqliteStorage, thread: Thread) -> list[str]:
    messages: Sequence[Message] = await storage.inbox.of_turn(THREAD_ID, thread.turn)
    return [message.text for message in messages]


async def test_i4_who_lost_the_lease_begins_no_turn_with_a_part_of_its_messages(
    storage: SqliteStorage,
) -> None:
    """One process sleeps before it takes messages, and wakes when the other one has looked."""
    sleeper = Office(storage, [say("I have read it.")], owner="sleeper")
    await received(sleeper, FIRST)
    old, admitted = await claimed(sleeper)
    await sleeper.turns.begin(old)

    async def wake_up() -> None:
        with pytest.raises(CheckpointConflictError):
            await sleeper.turns.step(old, admitted)

    sleeper.clock.now_ms += 60_000
    other = Office(storage, [say("I have read both.")], clock=sleeper.clock, owner="other")
    await received(other, LATER)
    work, both = await claimed(other)
    assert (len(admitted), len(both)) == (1, 2)
    proxy: Any = Proxy(storage, {"inbox": Held(storage.inbox, wake_up)})
    await replace(other.turns, storage=proxy).step(work, both)
    assert await texts_of(storage, work.thread) == ["pay Mia", "Only 5, please"]
    assert sleeper.model.calls == 0
    said = str(other.model.inputs[0])
    assert "pay Mia" in said
    assert "Only 5" in said
