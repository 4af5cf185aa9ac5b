"""Whatever asks people does not go on when nobody answered: every asker, reading and outcome."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypedDict

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse

from agents import (
    Agent,
    AgentEvent,
    AgentInput,
    ChatModelAgent,
    Interrupted,
    MemoryCheckpointStore,
    Middleware,
    Runner,
    ScriptedModel,
    interrupt,
    make_message,
    tool,
)
from agents.agent import InterruptEvent, ToolEvent, function_agent
from agents.core.asking.answers import (
    AskedAnew,
    Cancelled,
    Denied,
    Expired,
    Undecidable,
    Withdrawn,
)
from agents.core.component.legacy import InterruptAndRerunError, resume_info
from agents.core.component.state import address_segment, get_resume_context
from agents.core.errors import NotAnsweredError
from agents.core.interrupt import composite_interrupt
from agents.core.observers import ToolOutcome
from agents.graph import END, START, GraphAgent, StateGraph, graph_tool, node_interrupt
from agents.middlewares.base import CallNext, ModelCall
from agents.models import call, say
from agents.workflows import LoopAgent, ParallelAgent, SequentialAgent
from agents.workflows.agenttool import AgentTool

OUTCOMES = [
    Expired(waited="2 hours"),
    Cancelled(by="U1", reason="no"),
    Withdrawn(),
    Denied(reason="frozen"),
    Undecidable(),
    AskedAnew(),
]
"""Every way in which a question ends without an answer."""
KINDS: list[Any] = [object, Any, str, bool, str | None, int | list[str]]
"""The kinds of answers that are asked for; none names an outcome."""


class State(TypedDict, total=False):
    input: str
    output: str


class Office:
    """Something that asks in one place, and an effect that must not come of silence."""

    def __init__(self, kind: object) -> None:
        self.kind = kind
        self.acted: list[str] = []

    def ask(self) -> None:
        """Ask as tools, agents and hooks do; whatever there is for an answer lets it act."""
        is_target, has_answer, _ = get_resume_context(self.kind)
        if not (is_target or has_answer):
            interrupt("Delete record 42?")
        self.acted.append("deleted")

    def node(self, _: State) -> State:
        kind = None if self.kind is object else self.kind
        if node_interrupt("Delete record 42?", response_type=kind) != "no":
            self.acted.append("deleted")
        return {"output": "done"}

    def calling(self, tool: object) -> Agent:
        name = tool.definition.name  # type: ignore[attr-defined]
        arguments = {"request": "x"} if isinstance(tool, AgentTool) else {}
        model = ScriptedModel([call(name, arguments, id="c1"), say("Done.")])
        return ChatModelAgent(name="root", model=model, tools=[tool])  # type: ignore[list-item]

    def graph(self) -> Any:
        made = StateGraph(State).add_node("ask", self.node)
        made.add_node("next", self._acts).add_edge(START, "ask")
        return made.add_edge("ask", "next").add_edge("next", END).compile()

    def _acts(self, _: State) -> State:
        self.acted.append("the next node ran")
        return {}

    async def work(self, _input: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        self.ask()
        yield make_message("done")

    async def after(self, _input: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        self.acted.append("the next agent ran")
        yield make_message("next")

    def hooked(self, middleware: Middleware) -> Agent:
        return ChatModelAgent(
            name="root", model=ScriptedModel([say("Done.")]), middlewares=[middleware]
        )


def in_tool(office: Office) -> Agent:
    @tool
    def delete() -> str:
        """Delete."""
        office.ask()
        return "deleted"

    return office.calling(delete)


def in_parts(office: Office) -> Agent:
    @tool
    def delete() -> str:
        """Delete."""
        signals = []
        for name in ("a", "b"):
            try:
                with address_segment("part", name):
                    office.ask()
            except Interrupted as signal:
                signals.append(signal)
        if signals:
            composite_interrupt("parts", None, *signals)
        return "deleted"

    return office.calling(delete)


def in_old_tool(office: Office) -> Agent:
    @tool
    def delete() -> str:
        """Delete."""
        if not resume_info().is_resume_target:
            raise InterruptAndRerunError("Delete record 42?")
        office.acted.append("deleted")
        return "deleted"

    return office.calling(delete)


def in_node(office: Office) -> Agent:
    return GraphAgent(office.graph(), "root")


def in_inner_node(office: Office) -> Agent:
    outer = StateGraph(State).add_node("inner", office.graph())
    return GraphAgent(outer.add_edge(START, "inner").compile(), "root")


def in_graph_tool(office: Office) -> Agent:
    def delete() -> dict[str, object]:
        """Delete."""
        return {}

    return office.calling(graph_tool(office.graph(), delete))


def in_function_agent(office: Office) -> Agent:
    return function_agent("root", office.work)


def in_sequence(office: Office) -> Agent:
    inner = [function_agent("first", office.work), function_agent("second", office.after)]
    return SequentialAgent("root", inner)


def in_loop(office: Office) -> Agent:
    inner = [function_agent("first", office.work), function_agent("second", office.after)]
    return LoopAgent("root", inner, max_iterations=2)


def in_branch(office: Office) -> Agent:
    return SequentialAgent(
        "root",
        [
            ParallelAgent("both", [function_agent("first", office.work)]),
            function_agent("second", office.after),
        ],
    )


def in_agent_tool(office: Office) -> Agent:
    return office.calling(AgentTool(function_agent("inner", office.work), description="x"))


def in_before_agent(office: Office) -> Agent:
    class Asks(Middleware):
        async def before_agent(self, input: AgentInput) -> AgentInput:  # noqa: A002 - see Agent
            office.ask()
            return input

    return office.hooked(Asks())


def in_before_model(office: Office) -> Agent:
    class Asks(Middleware):
        async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
            office.ask()
            return messages

    return office.hooked(Asks())


def in_around_model(office: Office) -> Agent:
    class Asks(Middleware):
        async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
            office.ask()
            return await call_next(call)

    return office.hooked(Asks())


def in_after_model(office: Office) -> Agent:
    class Asks(Middleware):
        async def after_model(self, response: ModelResponse) -> ModelResponse:
            office.ask()
            return response

    return office.hooked(Asks())


def in_after_agent(office: Office) -> Agent:
    class Asks(Middleware):
        async def after_agent(self, text: str) -> None:
            office.ask()

    return office.hooked(Asks())


ASKERS: list[Callable[[Office], Agent]] = [
    in_tool,
    in_parts,
    in_old_tool,
    in_node,
    in_inner_node,
    in_graph_tool,
    in_function_agent,
    in_sequence,
    in_loop,
    in_branch,
    in_agent_tool,
    in_before_agent,
    in_before_model,
    in_around_model,
    in_after_model,
    in_after_agent,
]


@pytest.mark.parametrize("asker", ASKERS, ids=lambda one: one.__name__)
async def test_i1_nothing_that_asked_goes_on_without_an_answer(
    asker: Callable[[Office], Agent],
) -> None:
    for kind, outcome in itertools.product(KINDS, OUTCOMES):
        office = Office(kind)
        runner = Runner(asker(office), checkpoint_store=MemoryCheckpointStore())
        (*_, asked) = [event async for event in runner.query("Go.", checkpoint_id="1")]
        assert isinstance(asked, InterruptEvent)
        answers = {one.id: outcome for one in asked.contexts}
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


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda one: type(one).__name__)
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


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda one: type(one).__name__)
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
