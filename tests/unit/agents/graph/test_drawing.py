"""Pictures of graphs: lines for Mermaid."""

from __future__ import annotations

import re

from hypothesis import example, given, strategies as st

from agents.graph import END, START, Send, StateGraph
from tests.unit.agents.graph.support import State


def nothing(_: State) -> None:
    return None


def test_nodes_edges_routers_joins_and_breakpoints() -> None:
    graph = StateGraph(State)
    for name in ("plan", "pay", "tell"):
        graph.add_node(name, nothing)
    graph.add_node("jump", nothing, destinations=["plan", END])
    graph.add_edge(START, "plan").add_edge("plan", "tell").add_edge(["pay", "tell"], "jump")
    graph.add_conditional_edges("plan", lambda _: "yes", {"yes": "pay", "no": END})
    assert graph.compile(interrupt_before=["pay"]).draw_mermaid() == (
        "flowchart TD\n"
        "    start((start))\n"
        "    finish(((end)))\n"
        '    n0["plan"]\n'
        '    n1["pay"]\n'
        '    n2["tell"]\n'
        '    n3["jump"]\n'
        "    start --> n0\n"
        "    n0 --> n2\n"
        "    start_join0[ ]\n"
        "    n1 --- start_join0\n"
        "    n2 --- start_join0\n"
        "    start_join0 --> n3\n"
        '    n0 -.->|"yes"| n1\n'
        '    n0 -.->|"no"| finish\n'
        "    n3 -.-> n0\n"
        "    n3 -.-> finish\n"
        "    classDef asks stroke-width:4px\n"
        "    class n1 asks\n"
    )


def test_a_sub_graph_is_drawn_inside_of_its_node() -> None:
    inner = StateGraph(State).add_node("ask", nothing).add_edge(START, "ask").add_edge("ask", END)
    outer = StateGraph(State).add_node("sub", inner.compile(interrupt_after=["ask"]))
    drawn = outer.add_edge(START, "sub").compile().draw_mermaid()
    assert drawn == (
        "flowchart TD\n"
        "    start((start))\n"
        "    finish(((end)))\n"
        '    subgraph n0["sub"]\n'
        "        n0_start((start))\n"
        "        n0_finish(((end)))\n"
        '        n0_n0["ask"]\n'
        "        n0_start --> n0_n0\n"
        "        n0_n0 --> n0_finish\n"
        "    end\n"
        "    start --> n0\n"
        "    classDef asks stroke-width:4px\n"
        "    class n0_n0 asks\n"
    )


def test_a_router_that_may_lead_anywhere_is_drawn_so() -> None:
    graph = StateGraph(State).add_node("a", nothing).add_node("b", nothing).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda _: Send("b", {}))
    drawn = graph.compile().draw_mermaid()
    assert [line.strip() for line in drawn.splitlines() if "-.->" in line] == [
        "n0 -.-> n0",
        "n0 -.-> n1",
        "n0 -.-> finish",
    ]


@given(st.text(min_size=1).filter(lambda name: name not in {START, END, "*"}))
@example('x"]; click n0 "javascript:alert(1)"')
@example("a\nb")
@example("end")
@example("ü%%{}")
def test_no_name_leaves_its_label(name: str) -> None:
    graph = StateGraph(State).add_node(name, nothing).add_edge(START, name)
    lines = graph.compile().draw_mermaid().split("\n")
    assert len(lines) == 6
    assert re.fullmatch(r' {4}n0\["[^"\[\]{};%\n]*(?:#\d+;[^"\[\]{};%\n]*)*"\]', lines[3])
