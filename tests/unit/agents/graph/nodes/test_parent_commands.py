"""Commands of a sub-graph's node to the graph around it: row 14 of the feature table."""

from __future__ import annotations

from typing import Any

import pytest

from agents.graph import (
    END,
    START,
    Command,
    CompiledGraph,
    GotoError,
    GraphBuildError,
    Send,
    StateGraph,
    StateUpdateError,
    node_interrupt,
)
from tests.unit.agents.graph.support import Lab, State, chain, fan, values_of

UP = Command.PARENT


def around(lab: Lab, inner: CompiledGraph, **options: Any) -> StateGraph:
    """A graph whose node `p` is a sub-graph; by itself it leads to `z`, by command also to `y`."""
    options.setdefault("destinations", ["y", "z"])
    graph = StateGraph(State).add_node("p", inner, **options).add_edge(START, "p")
    graph.add_node("y", lab.write("y")).add_node("z", lab.write("z"))
    return graph.add_edge("p", "z")


def says(command: Command) -> Any:
    return lambda state: command


async def run(command: Command, **options: Any) -> tuple[Lab, Any]:
    def build(lab: Lab) -> StateGraph:
        inner = chain(lab, s1=lab.write("s1"), s2=says(command), s3=lab.write("s3"))
        return around(lab, inner.compile(), **options)

    lab = Lab(build)
    return lab, await lab.start(foo="x")


async def test_a_command_leads_the_graph_around() -> None:
    lab, result = await run(Command(graph=UP, goto="y", update={"log": ["up"], "n": 1}))
    assert (result.values["log"], result.values["n"]) == (["up", "y"], 1)
    assert lab.ran == {"s1": 1, "y": 1}


async def test_without_a_goto_the_edges_of_the_graph_around_lead_on() -> None:
    lab, result = await run(Command(graph=UP, update={"log": ["up"]}))
    assert result.values["log"] == ["up", "z"]
    assert "s3" not in lab.ran


async def test_it_may_end_the_graph_around_or_send() -> None:
    _, result = await run(Command(graph=UP, goto=END))
    assert (result.values["log"], result.next) == ([], ())
    lab, result = await run(Command(graph=UP, goto=[Send("y", {}), Send("y", {})]))
    assert lab.ran["y"] == 2


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (Command(graph=UP, goto="s1"), GotoError),
        (Command(graph=UP, goto="p"), GotoError),
        (Command(graph=UP, update={"nope": 1}), StateUpdateError),
        (Command(graph=UP, update={"n": "x"}), StateUpdateError),
        (Command(graph="__other__", goto="y"), GotoError),
    ],
)
async def test_it_is_checked_before_anything_is_written(
    command: Command, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await run(command)


async def test_at_the_top_there_is_no_graph_around() -> None:
    lab = Lab(lambda lab: chain(lab, a=says(Command(graph=UP, goto="a"))))
    with pytest.raises(GotoError, match="__parent__"):
        await lab.start()
    lab = Lab(lambda lab: chain(lab, a=lab.ask("a", "q")))
    await lab.start()
    with pytest.raises(GotoError, match="__parent__"):
        await lab.run(resume="x", command=Command(graph=UP, goto="a"))
    assert await lab.pending() == ["q"]


async def test_a_node_beside_it_finishes_first() -> None:
    def build(lab: Lab) -> StateGraph:
        inner = fan(s1=says(Command(graph=UP, goto="y")), s2=lab.ask("s2", "q", key="a"))
        return around(lab, inner.compile())

    lab = Lab(build)
    assert values_of(await lab.start()) == ["q"]
    result = await lab.run(resume="x")
    assert (result.values["log"], lab.ran["s2"]) == (["y"], 2)


async def test_two_commands_of_one_step() -> None:
    def build(lab: Lab) -> StateGraph:
        inner = fan(s1=says(Command(graph=UP)), s2=says(Command(graph=UP)))
        return around(lab, inner.compile())

    lab = Lab(build)
    with pytest.raises(StateUpdateError, match="s1, s2"):
        await lab.start()


async def test_after_a_question_and_in_a_breakpoint_after_the_node() -> None:
    def asks(state: State) -> object:
        return Command(graph=UP, goto="y", update={"a": node_interrupt("q")})

    def build(lab: Lab) -> StateGraph:
        return around(lab, chain(lab, s=asks).compile(interrupt_after=["s"]))

    lab = Lab(build)
    assert values_of(await lab.start()) == ["q"]
    result = await lab.run(resume="x")
    assert (values_of(result), result.interrupts[0].kind) == (["s"], "after")
    result = await lab.run(resume=True)
    assert (result.values["a"], result.values["log"]) == ("x", ["y"])


async def test_from_two_graphs_down_it_leads_the_next_one() -> None:
    def build(lab: Lab) -> StateGraph:
        inner = chain(lab, i=says(Command(graph=UP, goto="m2", update={"log": ["i"]}))).compile()
        middle = StateGraph(State).add_node("m1", inner, destinations=["m2"]).add_edge(START, "m1")
        return around(lab, middle.add_node("m2", lab.write("m2")).compile())

    assert (await Lab(build).start()).values["log"] == ["i", "m2", "z"]


def test_nodes_that_only_commands_lead_to_must_be_named() -> None:
    lab = Lab(lambda lab: StateGraph(State))
    with pytest.raises(GraphBuildError, match="destinations"):
        around(lab, chain(lab, s=lab.write("s")).compile(), destinations=None).compile()
