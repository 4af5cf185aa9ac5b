"""Wrong use: scenarios 50 to 58 of the graphs' reference, and what cannot be built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    CheckpointNotFoundError,
    NothingPendingError,
    OutsideRunError,
    ResumeError,
    UnregisteredTypeError,
)
from agents.core.interrupt import interrupt
from agents.core.scope import current_address
from agents.graph import (
    END,
    START,
    Command,
    GotoError,
    GraphBuildError,
    GraphStepLimitError,
    NoCheckpointerError,
    OutsideNodeError,
    RetryPolicy,
    Send,
    StateGraph,
    StateUpdateError,
    node_interrupt,
)
from tests.unit.agents.graph.support import Lab, State, chain, ids, values_of


def one_question(lab: Lab) -> StateGraph:
    return chain(lab, a=lab.ask("a", "q"))


async def test_g050_without_a_store_questions_surface() -> None:
    lab = Lab(one_question, {"checkpoint_store": None})
    result = await lab.run({}, thread_id="")
    assert values_of(result) == ["q"]
    assert (result.thread_id, result.checkpoint) == ("", 0)
    for request in ({"resume": "x"}, {"resume_map": {ids(result)[0]: "x"}}, {}):
        with pytest.raises(NoCheckpointerError, match="checkpoint_store"):
            await lab.run(**request)
    assert lab.ran["a"] == 1
    assert values_of(await lab.run({}, thread_id="")) == ["q"]
    assert lab.ran["a"] == 2


async def test_g050_a_thread_id_needs_a_store() -> None:
    lab = Lab(one_question, {"checkpoint_store": None})
    with pytest.raises(NoCheckpointerError, match="needs a store"):
        await lab.start()
    assert lab.ran == {}


async def test_g050_without_a_thread_id() -> None:
    lab = Lab(one_question)
    with pytest.raises(NoCheckpointerError):
        await lab.run({}, thread_id="")
    with pytest.raises(NoCheckpointerError):
        await lab.run(thread_id="", resume="x")
    assert lab.ran == {}


async def test_g052_a_thread_that_never_ran() -> None:
    lab = Lab(one_question)
    for request in ({"resume": "x"}, {"resume_map": {"x": 1}}, {}):
        with pytest.raises(CheckpointNotFoundError):
            await lab.run(**request)
    assert lab.ran == {}


async def test_g053_a_finished_thread() -> None:
    lab = Lab(one_question)
    [question] = ids(await lab.start())
    await lab.run(resume="x")
    before = await lab.state()
    for request in ({"resume": "y"}, {"resume_map": {question: "y"}}, {}):
        with pytest.raises(ResumeError):
            await lab.run(**request)
    assert await lab.state() == before
    assert lab.ran["a"] == 2


async def test_g055_reading_without_a_store() -> None:
    graph = Lab(one_question, {"checkpoint_store": None}).graph
    calls: list[Callable[[], Any]] = [
        lambda: graph.get_state("t"),
        lambda: graph.history("t"),
        lambda: graph.update_state("t", {}),
        lambda: graph.fork("t"),
        lambda: graph.cancel("t", "why"),
        lambda: graph.recover("t"),
    ]
    for call in calls:
        with pytest.raises(NoCheckpointerError):
            await call()


async def test_g056_outside_of_a_run() -> None:
    with pytest.raises(OutsideRunError):
        node_interrupt("q")
    with pytest.raises(OutsideRunError):
        await Lab(one_question).graph.run_inside({})


async def test_g056_a_router_may_not_ask() -> None:
    def build(ask: Callable[[], object]) -> Callable[[Lab], StateGraph]:
        graph = StateGraph(State).add_node("a", lambda state: None)
        graph.add_conditional_edges(START, lambda state: ask(), ["a"])
        return lambda lab: graph

    with pytest.raises(OutsideNodeError):
        await Lab(build(lambda: node_interrupt("q"))).start()
    with pytest.raises(OutsideRunError):
        await Lab(build(lambda: interrupt("q"))).start()
    graph = StateGraph(State).add_node("a", lambda state: None).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: interrupt("q"), [END])
    with pytest.raises(GraphBuildError, match="a router may not"):
        await Lab(lambda lab: graph).start()


async def test_g056_deeper_than_the_node() -> None:
    from agents.core.component.state import address_segment  # noqa: PLC0415 - only here

    def node(state: State) -> object:
        with address_segment("process", "p0"):
            return node_interrupt("q")

    with pytest.raises(OutsideNodeError):
        await Lab(lambda lab: chain(lab, a=node)).start()


@pytest.mark.parametrize("goto", ["zzz", ["b", "zzz"], Send("zzz", {}), Send(END, {}), 3])
async def test_g058_goto_nowhere(goto: Any) -> None:
    def node(state: State) -> object:
        return Command(
            goto=goto if isinstance(goto, list | str | Send) else [goto], update={"a": 1}
        )

    lab = Lab(lambda lab: chain(lab, a=node, b=lab.write("b")))
    with pytest.raises(GotoError, match="it may lead to"):
        await lab.start()
    state = await lab.state()
    assert (state.values, state.next, lab.ran) == ({"log": []}, ("a",), {})


async def test_g058_goto_an_undeclared_node() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(State)
        graph.add_node("a", lambda state: Command(goto="c"), destinations=["b"])
        graph.add_node("b", lab.write("b")).add_node("c", lab.write("c"))
        return graph.add_edge(START, "a").add_edge("b", "c")

    with pytest.raises(GotoError):
        await Lab(build).start()


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (Command(goto="zzz"), GotoError),
        (Command(update={"nope": 1}), StateUpdateError),
        (Command(update={"n": "x"}), StateUpdateError),
        (Command(update={"a": object()}), UnregisteredTypeError),
    ],
)
async def test_g058_commands_with_a_resume_are_checked_first(
    command: Command, error: type[Exception]
) -> None:
    lab = Lab(one_question)
    await lab.start()
    before = await lab.state()
    with pytest.raises(error):
        await lab.run(resume="x", command=command)
    assert await lab.state() == before
    assert lab.ran["a"] == 1


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        ({"nope": 1}, "no key 'nope'"),
        ({"n": "x"}, "wrong type"),
        ({"log": "x"}, "log"),
        ({"log": [1]}, "wrong type"),
        (3, "not a int"),
        (Command(update={"nope": 1}), "no key 'nope'"),
    ],
)
async def test_updates_that_do_not_fit(result: object, fault: str) -> None:
    lab = Lab(lambda lab: chain(lab, a=lambda state: result))
    with pytest.raises(StateUpdateError, match=fault):
        await lab.start()
    assert (await lab.state()).values == {"log": []}


async def test_values_that_cannot_be_stored() -> None:
    lab = Lab(lambda lab: chain(lab, a=lambda state: {"a": object()}))
    with pytest.raises(UnregisteredTypeError) as caught:
        await lab.start()
    assert "'a' in the update of node 'a'" in caught.value.__notes__[0]
    graph = StateGraph(State).add_node("w", lambda x: None)
    graph.add_conditional_edges(START, lambda state: Send("w", object()), ["w"])
    with pytest.raises(UnregisteredTypeError):
        await Lab(lambda lab: graph).start()


async def test_a_router_that_leads_nowhere() -> None:
    graph = StateGraph(State).add_node("a", lambda state: None).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: "x", {"y": END})
    lab = Lab(lambda lab: graph)
    with pytest.raises(GotoError, match="may lead to: y"):
        await lab.start()
    assert (await lab.state()).phase == "failed"
    graph = StateGraph(State).add_node("a", lambda state: None)
    graph.add_conditional_edges(START, lambda state: [["unhashable"]], ["a"])
    with pytest.raises(GotoError):
        await Lab(lambda lab: graph).start()


def endless(lab: Lab) -> StateGraph:
    graph = StateGraph(State).add_node("a", lambda state: {"log": ["a"]})
    return graph.add_edge(START, "a").add_edge("a", "a")


async def test_the_step_limit_counts_per_call() -> None:
    lab = Lab(endless, {"step_limit": 3})
    with pytest.raises(GraphStepLimitError, match="3 steps in one call"):
        await lab.start()
    state = await lab.state()
    assert (state.values["log"], state.phase, state.step) == (["a"] * 3, "failed", 3)
    with pytest.raises(GraphStepLimitError):
        await lab.run()
    assert (await lab.state()).values["log"] == ["a"] * 6


async def test_a_call_may_have_a_step_limit_of_its_own() -> None:
    lab = Lab(endless, {"step_limit": 3})
    with pytest.raises(GraphStepLimitError, match="5 steps"):
        await lab.run({}, step_limit=5)
    with pytest.raises(GraphStepLimitError, match="1 steps"):
        async for _ in lab.graph.stream(thread_id="t", step_limit=1):
            pass
    assert len((await lab.state()).values["log"]) == 6


async def test_a_graph_in_a_node_may_have_a_step_limit_of_its_own() -> None:
    inner = endless(Lab(endless)).compile(name="inner")

    async def node(state: State) -> object:
        return (await inner.invoke({}, step_limit=2)).values

    with pytest.raises(GraphStepLimitError, match="'inner' took 2 steps"):
        await Lab(lambda lab: chain(lab, a=node)).start()


@pytest.mark.parametrize("limit", [0, -1, "5", 2.5, True])
async def test_a_step_limit_is_a_number_of_steps(limit: Any) -> None:
    lab = Lab(endless)
    with pytest.raises(AgentConfigError, match="step_limit"):
        await lab.run({}, step_limit=limit)
    with pytest.raises(AgentConfigError, match="step_limit"):
        await lab.graph.recover("t", step_limit=limit)


async def test_a_node_that_is_gone() -> None:
    lab = Lab(one_question)
    await lab.start()
    lab.build = lambda lab: chain(lab, other=lab.ask("a", "q"))
    with pytest.raises(AgentChangedError, match="node 'a'"):
        await lab.run(resume="x")
    lab.build, lab.options = one_question, {"name": "another"}
    for call in (lab.run(resume="x"), lab.start(), lab.state()):
        with pytest.raises(AgentChangedError, match="graph 'graph'"):
            await call
    lab.options = {}
    assert (await lab.run(resume="x")).values["a"] == "x"


async def test_cancel_needs_a_reason_and_something_to_cancel() -> None:
    lab = Lab(one_question)
    await lab.start()
    with pytest.raises(AgentConfigError, match="reason"):
        await lab.graph.cancel("t", "")
    await lab.graph.cancel("t", "no longer needed")
    with pytest.raises(NothingPendingError):
        await lab.graph.cancel("t", "again")


async def test_update_state_as_nobody_known() -> None:
    lab = Lab(one_question)
    await lab.start()
    with pytest.raises(AgentConfigError, match="zzz"):
        await lab.graph.update_state("t", {}, as_node="zzz")


async def test_stream_modes() -> None:
    with pytest.raises(AgentConfigError, match="no mode"):
        async for _ in Lab(one_question).graph.stream({}, mode="tasks"):  # type: ignore[arg-type]
            pass


def nothing(state: State) -> None:
    current_address()


def graph(*edges: tuple[Any, str], nodes: str = "ab") -> StateGraph:
    made = StateGraph(State)
    for name in nodes:
        made.add_node(name, nothing)
    for source, target in edges:
        made.add_edge(source, target)
    return made


@pytest.mark.parametrize(
    ("build", "fault"),
    [
        (lambda: graph(("a", "b")).compile(), "nothing leads from START"),
        (lambda: graph((START, "a")).compile(), "nothing leads to b"),
        (lambda: graph((START, "a"), ("a", "zzz")).compile(), "zzz"),
        (lambda: graph((START, "a"), ("zzz", "b")).compile(), "zzz"),
        (lambda: graph((START, "a"), (["a", "zzz"], "b")).compile(), "zzz"),
        (lambda: graph().add_conditional_edges(START, nothing, ["zzz"]).compile(), "zzz"),
        (lambda: graph().add_conditional_edges("zzz", nothing).compile(), "zzz"),
        (lambda: graph().add_conditional_edges(END, nothing), "no function can lead"),
        (lambda: graph().add_conditional_edges("a", "b"), "no function can lead"),  # type: ignore[arg-type]
        (lambda: graph().add_node("a", nothing), "two nodes 'a'"),
        (lambda: graph().add_node(START, nothing), "cannot be the name"),
        (lambda: graph().add_node("*", nothing), "cannot be the name"),
        (lambda: graph().add_node("c", 3), "neither a function"),  # type: ignore[arg-type]
        (lambda: graph().add_node("c", lambda: None), "must take the state"),
        (lambda: graph().add_node("c", lambda a, b, c: None), "must take the state"),
        (lambda: graph().add_node("c", nothing, to_input=dict), "is no graph"),
        (lambda: graph(nodes="").add_node("c", nothing, destinations=["zzz"]).compile(), "zzz"),
        (lambda: graph((END, "a")), "cannot lead"),
        (lambda: graph(("a", START)), "cannot lead"),
        (lambda: graph(([], "a")), "cannot lead"),
        (lambda: graph(([START, "a"], "b")), "wait for START"),
        (lambda: graph((START, "a"), nodes="a").compile(step_limit=0), "at least one step"),
        (lambda: graph((START, "a")).add_edge(START, "b").compile(durability="exit"), "durability"),  # type: ignore[arg-type]
        (lambda: graph().add_node("c", nothing, stateful=True), "stateful"),
        (lambda: RetryPolicy(attempts=0), "at least 1 attempt"),
        (lambda: StateGraph(dict), "cannot describe a state"),
        (lambda: StateGraph(type("Empty", (), {"__annotations__": {}})), "cannot describe"),
    ],
)
def test_graphs_that_make_no_sense(build: Callable[[], object], fault: str) -> None:
    with pytest.raises(GraphBuildError, match=fault):
        build()
