"""A target without data: a thread of a graph, a question of a node, and a gate, which refuses (R9).

That whatever else asks is entered as a target stands in `tests/property/test_silence.py`.
"""

from __future__ import annotations

from typing import TypedDict

import pytest

from agents import ChatModelAgent, MemoryCheckpointStore, Runner, ScriptedModel, interrupt, tool
from agents.core.component.state import get_resume_context
from agents.core.errors import ResumeDataError
from agents.graph import START, CompiledGraph, GraphAgent, StateGraph, node_interrupt
from agents.models import call, say
from tests.unit.agents.support import collect, contexts

SEEN: list[object] = []


class State(TypedDict, total=False):
    input: str
    output: str


def graph_of(node: object, store: MemoryCheckpointStore | None = None) -> CompiledGraph:
    graph = StateGraph(State).add_node("act", node).add_edge(START, "act")  # type: ignore[arg-type]
    return graph.compile(checkpoint_store=store)


async def test_it_is_entered_in_a_thread_of_a_graph() -> None:
    def node(_: State) -> State:
        context = get_resume_context(object)
        if not context[0]:
            interrupt("ready?")
        SEEN.append(context)
        return {}

    SEEN.clear()
    graph = graph_of(node, MemoryCheckpointStore())
    (question,) = (await graph.invoke({}, thread_id="1")).interrupts
    assert (await graph.invoke(thread_id="1", resume_map={question.id: None})).interrupts == ()
    assert SEEN == [(True, False, None)]


async def test_a_question_of_a_node_gets_none() -> None:
    def node(_: State) -> State:
        SEEN.append(node_interrupt("ready?"))
        return {"output": "done"}

    SEEN.clear()
    runner = Runner(GraphAgent(graph_of(node), "root"), checkpoint_store=MemoryCheckpointStore())
    (asked,) = contexts(await collect(runner.query("Go.", checkpoint_id="1"))).values()
    await collect(runner.resume("1", [asked.id]))
    assert SEEN == [None]
    assert await runner.pending("1") == ()


async def test_i1_a_gate_refuses_it() -> None:
    SEEN.clear()

    @tool(gate="approval")
    def act() -> str:
        """Act."""
        SEEN.append("acted")
        return "done"

    model = ScriptedModel([call("act", {}, id="c1"), say("Done.")])
    agent = ChatModelAgent(name="root", model=model, tools=[act])
    runner = Runner(agent, checkpoint_store=MemoryCheckpointStore())
    (context,) = contexts(await collect(runner.query("Go.", checkpoint_id="1"))).values()
    with pytest.raises(
        ResumeDataError, match=r"got NoneType; nothing ran; a method of `request\.info`"
    ):
        await collect(runner.resume("1", [context.id]))
    assert SEEN == []
    assert [left.id for left in await runner.pending("1")] == [context.id]
