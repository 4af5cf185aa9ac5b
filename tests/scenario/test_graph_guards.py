"""Graphs that people stop, and steps that fail after people let them run, as seen in Slack."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from pydantic_ai.models import Model

from agents.agent import Agent
from agents.graph import END, START, GraphAgent, StateGraph
from tests.stage import a_stage

RAN: list[str] = []


class Plan(TypedDict, total=False):
    input: str
    output: str


def _agent(error: type[BaseException] | None) -> Agent:
    def deploy(state: Plan) -> dict[str, object]:
        RAN.append("deploy")
        if error is not None:
            raise error("the disk is full")
        return {"output": "deployed"}

    graph = StateGraph(Plan).add_node("deploy", deploy).add_edge(START, "deploy")
    graph.add_edge("deploy", END)
    return GraphAgent(graph.compile(name="ship", interrupt_before=["deploy"]), "ship")


def fails(model: Model) -> Agent:
    """An agent whose step fails, with an error that is no error of the runtime."""
    return _agent(OSError)


def works(model: Model) -> Agent:
    """An agent whose step works."""
    return _agent(None)


async def test_i5_a_step_that_fails_after_its_approval_runs_once(tmp_path: Path) -> None:
    RAN.clear()
    path = "tests.scenario.test_graph_guards:fails"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
        await stage.say("Rosa", "@countersign go")
        await stage.click("Ada", await stage.card(word="Continue"), "countersign:approve")
        await stage.said("(?s)I could not finish this.*does not run again")
    assert RAN == ["deploy"]


async def test_a_stop_at_a_breakpoint_does_not_sound_like_a_failure(tmp_path: Path) -> None:
    RAN.clear()
    path = "tests.scenario.test_graph_guards:works"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
        await stage.say("Rosa", "@countersign go")
        await stage.click("Ada", await stage.card(word="Continue"), "countersign:reject")
        view = await stage.modal("Ada")
        await stage.sandbox.submit(stage.user("Ada"), view, {"reason": "Not today"})
        await stage.said("Stopped before “deploy”, as you asked. Reason: Not today")
        texts = "\n".join(stage.texts())
    assert RAN == []
    assert "could not finish" not in texts
