"""A process that dies at any write: what was stored is not lost, what finished stays finished."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.core.checkpoint import CheckpointStatus
from agents.core.codec import from_text, to_text
from agents.core.errors import (
    CheckpointConflictError,
    CheckpointDecodeError,
    CheckpointNotFoundError,
    CheckpointVersionError,
)
from agents.graph import Command, GraphResult, StateGraph, StateSnapshot, node_interrupt, task
from agents.memory import MemoryCheckpointStore
from agents.runs.document import Claim
from tests.support.halves import first_rows
from tests.unit.agents.graph.support import Lab, State, chain, fan, settled, values_of
from tests.unit.agents.support import Died, DyingStore


async def play(lab: Lab) -> dict[str, object]:
    """Bring a thread to its end, from wherever it stands."""
    result: GraphResult | StateSnapshot
    try:
        phase: str = (await lab.state()).phase
    except CheckpointNotFoundError:
        phase = "new"
    if phase == "new":
        result = await lab.start(foo="x")
    elif phase == "running":
        result = await lab.graph.recover("t")
    elif phase == "finished":
        return (await lab.state()).values
    else:
        result = await lab.run()
    while result.interrupts:
        result = await settled(lab, result)
        for interrupt in result.interrupts[:1]:
            result = await lab.run(resume_map={interrupt.id: f"answer to {interrupt.value}"})
    return result.values


def story(lab: Lab) -> StateGraph:
    inner = chain(lab, i1=lab.write("i1"), i2=lab.ask("i2", "inner?", key="b")).compile()
    return chain(
        lab,
        s1=lab.write("s1"),
        s2=lab.ask("s2", "q1", "q2", key="a"),
        s3=inner,  # type: ignore[arg-type]
        s4=lab.write("s4"),
    )


EXPECTED = {
    "foo": "x",
    "log": ["s1", "i1", "s4"],
    "a": ["answer to q1", "answer to q2"],
    "b": "answer to inner?",
}
FINISHED_ONCE = ("s1", "s2 done", "i1", "i2 done", "s4")


WAYS = [("step", False), ("interrupt", True), ("step", True), ("interrupt", False)]


@pytest.mark.parametrize(("durability", "before"), first_rows(2, WAYS))
async def test_death_at_any_write(durability: str, before: bool) -> None:
    at, died = 0, True
    while died:
        at += 1
        inner = MemoryCheckpointStore()
        lab = Lab(story, {"durability": durability}, store=DyingStore(inner, at=at, before=before))
        try:
            await play(lab)
            died = False
        except Died:
            lab.store = inner
        assert await play(lab) == EXPECTED
        again = sum(lab.ran[name] - 1 for name in FINISHED_ONCE)
        # Only what had finished and was not noted yet may run again.
        assert again <= (0 if not died else 1 if durability == "step" else 5)
        if durability == "step" and not before:
            assert again == 0
    assert at > 8


async def test_a_sibling_that_was_noted_does_not_run_again() -> None:
    class Store(MemoryCheckpointStore):
        async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
            if index == 1:
                raise Died
            await super().append(checkpoint_id, entry, base=base, index=index)

    async def slow(state: State) -> object:
        await asyncio.sleep(0)
        lab.ran["b"] += 1
        return {"b": 1}

    async def quick(state: State) -> object:
        lab.ran["a"] += 1
        return {"a": 1}

    lab = Lab(lambda lab: fan(a=quick, b=slow), store=Store())
    with pytest.raises(Died):
        await lab.start()
    kept = lab.store._stored
    lab.store = MemoryCheckpointStore()
    lab.store._stored = kept
    result = await lab.graph.recover("t")
    assert (result.values["a"], result.values["b"]) == (1, 1)
    assert lab.ran == {"a": 1, "b": 2}


async def test_once_survives_a_death() -> None:
    async def work() -> str:
        lab.ran["work"] += 1
        return "sent"

    async def node(state: State) -> object:
        sent = await task("send", work)
        if not lab.flags:
            raise Died
        return {"a": [sent, node_interrupt("q")]}

    lab = Lab(lambda lab: chain(lab, a=node))
    with pytest.raises(Died):
        await lab.start()
    lab.flags["alive"] = True
    assert values_of(await lab.graph.recover("t")) == ["q"]
    assert (await lab.run(resume="x")).values["a"] == ["sent", "x"]
    assert lab.ran["work"] == 1


async def test_answers_and_commands_survive_a_death() -> None:
    def node(state: State) -> object:
        answer = node_interrupt("q")
        if not lab.flags:
            raise Died
        return {"a": answer}

    lab = Lab(lambda lab: chain(lab, a=node))
    await lab.start()
    with pytest.raises(Died):
        await lab.run(resume=["x", None], command=Command(update={"log": ["u"]}))
    lab.flags["alive"] = True
    result = await settled(lab, await lab.graph.recover("t"))
    assert (result.values["a"], result.values["log"]) == (["x", None], ["u"])
    assert (await lab.graph.recover("t")).values == result.values


async def test_of_two_that_work_on_a_thread_one_stops() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.slow("a"), b=lab.write("b")))
    zombie = asyncio.create_task(lab.start())
    await lab.begun.wait()
    assert (await lab.graph.recover("t")).values == {"a": 1, "log": ["b"]}
    lab.go_on.set()
    with pytest.raises(CheckpointConflictError):
        await zombie
    assert (await lab.state()).values == {"a": 1, "log": ["b"]}
    assert lab.ran == {"a": 2, "b": 1}


async def test_a_node_that_cancels_itself() -> None:
    async def node(state: State) -> object:
        raise asyncio.CancelledError

    lab = Lab(lambda lab: chain(lab, a=node))
    with pytest.raises(asyncio.CancelledError, match="a node was cancelled"):
        await lab.start()
    assert (await lab.state()).phase == "running"


async def test_a_node_with_a_group_of_other_things() -> None:
    async def node(state: State) -> object:
        raise BaseExceptionGroup("both", [Died(), ValueError("x")])

    lab = Lab(lambda lab: chain(lab, a=node))
    with pytest.raises(BaseExceptionGroup):
        await lab.start()


async def change(lab: Lab, **fields: Any) -> None:
    stored = await lab.store.load("t")
    data = {**from_text(stored.data), **fields}
    await lab.store.save(
        "t",
        to_text(data),
        status=CheckpointStatus.PENDING,
        expected_version=stored.version,
    )


async def test_damaged_documents() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.ask("a", "q")))
    await lab.start()
    stored = await lab.store.load("t")
    point = from_text(stored.data)["waiting"]
    assert isinstance(point, dict)
    for fields in ({"phase": "odd"}, {"waiting": None}, {"counts": None, "session": {"$type": 1}}):
        await change(lab, **fields)
        with pytest.raises(CheckpointDecodeError):
            await lab.state()
    await change(lab, phase="paused", session={}, counts={}, waiting={**point, "state": 3})
    with pytest.raises(CheckpointDecodeError):
        await lab.state()
    with pytest.raises(CheckpointDecodeError):
        await lab.run(resume="x")
    await change(lab, schema=99)
    with pytest.raises(CheckpointVersionError):
        await lab.state()


async def test_a_damaged_claim_is_told() -> None:
    lab = Lab(lambda lab: fan(a=lab.ask("a", "a")))
    await lab.start()
    version = (await lab.store.load("t")).version
    await lab.store.claim("t", Claim(command=3).to_text(), expected_version=version)
    with pytest.raises(CheckpointDecodeError, match="command"):
        await lab.graph.recover("t")
