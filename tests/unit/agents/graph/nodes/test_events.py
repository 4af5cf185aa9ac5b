"""What agents and tools in nodes tell reaches whoever reads the events of the graph."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agents import AgentInput, ChatModelAgent, ScriptedModel, function_agent, make_message
from agents.agent import (
    ActionEvent,
    AgentEvent,
    MessageEvent,
    TextDelta,
    ToolEvent,
    emit,
    make_action,
    run_agent,
)
from agents.core.calls import Exit
from agents.core.errors import OutsideRunError
from agents.core.messages import user_message
from agents.graph import END, START, GraphAgent, StateGraph, graph_tool, node_interrupt, task
from agents.models import call, say
from tests.unit.agents.graph.support import Lab, State
from tests.unit.agents.support import Plain, Solo

GIVEN = AgentInput(messages=(user_message("hello"),))


async def speaks(_: AgentInput) -> AsyncIterator[AgentEvent]:
    yield make_message("inner words")
    yield make_action(Exit())


async def runs_agent(_: State) -> object:
    texts = []
    async for event in run_agent(function_agent("inner", speaks), GIVEN):
        texts += [event.text] if isinstance(event, MessageEvent) else []
    return {"foo": texts[-1]}


def one_node(node: object) -> StateGraph:
    graph = StateGraph(State).add_node("work", node)  # type: ignore[arg-type]
    return graph.add_edge(START, "work").add_edge("work", END)


def texts(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, MessageEvent)]


async def test_an_agent_in_a_node_is_heard() -> None:
    lab = Lab(lambda _: one_node(runs_agent))
    events = [e async for e in lab.graph.stream({}, mode="events", thread_id="t")]
    message, action = events
    assert isinstance(message, MessageEvent)
    assert (message.text, message.agent_name, message.is_inner) == ("inner words", "inner", True)
    assert isinstance(action, ActionEvent)
    assert action.is_done  # nobody around acts on it


async def test_other_modes_are_as_they_were() -> None:
    lab = Lab(lambda _: one_node(runs_agent))
    parts = [part async for part in lab.graph.stream({}, thread_id="t")]
    assert parts == [{"work": {"foo": "inner words"}}]
    pairs = [p async for p in lab.graph.stream({}, mode=["events", "updates"], thread_id="u")]
    assert [str(pair)[:9] for pair in pairs] == ["('events'", "('events'", "('updates"]


@pytest.mark.parametrize(
    ("text", "said"), [("inner words", ["inner words"]), ("Done.", ["inner words", "Done."])]
)
async def test_a_graph_as_an_agent_says_what_its_nodes_have_not_said(
    text: str, said: list[str]
) -> None:
    agent = GraphAgent(
        one_node(runs_agent).compile(), "flow", to_input=lambda _: {}, to_text=lambda _: text
    )
    assert texts(await Solo(agent).run()) == said


async def test_text_streams_out_of_a_node() -> None:
    model = ScriptedModel([[call("look", {"x": 1})], say("one two")])
    inner = ChatModelAgent(name="inner", model=model, tools=[Plain("look")])

    async def node(_: State) -> object:
        async for _event in run_agent(inner, GIVEN):
            pass
        return {}

    agent = GraphAgent(
        one_node(node).compile(), "flow", to_input=lambda _: {}, to_text=lambda _: "one two"
    )
    events = await Solo(agent, streaming=True).run()
    kinds = {type(event) for event in events}
    assert {TextDelta, ToolEvent, MessageEvent} <= kinds
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "one two"
    assert texts(events)[-1] == "one two"


async def test_an_agent_inside_an_agent_is_told_once() -> None:
    async def outer(given: AgentInput) -> AsyncIterator[AgentEvent]:
        async for event in run_agent(function_agent("inner", speaks), given):
            yield event

    async def node(_: State) -> object:
        async for _event in run_agent(function_agent("outer", outer), GIVEN):
            pass
        return {}

    lab = Lab(lambda _: one_node(node))
    events = [e async for e in lab.graph.stream({}, mode="events", thread_id="t")]
    assert len([e for e in events if isinstance(e, MessageEvent)]) == 1


async def test_a_node_can_tell_something_itself_also_from_a_thread() -> None:
    def node(_: State) -> object:
        emit(make_message("half way"))
        return {}

    lab = Lab(lambda _: one_node(node))
    events = [e async for e in lab.graph.stream({}, mode="events", thread_id="t")]
    assert [event.text for event in events if isinstance(event, MessageEvent)] == ["half way"]


async def test_what_a_tool_does_inside_belongs_to_its_call() -> None:
    def start(x: int) -> dict[str, object]:
        """Start it.

        Args:
            x: A number.
        """
        return {}

    flow = graph_tool(one_node(runs_agent).compile(), start)
    model = ScriptedModel([call("start", {"x": 1}), say("Done.")])
    agent = ChatModelAgent(name="root", model=model, tools=[flow])
    assert texts(await Solo(agent).run()) == ["", "Done."]


async def test_what_a_node_does_once_is_told_once() -> None:
    async def listen() -> str:
        async for _event in run_agent(function_agent("inner", speaks), GIVEN):
            pass
        return "heard"

    async def node(_: State) -> object:
        return {"foo": await task("listen", listen), "a": node_interrupt("go on?")}

    lab = Lab(lambda _: one_node(node))
    first = [e async for e in lab.graph.stream({}, mode="events", thread_id="t")]
    [pending] = (await lab.state()).interrupts
    answers = {pending.id: "yes"}
    again = [e async for e in lab.graph.stream(mode="events", thread_id="t", resume_map=answers)]
    assert (len(first), again) == (2, [])


def test_outside_of_a_run_nobody_hears() -> None:
    with pytest.raises(OutsideRunError, match="emit"):
        emit(MessageEvent(agent_name="", run_path=(), key="k", text="x"))
