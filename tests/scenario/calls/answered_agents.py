"""Agents whose own code asks and acts; the first process that acts is killed right after it."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelResponsePart, ToolReturnPart
from pydantic_ai.models import Model

from agents import AgentEvent, AgentInput, ChatModelAgent, ScriptedModel, tool
from agents.agent import Agent, function_agent, make_message
from agents.core.asking.answers import ApprovalResult
from agents.core.component.legacy import InterruptAndRerunError, resume_info
from agents.core.component.state import get_resume_context
from agents.core.interrupt import interrupt
from agents.graph import START, GraphAgent, StateGraph, node_interrupt
from agents.middlewares import Middleware
from agents.models import AnsweringModel, call, say
from agents.prebuilt import create_react_agent
from tests.scenario.asking import State

ASKED = "Delete record 42?"


def _acts() -> None:
    """Do what was agreed to; the first process is killed right after it."""
    path = Path(os.environ["ACTED"])
    with path.open("a", encoding="utf-8") as file:
        file.write("deleted\n")
    if len(path.read_text(encoding="utf-8").splitlines()) == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def _ask() -> None:
    _, has_answer, _ = get_resume_context(str)
    if not has_answer:
        interrupt(ASKED)


def _calls_once(messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
    """What the model says; it knows the conversation alone, as each process has a new one."""
    is_done = any(isinstance(part, ToolReturnPart) for part in messages[-1].parts)
    return [say("It is gone.") if is_done else call("delete", {}, id="c1")]


def _graph(node: object) -> Agent:
    graph = StateGraph(State).add_node("delete", node).add_edge(START, "delete")  # type: ignore[arg-type]
    return GraphAgent(graph.compile(), "clerk")


def approved_node(_: Model) -> Agent:
    """An agent whose node asks for an approval, and does what was decided."""

    def delete(_: State) -> State:
        if node_interrupt(ASKED, response_type=ApprovalResult).approved:
            _acts()
        return {"output": "It is gone."}

    return _graph(delete)


def answered_node(_: Model) -> Agent:
    """An agent whose node acts on a text."""

    def delete(_: State) -> State:
        node_interrupt(ASKED, response_type=str)
        _acts()
        return {"output": "It is gone."}

    return _graph(delete)


def old_node(_: Model) -> Agent:
    """An agent whose node asks as of old."""

    def delete(_: State) -> State:
        if not resume_info().has_resume_data:
            raise InterruptAndRerunError(ASKED)
        _acts()
        return {"output": "It is gone."}

    return _graph(delete)


def asking_tool(_: Model) -> Agent:
    """An agent whose tool asks by itself."""

    @tool
    def delete() -> str:
        """Delete."""
        _ask()
        _acts()
        return "deleted"

    return ChatModelAgent(
        name="clerk", model=AnsweringModel(_calls_once, name="clerk"), tools=[delete]
    )


def stage(_: Model) -> Agent:
    """An agent that people let go on before its tools run."""

    @tool
    def delete() -> str:
        """Delete."""
        _acts()
        return "deleted"

    model = AnsweringModel(_calls_once, name="clerk")
    return create_react_agent(model, [delete], name="clerk", interrupt_before=["tools"])


def function(_: Model) -> Agent:
    """An agent that is a function."""

    async def work(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        _ask()
        _acts()
        yield make_message("It is gone.")

    return function_agent("clerk", work)


def hook(_: Model) -> Agent:
    """An agent with a middleware that acts on an answer."""

    class Deletes(Middleware):
        async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
            _ask()
            _acts()
            return messages

    model = ScriptedModel([say("It is gone.")])
    return ChatModelAgent(name="clerk", model=model, middlewares=[Deletes()])
