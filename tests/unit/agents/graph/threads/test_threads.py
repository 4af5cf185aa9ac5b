"""Threads over time: scenarios 61 to 70 of the graphs' reference."""

from __future__ import annotations

import asyncio

import pytest

from agents.core.errors import (
    CheckpointBusyError,
    CheckpointConflictError,
    CheckpointNotFoundError,
    NothingPendingError,
    ResumeError,
    UnknownInterruptError,
)
from agents.core.interrupt import stateful_interrupt
from agents.graph import END, START, AlreadyAnsweredError, Command, StateGraph, node_interrupt
from agents.memory import MemoryCheckpointStore
from tests.unit.agents.graph.support import Lab, State, chain, fan, ids, values_of


def asks_then_writes(lab: Lab) -> StateGraph:
    return chain(lab, a=lab.ask("a", "q"), z=lab.write("z"))


async def test_g061_a_new_turn_on_a_finished_thread() -> None:
    lab = Lab(lambda lab: chain(lab, z=lab.write("z")))
    await lab.start(foo="x")
    result = await lab.start(n=1)
    assert result.values == {"foo": "x", "n": 1, "log": ["z", "z"]}
    assert lab.ran == {"z": 2}


async def test_g062_e118_a_new_input_replaces_the_question() -> None:
    lab = Lab(asks_then_writes)
    [old] = ids(await lab.start())
    [new] = ids(await lab.start())
    assert old != new
    with pytest.raises(UnknownInterruptError):
        await lab.run(resume_map={old: "x"})
    assert (await lab.run(resume_map={new: "x"})).values["a"] == "x"


async def test_g064_cancel() -> None:
    lab = Lab(asks_then_writes)
    [question] = ids(await lab.start())
    state = await lab.graph.cancel("t", "no longer needed")
    assert (state.next, state.interrupts, state.phase) == ((), (), "cancelled")
    assert state.reason == "no longer needed"
    for request in ({"resume": "x"}, {"resume_map": {question: "x"}}, {}):
        with pytest.raises(ResumeError):
            await lab.run(**request)
    assert values_of(await lab.start()) == ["q"]


async def test_g064_update_as_the_end() -> None:
    lab = Lab(asks_then_writes)
    await lab.start()
    state = await lab.graph.update_state("t", {"c": 1}, as_node=END)
    assert (state.next, state.interrupts, state.values["c"]) == ((), (), 1)
    with pytest.raises(NothingPendingError):
        await lab.run(resume="x")


async def test_g065_two_resumes_at_once() -> None:
    lab = Lab(asks_then_writes)
    [question] = ids(await lab.start())
    outcomes = await asyncio.gather(
        lab.run(resume_map={question: "x"}),
        lab.run(resume_map={question: "y"}),
        lab.run(resume="z"),
        return_exceptions=True,
    )
    won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert len(won) == 1
    assert [type(outcome) for outcome in outcomes if isinstance(outcome, BaseException)] == [
        AlreadyAnsweredError,
        AlreadyAnsweredError,
    ]
    assert lab.ran == {"a": 2, "a done": 1, "z": 1}


async def test_g065_who_comes_between_reading_and_claiming() -> None:
    class Slow(MemoryCheckpointStore):
        async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
            if not lab.flags:
                lab.flags["first"] = True
                lab.flags["result"] = await lab.run(resume_map={question: "x"})
            return await super().claim(checkpoint_id, claim, expected_version=expected_version)

    lab = Lab(asks_then_writes, store=Slow())
    [question] = ids(await lab.start())
    with pytest.raises(UnknownInterruptError):
        await lab.run(resume_map={question: "y"})
    assert lab.flags["result"].values["a"] == "x"
    assert lab.ran["a"] == 2


async def test_g065_an_update_that_comes_between() -> None:
    class Slow(MemoryCheckpointStore):
        async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
            if not lab.flags:
                lab.flags["first"] = True
                await lab.graph.update_state("t", {"b": 1}, as_node="b")
            return await super().claim(checkpoint_id, claim, expected_version=expected_version)

    lab = Lab(lambda lab: fan(a=lab.ask("a", "a?"), b=lab.ask("b", "b?")), store=Slow())
    first, _ = ids(await lab.start())
    with pytest.raises(CheckpointConflictError):
        await lab.run(resume_map={first: "x"})
    assert (await lab.run(resume_map={first: "x"})).values["b"] == 1


async def test_g065_a_thread_that_is_being_worked_on() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.slow("a")))
    first = asyncio.create_task(lab.start())
    await lab.begun.wait()
    assert (await lab.state()).phase == "running"
    for call in (
        lab.start(),
        lab.run(),
        lab.run(resume="x"),
        lab.graph.cancel("t", "why"),
        lab.graph.update_state("t", {}),
        lab.graph.fork("t"),
    ):
        with pytest.raises(CheckpointBusyError):
            await call
    lab.go_on.set()
    await first


async def test_two_new_threads_at_once() -> None:
    lab = Lab(asks_then_writes)
    outcomes = await asyncio.gather(lab.start(), lab.start(), return_exceptions=True)
    assert sum(isinstance(outcome, CheckpointBusyError) for outcome in outcomes) == 1
    assert lab.ran["a"] == 1


async def test_g067_a_fork_asks_again_under_a_new_id() -> None:
    lab = Lab(asks_then_writes)
    paused = await lab.start()
    await lab.run(resume="one")
    before = await lab.graph.history("t")
    state = await lab.graph.fork("t", at=paused.checkpoint)
    assert (values_of(state), state.parent) == (["q"], paused.checkpoint)
    assert ids(state) != ids(paused)
    assert ids(await lab.run()) == ids(state)
    with pytest.raises(UnknownInterruptError):
        await lab.run(resume_map={ids(paused)[0]: "x"})
    assert (await lab.run(resume="two")).values["a"] == "two"
    assert (await lab.graph.history("t"))[-len(before) :] == before


async def test_g068_a_fork_takes_a_new_answer() -> None:
    lab = Lab(asks_then_writes)
    paused = await lab.start()
    await lab.run(resume="one")
    await lab.graph.fork("t", at=paused.checkpoint, new_thread_id="u")
    result = await lab.graph.invoke(thread_id="u", resume="two")
    assert result.values["a"] == "two"
    assert (await lab.state()).values["a"] == "one"
    with pytest.raises(CheckpointConflictError, match="exists already; give another"):
        await lab.graph.fork("t", new_thread_id="u")
    with pytest.raises(CheckpointNotFoundError):
        await lab.graph.fork("t", at=99)


async def test_a_fork_keeps_what_is_finished_and_what_was_answered() -> None:
    lab = Lab(lambda lab: fan(a=lab.write("a", c=1), b=lab.ask("b", "q1", "q2")))
    await lab.start()
    paused = await lab.run(resume="A")
    await lab.run(resume="B")
    await lab.graph.fork("t", at=paused.checkpoint)
    assert (await lab.run(resume="C")).values["b"] == ["A", "C"]
    assert lab.ran["a"] == 1


async def test_a_fork_lets_nodes_with_tools_in_them_begin_anew() -> None:
    def node(state: State) -> object:
        lab.ran["a"] += 1
        stateful_interrupt("tool?", "kept")

    lab = Lab(lambda lab: chain(lab, a=node))
    paused = await lab.start()
    state = await lab.graph.fork("t", at=paused.checkpoint)
    assert state.interrupts == ()
    assert values_of(await lab.run()) == ["tool?"]
    assert lab.ran["a"] == 2


async def test_a_fork_at_a_breakpoint_and_at_the_end() -> None:
    lab = Lab(asks_then_writes, {"interrupt_before": ["z"]})
    await lab.start()
    paused = await lab.run(resume="x")
    await lab.run(resume=True)
    state = await lab.graph.fork("t", at=paused.checkpoint)
    assert values_of(state) == ["z"]
    assert ids(state) != ids(paused)
    assert (await lab.run(resume=True)).values["log"] == ["z"]
    assert (await lab.graph.fork("t")).phase == "finished"


async def test_g070_draft_and_review() -> None:
    def review(state: State) -> object:
        lab.ran["review"] += 1
        verdict = node_interrupt(f"v{state['n']}")
        return Command(goto=END if verdict == "ok" else "draft")

    def draft(state: State) -> object:
        lab.ran["draft"] += 1
        return {"n": state.get("n", 0) + 1}

    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(State).add_node("draft", draft)
        graph.add_node("review", review, destinations=["draft"])
        return graph.add_edge(START, "draft").add_edge("draft", "review")

    lab = Lab(build)
    assert values_of(await lab.start()) == ["v1"]
    second = await lab.run(resume="redo")
    assert values_of(second) == ["v2"]
    assert second.interrupts[0].address == "runnable:graph;node:review:2"
    assert (await lab.run(resume="ok")).next == ()
    assert lab.ran == {"draft": 2, "review": 4}


async def test_history_newest_first() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.write("a"), b=lab.ask("b", "q")))
    await lab.start()
    await lab.run(resume="x")
    snapshots = await lab.graph.history("t")
    assert [
        (snapshot.checkpoint, snapshot.parent, snapshot.next, snapshot.phase)
        for snapshot in snapshots
    ] == [
        (3, 2, (), "finished"),
        (2, 1, ("b",), "paused"),
        (1, None, ("a",), "running"),
    ]
    assert [snapshot.checkpoint for snapshot in await lab.graph.history("t", limit=2)] == [3, 2]
    with pytest.raises(CheckpointNotFoundError):
        await lab.state(7)


async def test_update_state_withdraws_the_question() -> None:
    def node(state: State) -> object:
        return {"a": [state.get("n"), node_interrupt(f"{state.get('n')}?")]}

    lab = Lab(lambda lab: chain(lab, a=node))
    [old] = ids(await lab.start(n=1))
    state = await lab.graph.update_state("t", {"n": 99})
    assert (state.next, state.interrupts, state.phase) == (("a",), (), "paused")
    with pytest.raises(UnknownInterruptError):
        await lab.run(resume_map={old: "yes"})
    assert values_of(await lab.run()) == ["99?"]
    assert (await lab.run(resume="yes")).values["a"] == [99, "yes"]


async def test_update_state_as_a_node_that_waits() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = fan(a=lab.ask("a", "a?"), b=lab.ask("b", "b?"))
        graph.add_node("j", lab.write("j"))
        return graph.add_edge(["a", "b"], "j")

    lab = Lab(build)
    asked = ids(await lab.start())
    state = await lab.graph.update_state("t", {"a": "A"}, as_node="a")
    assert (ids(state), state.next) == (asked[1:], ("b",))
    state = await lab.graph.update_state("t", {"b": "B"}, as_node="b")
    assert (state.interrupts, state.next) == ((), ("j",))
    assert (await lab.run()).values == {"a": "A", "b": "B", "log": ["j"]}
    assert lab.ran == {"a": 1, "b": 1, "j": 1}


async def test_update_state_as_a_node_at_its_breakpoint() -> None:
    lab = Lab(asks_then_writes, {"interrupt_before": ["a", "z"]})
    await lab.start()
    state = await lab.graph.update_state("t", {"a": "A"}, as_node="a")
    assert (state.interrupts, state.next) == ((), ("z",))
    assert values_of(await lab.run()) == ["z"]
    await lab.graph.update_state("t", {"c": 1})
    assert values_of(await lab.run()) == ["z"]
    assert lab.ran == {}


async def test_update_state_as_any_node() -> None:
    lab = Lab(asks_then_writes)
    await lab.start()
    await lab.run(resume="x")
    state = await lab.graph.update_state("t", {"a": "y"}, as_node="a")
    assert state.next == ("z",)
    assert (await lab.run()).values["log"] == ["z", "z"]
    state = await lab.graph.update_state("t", {"c": 1}, as_node=START)
    assert state.next == ("a",)


async def test_a_command_goes_on_with_a_finished_thread() -> None:
    lab = Lab(asks_then_writes)
    await lab.start()
    await lab.run(resume="x")
    result = await lab.run(command=Command(goto="z", update={"c": 1}))
    assert (result.values["log"], result.values["c"]) == (["z", "z"], 1)
    assert lab.ran["a"] == 2


def and_c(lab: Lab) -> StateGraph:
    """A node that asks, one after it, and `c`, to which only a command leads."""
    graph = StateGraph(State).add_node("a", lab.ask("a", "q"), destinations=("c",))
    graph.add_node("z", lab.write("z")).add_node("c", lab.write("c"))
    return graph.add_edge(START, "a").add_edge("a", "z").add_edge("z", END)


async def test_a_command_runs_its_node_at_once_beside_a_question() -> None:
    lab = Lab(and_c)
    [asked] = ids(await lab.start())
    result = await lab.run(command=Command(goto="c", update={"foo": "x"}))
    assert (ids(result), result.next, lab.ran) == ([asked], ("a",), {"a": 1, "c": 1})
    assert (result.values["foo"], result.values["log"]) == ("x", ["c"])
    result = await lab.run(resume="A")
    assert (result.values["log"], result.next) == (["c", "z"], ())
    assert lab.ran == {"a": 2, "a done": 1, "c": 1, "z": 1}


async def test_a_command_to_a_node_of_the_step_waits_for_the_next_step() -> None:
    lab = Lab(and_c)
    [asked] = ids(await lab.start())
    result = await lab.run(command=Command(goto=["a", "c"]))
    assert (ids(result), result.next, lab.ran) == ([asked], ("a", "a"), {"a": 1, "c": 1})
    [again] = ids(await lab.run(resume="A"))
    assert (again != asked, (await lab.state()).next) == (True, ("a",))


async def test_a_command_to_a_node_with_a_breakpoint_waits_for_the_next_step() -> None:
    lab = Lab(and_c, {"interrupt_before": ["c"]})
    await lab.start()
    result = await lab.run(command=Command(goto="c"))
    assert (values_of(result), result.next) == (["q"], ("a", "c"))
    result = await lab.run(resume="A")
    assert (values_of(result), set(result.next)) == (["c"], {"z", "c"})
    assert "c" not in lab.ran
    await lab.run(resume=True)
    assert lab.ran["c"] == 1


async def test_durability_interrupt_keeps_less() -> None:
    for durability, count in (("step", 3), ("interrupt", 2)):
        lab = Lab(
            lambda lab: chain(lab, a=lab.write("a"), b=lab.write("b"), c=lab.ask("c", "q")),
            {"durability": durability},
        )
        await lab.start()
        assert (await lab.state()).checkpoint == count
        assert (await lab.run(resume="x")).values["log"] == ["a", "b"]
        assert lab.ran == {"a": 1, "b": 1, "c": 2, "c done": 1}


async def test_e119_go_on_from_one_thread_under_another_id() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.write("a"), b=lab.ask("b", "q")))
    first = await lab.start()
    await lab.graph.fork("t", new_thread_id="other")
    result = await lab.run(resume="x", thread_id="other")
    assert (result.values["b"], result.thread_id, lab.ran["a"]) == ("x", "other", 1)
    assert ids(await lab.state()) == ids(first)
    assert (await lab.graph.get_state("other")).phase == "finished"
    assert (await lab.run(resume="y")).values["b"] == "y"
    assert (await lab.graph.get_state("other")).values["b"] == "x"
