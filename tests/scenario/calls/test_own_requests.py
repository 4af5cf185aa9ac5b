"""Agents whose own code asks with a request of the runtime: nobody can approve it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai.models import Model

from agents import ApprovalResult, ChatModelAgent, ScriptedModel, tool
from agents.agent import Agent
from agents.core.component.state import get_resume_context
from agents.core.interrupt import interrupt
from agents.graph import Question
from agents.models import call, say
from bot.questions.values import VERDICT
from tests.support.calls import OWN_CALL
from tests.support.stage import a_stage

ACTED: list[str] = []

NODE = Question(kind="node", node="delete", value="Delete record 42?", schema=VERDICT)
BREAKPOINT = Question(kind="before", node="delete", value="delete", state={})


def _asks_with(info: object) -> Agent:
    @tool
    def delete() -> str:
        """Delete."""
        _, has_answer, answer = get_resume_context(ApprovalResult)
        if not has_answer or answer is None:
            interrupt(info)
        if answer.approved:
            ACTED.append("deleted")
        return "deleted"

    model = ScriptedModel([call("delete", {}, id="c1"), say("It is gone.")])
    return ChatModelAgent(name="clerk", model=model, tools=[delete])


def of_gate(_: Model) -> Agent:
    """An agent whose tool asks like a gate."""
    return _asks_with(OWN_CALL)


def of_node(_: Model) -> Agent:
    """An agent whose tool asks like a node of a graph."""
    return _asks_with(NODE)


def of_breakpoint(_: Model) -> Agent:
    """An agent whose tool asks like a breakpoint of a graph."""
    return _asks_with(BREAKPOINT)


@pytest.mark.parametrize(
    ("agent", "name"),
    [("of_gate", "ApprovalInfo"), ("of_node", "Question"), ("of_breakpoint", "Question")],
)
async def test_3_11_a_request_that_nothing_checks_at_its_start_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, agent: str, name: str
) -> None:
    ACTED.clear()
    path = f"tests.scenario.calls.test_own_requests:{agent}"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
        await stage.say("Rosa", "@countersign go")
        await stage.said("couldn't")
        await stage.rest()
        assert stage.cards() == []
    assert ACTED == []
    assert f"cannot ask with {name}; use" in caplog.text
