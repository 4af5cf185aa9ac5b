"""Wrong calls of a graph: each is told at once, before anything runs or is asked."""

from __future__ import annotations

from operator import add
from typing import Annotated, Any, TypedDict

import pytest

from agents.core.errors import AgentConfigError
from agents.graph import (
    START,
    Command,
    GraphBuildError,
    StateGraph,
)
from tests.unit.agents.graph.support import Lab, State, chain, ids, values_of


def pay(lab: Lab) -> StateGraph:
    return chain(lab, pay=lab.ask("pay", "pay?", key="a"))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("interupt_before", "did you mean 'interrupt_before'"),
        ("checkpointer", "did you mean 'checkpoint_store'"),
        ("recursion_limit", "did you mean 'step_limit'"),
        ("xyz", "it takes: checkpoint_store, interrupt_before"),
    ],
)
def test_an_unknown_option_of_compile_names_the_nearest_or_all(wrong: str, told: str) -> None:
    options: Any = {wrong: ["pay"]}
    with pytest.raises(TypeError, match=f"'{wrong}'.*{told}"):
        pay(Lab(pay)).compile(**options)


@pytest.mark.parametrize(
    ("wrong", "nearest"), [("retry", "retry_policy"), ("to_inputs", "to_input")]
)
def test_an_unknown_option_of_a_node_names_the_nearest(wrong: str, nearest: str) -> None:
    options: Any = {wrong: None}
    graph = StateGraph(State)
    with pytest.raises(TypeError, match=f"did you mean '{nearest}'"):
        graph.add_node("a", lambda state: None, **options)
    graph.add_node("a", lambda state: None)  # the wrong one left nothing behind


@pytest.mark.parametrize("wrong", [{"resume_maps": {}}, {"resume": "yes", "commands": None}])
async def test_an_unknown_argument_of_invoke_answers_nothing(wrong: dict[str, Any]) -> None:
    lab = Lab(pay)
    before = ids(await lab.start())
    with pytest.raises(TypeError, match="did you mean"):
        await lab.run(**wrong)
    with pytest.raises(TypeError, match="did you mean"):
        async for _ in lab.graph.stream(thread_id="t", **wrong):
            pass
    assert (ids(await lab.state()), lab.ran) == (before, {"pay": 1})


@pytest.mark.parametrize("command", [Command(), Command(goto=[]), "x", None, {"goto": "a"}])
async def test_a_command_that_says_nothing_is_refused(command: Any) -> None:
    lab = Lab(pay)
    await lab.start()
    before = await lab.state()
    with pytest.raises(AgentConfigError, match="command"):
        await lab.run(command=command)
    assert await lab.state() == before
    await lab.run(resume="yes")
    finished = await lab.state()
    with pytest.raises(AgentConfigError, match="command"):
        await lab.run(command=command)
    assert await lab.state() == finished


@pytest.mark.parametrize("given", [Command(goto="pay"), "text", [], 0, {"a"}])
async def test_an_input_is_a_dict(given: Any) -> None:
    lab = Lab(pay)
    with pytest.raises(AgentConfigError, match="`resume=…`"):
        await lab.run(given)
    assert lab.ran == {}


@pytest.mark.parametrize("thread_id", [None, 7, b"t"])
async def test_a_thread_id_is_a_text(thread_id: Any) -> None:
    lab = Lab(pay)
    with pytest.raises(AgentConfigError):
        await lab.run({}, thread_id=thread_id)
    with pytest.raises(AgentConfigError):
        await lab.graph.get_state(thread_id)
    assert lab.ran == {}


async def test_a_graph_with_a_store_runs_in_a_node_without_a_thread_id() -> None:
    lab = Lab(pay)
    inner = chain(lab, b=lab.write("b", b=1)).compile(checkpoint_store=lab.store)

    async def node(state: State) -> object:
        return {"a": (await inner.invoke({})).values["b"]}

    lab.build = lambda lab: chain(lab, a=node)
    assert (await lab.start()).values["a"] == 1


@pytest.mark.parametrize("thread_id", ["room@2024", "room@2024@", "a@b.c", "@1", "x@1@2"])
async def test_any_text_is_a_thread_id(thread_id: str) -> None:
    lab = Lab(pay)
    [question] = ids(await lab.run({}, thread_id=thread_id))
    await lab.run(thread_id=thread_id, resume_map={question: "yes"})
    snapshots = await lab.graph.history(thread_id)
    assert ({snapshot.thread_id for snapshot in snapshots}, snapshots[0].phase) == (
        {thread_id},
        "finished",
    )


async def test_a_thread_never_meets_the_copies_of_another() -> None:
    lab = Lab(pay)
    await lab.run({"foo": "room"}, thread_id="room")
    await lab.run(thread_id="room", resume="yes")
    await lab.run({"foo": "one"}, thread_id="room@1")
    assert (await lab.graph.get_state("room", 1)).values["foo"] == "room"
    assert (await lab.graph.get_state("room@1")).values["foo"] == "one"


class _Async:
    async def __call__(self, old: object, new: object) -> object:
        return new


async def later(old: object, new: object) -> object:
    return new


@pytest.mark.parametrize("reducer", [lambda old: old, lambda: None, later, _Async(), len])
def test_a_reducer_that_does_not_take_two_values_is_told_when_the_graph_is_built(
    reducer: Any,
) -> None:
    schema: Any = TypedDict("schema", {"x": Annotated[list[str], reducer]})
    with pytest.raises(GraphBuildError, match="the reducer of 'x'"):
        StateGraph(schema)


@pytest.mark.parametrize(
    ("reducer", "merged"), [(add, 5), (max, 3), (lambda old, new, more=1: old - new * more, -5)]
)
async def test_reducers_of_two_values_are_called_with_both(reducer: Any, merged: int) -> None:
    schema: Any = TypedDict("schema", {"x": Annotated[int, reducer]})
    graph = StateGraph(schema).add_node("n", lambda state: {"x": 2}).add_edge(START, "n")
    assert (await graph.compile().invoke({"x": 3})).values == {"x": merged}


async def test_a_reader_of_updates_cannot_change_the_state() -> None:
    lab = Lab(
        lambda lab: chain(lab, draft=lambda s: {"a": {"pay": 1}}, pay=lambda s: {"b": s["a"]})
    )
    async for part in lab.graph.stream({}, thread_id="t", mode="updates"):
        assert isinstance(part, dict)
        if "draft" in part:
            part["draft"]["a"]["pay"] = 9999
    assert (await lab.state()).values["b"] == {"pay": 1}
    assert values_of(await lab.state()) == []
