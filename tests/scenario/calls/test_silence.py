"""Questions of agents' own code that nobody answers, as seen in Slack: nothing comes of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model

from agents import AgentEvent, AgentInput, ChatModelAgent, ScriptedModel, tool
from agents.agent import Agent, function_agent, make_message
from agents.core.component.state import get_resume_context
from agents.core.interrupt import interrupt
from agents.graph import START, GraphAgent, StateGraph, node_interrupt
from agents.middlewares import Middleware
from agents.models import call, say
from tests.scenario.asking import State
from tests.support.stage import a_stage

ACTED: list[str] = []


def _ask() -> None:
    is_target, _, _ = get_resume_context(object)
    if not is_target:
        interrupt("Delete record 42?")
    ACTED.append("deleted")


def in_node(_: Model) -> Agent:
    """An agent whose node takes any answer but no for a yes."""

    def delete(_: State) -> State:
        if node_interrupt("Delete record 42?") != "no":
            ACTED.append("deleted")
        return {"output": "deleted"}

    graph = StateGraph(State).add_node("delete", delete).add_edge(START, "delete")
    return GraphAgent(graph.compile(), "clerk")


def in_tool(_: Model) -> Agent:
    """An agent whose tool takes any answer for a yes."""

    @tool
    def delete() -> str:
        """Delete."""
        _ask()
        return "deleted"

    model = ScriptedModel([call("delete", {}, id="c1"), say("That is that.")])
    return ChatModelAgent(name="clerk", model=model, tools=[delete])


def in_function(_: Model) -> Agent:
    """An agent that is a function."""

    async def work(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        _ask()
        yield make_message("deleted")

    return function_agent("clerk", work)


def in_hook(_: Model) -> Agent:
    """An agent with a middleware that asks."""

    class Asks(Middleware):
        async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
            _ask()
            return messages

    model = ScriptedModel([say("deleted")])
    return ChatModelAgent(name="clerk", model=model, middlewares=[Asks()])


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("in_node", "Stopped: nobody answered in time"),
        ("in_tool", r"That is that\."),
        ("in_function", "has no answer: nobody answered in time"),
        ("in_hook", "has no answer: nobody answered in time"),
    ],
)
async def test_i1_nothing_comes_of_a_question_that_expires(
    tmp_path: Path, agent: str, words: str
) -> None:
    ACTED.clear()
    path = f"tests.scenario.calls.test_silence:{agent}"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
        await stage.asked("@countersign go", word="Delete record 42?")
        await stage.later(hours=200)
        await stage.said(words)
        await stage.rest()
        texts = "\n".join(stage.texts())
    assert ACTED == []
    assert "answer again" not in texts
