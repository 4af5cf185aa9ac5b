"""Whatever asks people goes on by what it was given alone: every asker, reading and outcome."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from agents import (
    Agent,
    ChatModelAgent,
    MemoryCheckpointStore,
    Runner,
    ScriptedModel,
    interrupt,
    tool,
)
from agents.agent import InterruptEvent, ToolEvent
from agents.core.asking.answers import (
    Cancelled,
    Denied,
    Expired,
    NoApprovers,
    Reasked,
    Withdrawn,
)
from agents.core.component.state import get_resume_context
from agents.core.errors import NotAnsweredError
from agents.core.observers import ToolOutcome
from agents.graph import START, GraphAgent, StateGraph, node_interrupt
from agents.models import call, say
from tests.property.worlds.askers import ASKERS, Office, State

OUTCOMES = [
    Expired(waited="2 hours"),
    Cancelled(by="U1", reason="no"),
    Withdrawn(),
    Denied(reason="frozen"),
    NoApprovers(),
    Reasked(),
]
"""Every way in which a question ends without an answer."""
KINDS: list[Any] = [object, Any, str, bool, str | None, int | list[str]]
"""The kinds of answers that are asked for; none names an outcome."""


@pytest.mark.parametrize("asker", ASKERS, ids=lambda asker: asker.__name__)
async def test_i1_nothing_that_asked_goes_on_without_an_answer(
    asker: Callable[[Office], Agent],
) -> None:
    for kind, outcome in itertools.product(KINDS, OUTCOMES):
        office = Office(kind)
        runner = Runner(asker(office), checkpoint_store=MemoryCheckpointStore())
        (*_, asked) = [event async for event in runner.query("Go.", checkpoint_id="1")]
        assert isinstance(asked, InterruptEvent)
        answers = {context.id: outcome for context in asked.contexts}
        events: list[object] = []
        try:
            events += [event async for event in runner.resume("1", answers)]
        except NotAnsweredError as error:
            ended = error.outcome
            assert ended == outcome
        assert office.acted == [], (kind, outcome)
        called = [event for event in events if isinstance(event, ToolEvent)]
        wanted = ToolOutcome.EXPIRED if isinstance(outcome, Expired) else ToolOutcome.CANCELLED
        assert {event.outcome for event in called} <= {wanted}


@pytest.mark.parametrize("in_a_list", [True, False])
@pytest.mark.parametrize("asker", ASKERS, ids=lambda asker: asker.__name__)
async def test_a_target_without_data_is_entered_as_one(
    asker: Callable[[Office], Agent], *, in_a_list: bool
) -> None:
    """As its caller says: go on, with nothing (R9)."""
    office = Office(object)
    runner = Runner(asker(office), checkpoint_store=MemoryCheckpointStore())
    (*_, asked) = [event async for event in runner.query("Go.", checkpoint_id="1")]
    assert isinstance(asked, InterruptEvent)
    ids = [context.id for context in asked.contexts]
    async for _ in runner.resume("1", ids if in_a_list else dict.fromkeys(ids)):
        pass
    assert office.acted
    assert set(office.entered) <= {(True, False, None)}


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
async def test_i1_a_graph_of_ones_own_program_does_not_go_on_without_an_answer(
    outcome: object,
) -> None:
    for kind in KINDS:
        office = Office(kind)
        made = StateGraph(State).add_node("ask", office.node).add_edge(START, "ask")
        graph = made.compile(checkpoint_store=MemoryCheckpointStore())
        await graph.invoke({}, thread_id="1")
        with pytest.raises(NotAnsweredError):
            await graph.invoke(thread_id="1", resume=outcome)
        assert office.acted == []


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
async def test_i9_who_asks_for_an_outcome_by_its_type_gets_it(outcome: object) -> None:
    got: list[object] = []

    @tool
    def ask() -> str:
        """Ask."""
        _, has_answer, answer = get_resume_context(str | Expired | Cancelled)
        if not has_answer:
            interrupt("Well?")
        got.append(answer)
        return "told"

    def node(_: State) -> State:
        got.append(node_interrupt("Well?", response_type=str | Expired | Cancelled))
        return {"output": "told"}

    model = ScriptedModel([call("ask", {}, id="c1"), say("Done.")])
    graph = StateGraph(State).add_node("ask", node).add_edge(START, "ask").compile()
    for agent in (
        ChatModelAgent(name="root", model=model, tools=[ask]),
        GraphAgent(graph, "root"),
    ):
        runner = Runner(agent, checkpoint_store=MemoryCheckpointStore())
        (*_, asked) = [event async for event in runner.query("Go.", checkpoint_id="1")]
        assert isinstance(asked, InterruptEvent)
        async for _ in runner.resume("1", {asked.contexts[0].id: outcome}):
            pass
    assert got == [outcome, outcome]
