"""Everything that can ask people by itself: tools, nodes, agents and the hooks of middlewares."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypedDict

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart

from agents import Agent, AgentEvent, AgentInput, ChatModelAgent, interrupt, make_message, tool
from agents.agent import function_agent
from agents.core.component.legacy import InterruptAndRerunError, resume_info
from agents.core.component.state import address_segment, get_resume_context
from agents.core.interrupt import InterruptSignal, composite_interrupt
from agents.graph import END, START, GraphAgent, StateGraph, graph_tool, node_interrupt
from agents.middlewares import Middleware
from agents.models import AnsweringModel, call, say
from agents.workflows import LoopAgent, ParallelAgent, SequentialAgent
from agents.workflows.agenttool import AgentTool
from tests.support.hooks import HOOKS, InEachHook


class State(TypedDict, total=False):
    input: str
    output: str


class Office:
    """Something that asks in one place, and an effect that must not come of silence."""

    def __init__(self, kind: object) -> None:
        self.kind = kind
        self.acted: list[str] = []
        self.entered: list[object] = []

    def ask(self) -> None:
        """Ask as tools, agents and hooks do; whatever there is for an answer lets it act."""
        is_target, has_answer, answer = get_resume_context(self.kind)
        if not (is_target or has_answer):
            interrupt("Delete record 42?")
        self.entered.append((is_target, has_answer, answer))
        self.acted.append("deleted")

    def node(self, _: State) -> State:
        kind = None if self.kind is object else self.kind
        if node_interrupt("Delete record 42?", response_type=kind) != "no":
            self.acted.append("deleted")
        return {"output": "done"}

    def calling(self, tool: object) -> Agent:
        name = tool.definition.name  # type: ignore[attr-defined]
        arguments = {"request": "x"} if isinstance(tool, AgentTool) else {}
        model = _model(call(name, arguments, id="c1"))
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
        """An agent with a middleware; it calls a tool that does nothing."""

        @tool
        def look() -> str:
            """Look."""
            return "fine"

        model = _model(call("look", id="c1"))
        return ChatModelAgent(name="root", model=model, tools=[look], middlewares=[middleware])


def _model(first: ModelResponsePart) -> AnsweringModel:
    """Calls once, and is done then; it knows the conversation alone, as after a restart."""

    def answer(messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
        has_called = any(isinstance(message, ModelResponse) for message in messages)
        return [say("Done.") if has_called else first]

    return AnsweringModel(answer, name="root")


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
            except InterruptSignal as signal:
                signals.append(signal)
        if signals:
            composite_interrupt("parts", None, *signals)
        return "deleted"

    return office.calling(delete)


def in_old_tool(office: Office) -> Agent:
    @tool
    def delete() -> str:
        """Delete."""
        info = resume_info()
        if not info.is_resume_target:
            raise InterruptAndRerunError("Delete record 42?")
        office.entered.append((True, info.has_resume_data, info.resume_data))
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


class InHook(InEachHook):
    """Asks in one of its hooks."""

    def __init__(self, office: Office, hook: str) -> None:
        self.office = office
        self.hook = hook

    def at(self, hook: str) -> None:
        if hook == self.hook:
            self.office.ask()


def in_hook(hook: str) -> Callable[[Office], Agent]:
    def asker(office: Office) -> Agent:
        return office.hooked(InHook(office, hook))

    asker.__name__ = f"in_{hook}"
    return asker


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
    *map(in_hook, HOOKS),
]
