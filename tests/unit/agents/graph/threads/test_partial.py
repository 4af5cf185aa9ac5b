"""Partial answers: cheap, safe against deaths and races, and all in the history."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from agents.core.component.context import session_values
from agents.core.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
)
from agents.graph import (
    AlreadyAnsweredError,
    StateGraph,
    StateUpdate,
    ThreadBusyError,
    node_interrupt,
)
from agents.graph.threads.thread import GraphThread
from tests.unit.agents.graph.support import Lab, State, fan, ids, settled, values_of
from tests.unit.agents.graph.threads.test_keeping import PlainStore
from tests.unit.agents.support import Died, DyingStore, WatchedStore


class Scale(WatchedStore):
    """Weighs what is written."""

    bytes = 0

    def at(self, write: str, text: str, *, before: bool) -> None:
        if before:
            self.bytes += len(text)


def many(count: int) -> Any:
    return lambda lab: fan(**{f"n{at:02}": asks(f"q{at:02}") for at in range(count)})


def asks(question: str) -> Any:
    def node(state: State) -> object:
        return {"log": [f"{question}: {node_interrupt(question)}"]}

    return node


async def cost(lab: Lab) -> list[int]:
    """What each of the answers writes, but for the last one, which ends the turn."""
    sizes = []
    for question in ids(await lab.start())[:-1]:
        before = lab.store.bytes
        await lab.run(resume_map={question: "yes"})
        sizes.append(lab.store.bytes - before)
    return sizes


async def test_i11_a_partial_answer_costs_the_same_whatever_waits_beside_it() -> None:
    few, lots = await cost(Lab(many(5), store=Scale())), await cost(Lab(many(25), store=Scale()))
    assert max(lots) < max(few) + 100
    assert max(lots) < 3_000


async def test_each_partial_answer_is_a_checkpoint_of_the_history() -> None:
    lab = Lab(many(4))
    paused = await lab.start()
    for question in ids(paused)[:-1]:
        await lab.run(resume_map={question: "yes"})
    while_waiting = await lab.graph.history("t")
    await lab.run(resume="yes")
    after = await lab.graph.history("t")
    assert [len(snapshot.interrupts) for snapshot in after] == [0, 1, 2, 3, 4]
    assert [snapshot.checkpoint for snapshot in after] == [5, 4, 3, 2, 1]
    assert [snapshot.parent for snapshot in after] == [4, 3, 2, 1, None]
    assert after[1:] == while_waiting
    assert (await lab.state(3)).values["log"] == ["q00: yes", "q01: yes"]
    for number in (0, 6, 99):
        with pytest.raises(CheckpointNotFoundError):
            await lab.state(number)


async def test_a_fork_goes_back_to_a_partial_answer() -> None:
    lab = Lab(many(3))
    for question in ids(await lab.start()):
        await lab.run(resume_map={question: "yes"})
    await lab.graph.fork("t", at=2, new_thread_id="u")
    state = await lab.graph.get_state("u")
    assert (values_of(state), state.values["log"]) == (["q01", "q02"], ["q00: yes"])
    await lab.graph.fork("t", at=3)
    assert values_of(await lab.run()) == ["q02"]
    assert (await lab.run(resume="no")).values["log"] == ["q00: yes", "q01: yes", "q02: no"]


async def test_session_values_and_inner_questions_are_kept() -> None:
    def node(name: str) -> Any:
        def run(state: State) -> object:
            session_values()["common"] = name
            if name == "b":
                session_values().pop("gone", None)
            else:
                session_values()["gone"] = "x"
            return {"log": [f"{name}: {node_interrupt(name)}"]}

        return run

    def build(lab: Lab) -> StateGraph:
        inner = fan(x=node("x"), y=node("y")).compile()
        return fan(s=inner, a=node("a"), b=node("b"))  # type: ignore[arg-type]

    lab = Lab(build)
    await lab.start()
    await lab.answer({"x": 1})
    await lab.answer({"b": 2})
    head = await GraphThread(lab.store, "t").load()
    assert head is not None
    assert head.session == {"common": "b"}
    assert sorted(map(str, await lab.pending())) == ["a", "y"]
    await lab.answer({"y": 3})
    result = await lab.answer({"a": 4})
    assert result.values["log"] == ["x: 1", "y: 3", "a: 4", "b: 2"]


async def test_an_edit_beside_partial_answers_writes_the_whole_document() -> None:
    lab = Lab(many(3))
    [first, *_] = ids(await lab.start())
    await lab.run(resume_map={first: "yes"})
    graph = (await lab.state()).interrupts[0].context.parent
    assert graph is not None
    await lab.run(resume_map={graph.id: StateUpdate({"foo": "edited"})})
    state = await lab.state()
    assert (values_of(state), state.values["foo"]) == (["q01", "q02"], "edited")
    assert [snapshot.values["log"] for snapshot in await lab.graph.history("t")][1:] == [
        ["q00: yes"],
        [],
    ]


async def test_a_store_that_cannot_amend_writes_the_whole_document() -> None:
    lab = Lab(many(3), store=PlainStore())
    for question in ids(await lab.start()):
        await lab.run(resume_map={question: "yes"})
    assert [snapshot.checkpoint for snapshot in await lab.graph.history("t")] == [4, 3, 2, 1]
    assert len((await lab.state()).values["log"]) == 3


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("at", range(1, 9))
async def test_i4_a_death_at_any_write_loses_no_answer_and_repeats_none(
    at: int, *, before: bool
) -> None:
    lab = Lab(lambda lab: fan(a=lab.ask("a", "a"), b=lab.ask("b", "b"), c=lab.ask("c", "c")))
    first, second, third = ids(await lab.start())
    inner = lab.store
    lab.store = DyingStore(inner, at=at, before=before)
    died = False
    try:
        await lab.run(resume_map={first: 1})
        await lab.run(resume_map={second: 2})
    except Died:
        died = True
    lab.store = inner
    await settled(lab, await lab.graph.recover("t"))
    waiting = ids(await lab.state())
    for question, answer in ((first, 1), (second, 2), (third, 3)):
        if question in waiting:
            await lab.run(resume_map={question: answer})
    values = (await lab.state()).values
    assert (values["a"], values["b"], values["c"]) == (1, 2, 3)
    numbers = [snapshot.checkpoint for snapshot in await lab.graph.history("t")]
    assert numbers == list(range(numbers[0], 0, -1))
    if not died:
        assert (lab.ran["a"], lab.ran["b"]) == (2, 2)


async def test_two_people_who_answer_two_questions_at_once_are_both_heard() -> None:
    lab = Lab(many(6))
    questions = ids(await lab.start())
    results = await asyncio.gather(
        *(lab.run(resume_map={question: "yes"}) for question in questions)
    )
    assert len(results) == 6
    assert (await lab.state()).values["log"] == [f"q{at:02}: yes" for at in range(6)]


async def test_an_answer_waits_while_another_one_is_worked_on() -> None:
    lab = Lab(lambda lab: fan(a=lab.slow("a", "a"), b=lab.ask("b", "b")))
    first, second = ids(await lab.start())
    answering = asyncio.create_task(lab.run(resume_map={first: 1}))
    await lab.begun.wait()
    with pytest.raises(AlreadyAnsweredError):
        await lab.run(resume_map={first: 2})
    lab.options["patience"] = timedelta()
    with pytest.raises(ThreadBusyError):
        await lab.run(resume_map={second: 2})
    lab.options["patience"] = timedelta(milliseconds=10)
    with pytest.raises(ThreadBusyError):
        await lab.run(resume_map={second: 2})
    lab.options.pop("patience")
    other = asyncio.create_task(lab.run(resume_map={second: 2}))
    await asyncio.wait([other], timeout=0.02)
    lab.go_on.set()
    await answering
    assert (await other).values["b"] == 2


async def test_who_slept_while_others_took_over_writes_nothing() -> None:
    lab = Lab(lambda lab: fan(a=lab.slow("a", "a"), b=lab.ask("b", "b")))
    first, second = ids(await lab.start())
    zombie = asyncio.create_task(lab.run(resume_map={first: 1}))
    await lab.begun.wait()
    result = await settled(lab, await lab.graph.recover("t"))
    assert (result.values["a"], ids(result)) == (1, [second])
    lab.go_on.set()
    with pytest.raises(CheckpointConflictError):
        await zombie
    assert (await lab.run(resume=2)).values["b"] == 2


async def test_a_copy_that_a_dead_process_left_gets_what_was_answered_since() -> None:
    lab = Lab(many(3))
    questions = ids(await lab.start())
    head = await lab.store.load("t")
    await lab.store.save("t@1", head.data, status=head.status, expected_version=0)
    for question in questions:
        await lab.run(resume_map={question: "yes"})
    snapshots = await lab.graph.history("t")
    assert [len(snapshot.interrupts) for snapshot in snapshots] == [0, 1, 2, 3]
    await lab.graph.delete_thread("t")
    assert list(await lab.store.ids()) == []


async def test_a_hole_in_the_history_is_told() -> None:
    lab = Lab(many(2))
    for question in ids(await lab.start()):
        await lab.run(resume_map={question: "yes"})
    await lab.store.delete("t@1", expected_version=1)
    with pytest.raises(CheckpointNotFoundError, match="t@2"):
        await lab.state(2)
