"""Listing and deleting threads."""

from __future__ import annotations

import pytest

from agents.core.checkpoint import CheckpointStatus, CheckpointStore, StoredCheckpoint
from agents.core.errors import (
    AgentChangedError,
    CheckpointClosedError,
    CheckpointDecodeError,
    CheckpointNotFoundError,
)
from agents.graph import NoCheckpointerError, StateGraph, ThreadBusyError
from agents.memory import MemoryCheckpointStore
from agents.runner import Runner
from tests.unit.agents.graph.support import Lab, chain
from tests.unit.agents.support import Asker, collect


def asking(lab: Lab) -> StateGraph:
    return chain(lab, a=lab.write("a"), b=lab.ask("b", "q"))


async def test_threads_are_told_with_where_they_stand() -> None:
    lab = Lab(asking)
    for thread_id in ("t2", "t1", "room@2024", "t1@x"):
        await lab.run({}, thread_id=thread_id)
    await lab.run(thread_id="t1", resume="yes")
    snapshots = await lab.graph.threads()
    assert [(snapshot.thread_id, snapshot.phase) for snapshot in snapshots] == [
        ("room@2024", "paused"),
        ("t1", "finished"),
        ("t1@x", "paused"),
        ("t2", "paused"),
    ]
    assert snapshots[0].interrupts[0].value == "q"


async def test_threads_are_told_page_by_page() -> None:
    lab = Lab(asking)
    names = [f"t{number:03}" for number in range(70)]
    for name in names:
        await lab.run({}, thread_id=name)
    first = await lab.graph.threads(limit=40)
    rest = await lab.graph.threads(after=first[-1].thread_id, limit=40)
    assert [snapshot.thread_id for snapshot in (*first, *rest)] == names


async def test_threads_of_others_and_unreadable_ones_stop_nobody() -> None:
    lab = Lab(asking)
    await lab.start()
    pending = CheckpointStatus.PENDING
    await lab.store.save("bad", "no JSON", status=pending, expected_version=0)
    await lab.store.save("newer", '{"schema": 99}', status=pending, expected_version=0)
    lab.options["name"] = "another"
    await lab.run({}, thread_id="of another")
    assert [snapshot.thread_id for snapshot in await lab.graph.threads()] == ["of another"]
    lab.options.pop("name")
    assert [snapshot.thread_id for snapshot in await lab.graph.threads()] == ["t"]


async def test_a_graph_leaves_the_run_of_an_agent_alone() -> None:
    lab = Lab(asking)
    runner = Runner(Asker("A"), checkpoint_store=lab.store)
    await collect(runner.query("x", checkpoint_id="t"))
    before = await lab.store.load("t")
    graph = lab.graph
    calls = (lab.start(), lab.run(resume=1), graph.get_state("t"), graph.cancel("t", "x"))
    for call in (*calls, graph.fork("t"), graph.recover("t")):
        with pytest.raises(CheckpointDecodeError, match="run of an agent"):
            await call
    assert await graph.threads() == []
    assert await lab.store.load("t") == before


async def test_a_runner_leaves_the_thread_of_a_graph_alone() -> None:
    lab = Lab(asking, options={"name": "A"})
    question = (await lab.start()).interrupts[0].id
    before = await lab.store.load("t")
    runner = Runner(Asker("A"), checkpoint_store=lab.store)
    for events in (runner.resume("t", {question: "yes"}), runner.recover("t")):
        with pytest.raises(AgentChangedError, match="graph 'A'"):
            await collect(events)
    assert await lab.store.load("t") == before


async def test_an_ended_run_is_no_thread() -> None:
    lab = Lab(asking)
    await lab.start()
    await lab.store.close("t", expected_version=(await lab.store.load("t")).version)
    for call in (lab.start(), lab.run(resume=1), lab.graph.get_state("t")):
        with pytest.raises(CheckpointClosedError):
            await call


async def test_a_deleted_thread_is_gone_with_its_history() -> None:
    lab = Lab(asking)
    for thread_id in ("t", "t@1", "t@1@", "tt"):
        await lab.run({}, thread_id=thread_id)
        await lab.run(thread_id=thread_id, resume="yes")
    before = [key for key in await lab.store.ids(limit=99) if key.startswith("t@1")]
    await lab.graph.delete_thread("t")
    assert await lab.store.load("t") is None
    assert await lab.store.load("t@1") is None
    assert {snapshot.thread_id for snapshot in await lab.graph.threads()} == {"t@1", "t@1@", "tt"}
    assert len(await lab.graph.history("t@1")) == len(await lab.graph.history("tt"))
    assert len(before) > 2
    assert (await lab.run({})).checkpoint == 2  # it can begin anew


async def test_a_thread_that_is_not_there_cannot_be_deleted() -> None:
    lab = Lab(asking)
    with pytest.raises(CheckpointNotFoundError):
        await lab.graph.delete_thread("t")
    await lab.start()
    await lab.graph.delete_thread("t")
    with pytest.raises(CheckpointNotFoundError):
        await lab.graph.delete_thread("t")


async def test_a_thread_that_is_being_worked_on_is_not_deleted() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.slow("a")))
    await lab.cut_off(lab.start())
    with pytest.raises(ThreadBusyError):
        await lab.graph.delete_thread("t")
    assert await lab.store.load("t") is not None


async def test_an_unreadable_thread_can_be_deleted() -> None:
    lab = Lab(asking)
    await lab.store.save("t", "x", status=CheckpointStatus.PENDING, expected_version=0)
    await lab.graph.delete_thread("t")
    assert await lab.store.load("t") is None


class PlainStore:
    """A store that can do no more than it must."""

    def __init__(self) -> None:
        self._inner = MemoryCheckpointStore()

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        return await self._inner.load(checkpoint_id)

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        return await self._inner.save(
            checkpoint_id, data, status=status, expected_version=expected_version
        )

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        return await self._inner.claim(checkpoint_id, claim, expected_version=expected_version)

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        await self._inner.append(checkpoint_id, entry, base=base, index=index)

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        await self._inner.close(checkpoint_id, expected_version=expected_version)


async def test_a_store_that_cannot_list_says_so_and_does_the_rest() -> None:
    store: CheckpointStore = PlainStore()
    lab = Lab(asking, store=store)
    await lab.start()
    for call in (lab.graph.threads(), lab.graph.delete_thread("t")):
        with pytest.raises(NoCheckpointerError, match="ThreadStore"):
            await call
    assert (await lab.run(resume="yes")).values["b"] == "yes"
