"""Which step of how many: told of a graph whose nodes can only run one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents.graph import END, START, Command, StateGraph, node_interrupt
from agents.graph.nodes.questions import Question
from agents.memory import MemoryCheckpointStore
from tests.unit.agents.graph.support import Lab, State, chain

NodeFunction = Callable[..., Any]


def update(_: State) -> dict[str, object]:
    return {}


def no_update(_: State) -> None:
    return None


def other_state(_: State) -> State | None:
    return None


async def later(_: State) -> dict[str, object]:
    return {}


def unsaid(_: State):  # type: ignore[no-untyped-def]
    return {}


def anything(_: State) -> object:
    return {}


def leads(_: State) -> Command | None:
    return None


def unreadable(_: State) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821 - it is nowhere
    return {}


def a_chain(**nodes: NodeFunction) -> StateGraph:
    return chain(Lab(lambda lab: StateGraph(State)), **nodes)


@pytest.mark.parametrize("node", [update, no_update, other_state, later])
def test_nodes_that_only_update_the_state_are_a_line(node: NodeFunction) -> None:
    assert a_chain(a=update, b=node, c=update).compile().topology.line == ("a", "b", "c")


@pytest.mark.parametrize("node", [unsaid, anything, leads, unreadable, print, lambda _: {}])
def test_a_node_that_might_lead_elsewhere_makes_it_uncertain(node: NodeFunction) -> None:
    assert a_chain(a=update, b=node).compile().topology.line == ()


def test_a_node_that_says_where_its_commands_lead_is_believed() -> None:
    graph = StateGraph(State).add_node("a", unsaid, destinations=[]).add_node("b", update)
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
    assert graph.compile().topology.line == ("a", "b")
    graph = StateGraph(State).add_node("a", update, destinations=["b"]).add_node("b", update)
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
    assert graph.compile().topology.line == ()


def test_a_graph_in_a_graph_may_command_the_one_around_it() -> None:
    inner = a_chain(x=update).compile()
    graph = StateGraph(State).add_node("a", inner).add_edge(START, "a").add_edge("a", END)
    assert graph.compile().topology.line == ()


def test_routers_joins_forks_and_loops_are_no_line() -> None:
    routed = a_chain(a=update, b=update).add_conditional_edges("a", lambda _: END, [END])
    forked = a_chain(a=update, b=update).add_edge(START, "b")
    joined = a_chain(a=update, b=update).add_edge(["a", "b"], END)
    looped = StateGraph(State).add_node("a", update).add_node("b", update)
    looped.add_edge(START, "a").add_edge("a", "b").add_edge("b", "a")
    open_end = StateGraph(State).add_node("a", update).add_edge(START, "a")
    graphs = [routed, forked, joined, looped, open_end]
    assert [graph.compile().topology.line for graph in graphs] == [()] * 5


def test_hidden_nodes_are_no_steps() -> None:
    graph = StateGraph(State).add_node("a", update).add_node("b", update, hidden=True)
    graph.add_edge(START, "b").add_edge("b", "a").add_edge("a", END)
    assert graph.compile().topology.line == ("a",)


async def test_what_waits_knows_the_line() -> None:
    def ask(_: State) -> dict[str, object]:
        node_interrupt("Sure?")
        return {}

    graph = a_chain(prepare=update, ask=ask, send=update)
    store = MemoryCheckpointStore()
    made = graph.compile(checkpoint_store=store, interrupt_before=["send"])
    asked = (await made.invoke({}, thread_id="t")).interrupts
    asked += (await made.invoke(resume="yes", thread_id="t")).interrupts
    infos = [interrupt.context.info for interrupt in asked]
    assert [(info.node, info.line) for info in infos if isinstance(info, Question)] == [
        ("ask", ("prepare", "ask", "send")),
        ("send", ("prepare", "ask", "send")),
    ]
