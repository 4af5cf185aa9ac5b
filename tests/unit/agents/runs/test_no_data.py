"""A target without data: its component is entered as one, and a gate refuses (R9)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any, TypedDict

import pytest

from agents import (
    Agent,
    AgentEvent,
    AgentInput,
    ChatModelAgent,
    MemoryCheckpointStore,
    Runner,
    ScriptedModel,
    interrupt,
    make_message,
    tool,
)
from agents.agent import InterruptEvent, function_agent
from agents.core.component.legacy import InterruptAndRerunError, resume_info
from agents.core.component.state import get_resume_context
from agents.core.errors import ResumeDataError
from agents.graph import START, GraphAgent, StateGraph, node_interrupt
from agents.models import call, say

SEEN: list[object] = []


class State(TypedDict, total=False):
    input: str
    output: str


def _ask() -> None:
    context = get_resume_context(object)
    if not context[0]:
        interrupt("ready?")
    SEEN.append(context)


def _ask_as_of_old() -> None:
    info = resume_info()
    if not info.is_resume_target:
        raise InterruptAndRerunError("ready?")
    SEEN.append((info.is_resume_target, info.has_resume_data, info.resume_data))


def _calling(ask: Callable[[], None]) -> Agent:
    @tool
    def act() -> str:
        """Act."""
        ask()
        return "done"

    model = ScriptedModel([call("act", {}, id="c1"), say("Done.")])
    return ChatModelAgent(name="root", model=model, tools=[act])


def _graph(ask: Callable[[], object]) -> Any:
    def node(_: State) -> State:
        ask()
        return {"output": "done"}

    return StateGraph(State).add_node("act", node).add_edge(START, "act")


def a_function(ask: Callable[[], None]) -> Agent:
    async def work(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        ask()
        yield make_message("done")

    return function_agent("root", work)


def a_graph(ask: Callable[[], None]) -> Agent:
    return GraphAgent(_graph(ask).compile(), "root")


async def _contexts(events: Any) -> Any:
    (*_, last) = [event async for event in events]
    return last.contexts if isinstance(last, InterruptEvent) else ()


@pytest.mark.parametrize("ask", [_ask, _ask_as_of_old])
@pytest.mark.parametrize("make", [_calling, a_function, a_graph])
@pytest.mark.parametrize("in_a_list", [True, False])
async def test_it_is_entered_as_a_target(
    make: Callable[[Callable[[], None]], Agent], ask: Callable[[], None], in_a_list: bool
) -> None:
    SEEN.clear()
    runner = Runner(make(ask), checkpoint_store=MemoryCheckpointStore())
    (context,) = await _contexts(runner.query("Go.", checkpoint_id="1"))
    events = (
        runner.resume("1", [context.id]) if in_a_list else runner.resume("1", {context.id: None})
    )
    assert await _contexts(events) == ()
    assert SEEN == [(True, False, None)]


@pytest.mark.parametrize("ask", [_ask, _ask_as_of_old])
async def test_it_is_entered_in_a_thread_of_a_graph(ask: Callable[[], None]) -> None:
    SEEN.clear()
    graph = _graph(ask).compile(checkpoint_store=MemoryCheckpointStore())
    (interrupt,) = (await graph.invoke({}, thread_id="1")).interrupts
    assert (await graph.invoke(thread_id="1", resume_map={interrupt.id: None})).interrupts == ()
    assert SEEN == [(True, False, None)]


async def test_a_question_of_a_node_gets_none() -> None:
    SEEN.clear()
    agent = a_graph(lambda: SEEN.append(node_interrupt("ready?")))
    runner = Runner(agent, checkpoint_store=MemoryCheckpointStore())
    (context,) = await _contexts(runner.query("Go.", checkpoint_id="1"))
    assert await _contexts(runner.resume("1", [context.id])) == ()
    assert SEEN == [None]


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
    (context,) = await _contexts(runner.query("Go.", checkpoint_id="1"))
    with pytest.raises(ResumeDataError, match="got NoneType; nothing ran"):
        await _contexts(runner.resume("1", [context.id]))
    assert SEEN == []
    assert [left.id for left in await runner.pending("1")] == [context.id]
