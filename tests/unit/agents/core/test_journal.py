"""The journal, and what a run costs and leaves behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents import MemoryCheckpointStore, ToolEvent
from agents.core.checkpoint import CheckpointStatus
from agents.core.errors import CheckpointConflictError, ModelError
from agents.core.journal import Journal
from agents.models import call, say
from tests.unit.agents.support import (
    AwayStore,
    Plain,
    World,
    brief,
)


class Lazy(MemoryCheckpointStore):
    """Gives others a turn before it writes."""

    async def append(self, checkpoint_id: str, entry: str, **more: Any) -> None:
        loop = asyncio.get_running_loop()
        others = loop.create_future()
        loop.call_soon(others.set_result, None)
        await others
        await super().append(checkpoint_id, entry, **more)


async def test_calls_that_finish_together_are_noted_one_after_the_other() -> None:
    tools = [Plain(f"t{n}") for n in range(5)]
    calls = [call(tool.name, id=tool.name) for tool in tools]
    world = World([calls, RuntimeError("down"), say("done")], tools, durability="step")
    world.store = Lazy()

    with pytest.raises(ModelError):
        await world.run()
    assert brief(await world.recover())[-1] == "says done"

    assert [len(tool.calls) for tool in tools] == [1] * 5


async def test_an_entry_that_was_cut_off_ends_the_journal() -> None:
    store = Lazy()
    await store.save("1", "{}", status=CheckpointStatus.RUNNING, expected_version=0)
    journal = Journal(store, "1", base=1)
    task = asyncio.ensure_future(journal.append("a", "x"))
    asyncio.get_running_loop().call_soon(task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task

    with pytest.raises(CheckpointConflictError, match="cut off"):
        await journal.append("b", "x")


async def test_after_a_failed_entry_there_is_no_other() -> None:
    journal = Journal(AwayStore("append"), "1", base=1)

    for _ in range(2):
        with pytest.raises(OSError, match="store down"):
            await journal.append("a", "x")
    assert not journal.has_entries


async def test_a_cancelled_run_stays_recoverable() -> None:
    inside = asyncio.Event()

    async def hang() -> str:
        inside.set()
        await asyncio.Event().wait()
        return "never"

    look = Plain("look", lambda _: hang())
    world = World([call("look", id="c1"), say("done")], [look], durability="step")
    task = asyncio.ensure_future(world.run())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    look.body = None
    assert brief(await world.recover())[1:] == ["tool look#c1 ran: look ok {}", "says done"]


async def test_leaving_a_run_stops_it() -> None:
    stopped = asyncio.Event()

    async def hang() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    tools = [Plain("hang", lambda _: hang()), Plain("ok")]
    world = World([[call("hang", id="c1"), call("ok", id="c2")]], tools)
    events = world.runner().query("hi")
    async for event in events:
        if isinstance(event, ToolEvent):
            break
    await events.aclose()

    assert stopped.is_set()
