"""Graphs that people stop, and steps that fail after people let them run, as seen in Slack."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TypedDict

import pytest
from pydantic_ai.models import Model

from agents.agent import Agent
from agents.core.asking.answers import ApprovalResult
from agents.graph import END, START, GraphAgent, StateGraph, node_interrupt
from tests.support.stage import a_stage

RAN: list[str] = []
PRICES: list[object] = []


class Plan(TypedDict, total=False):
    input: str
    output: str


def _agent(error: type[BaseException] | None, why: str = "the disk is full") -> Agent:
    def deploy(state: Plan) -> dict[str, object]:
        RAN.append("deploy")
        if error is not None:
            raise error(why)
        return {"output": "deployed"}

    graph = StateGraph(Plan).add_node("deploy", deploy).add_edge(START, "deploy")
    graph.add_edge("deploy", END)
    return GraphAgent(graph.compile(name="ship", interrupt_before=["deploy"]), "ship")


def fails(model: Model) -> Agent:
    """An agent whose step fails, with an error that is no error of the runtime."""
    return _agent(OSError)


def fails_on_a_file(model: Model) -> Agent:
    """An agent whose step fails, with a file name in its error that is no text."""
    return _agent(OSError, "no room for '\udcff.png'")


def works(model: Model) -> Agent:
    """An agent whose step works."""
    return _agent(None)


def moves(model: Model) -> Agent:
    """An agent whose node asks about a price that moves."""

    def pay(state: Plan) -> dict[str, object]:
        price = PRICES[0]
        answer = node_interrupt(f"Pay {price}?", response_type=ApprovalResult)
        if answer.approved:
            RAN.append(f"paid {price}")
        return {"output": f"paid {price}"}

    graph = StateGraph(Plan).add_node("pay", pay).add_edge(START, "pay")
    return GraphAgent(graph.compile(name="shop"), "shop")


async def test_i2_a_price_that_moved_is_asked_on_a_new_card(tmp_path: Path) -> None:
    RAN.clear()
    PRICES[:] = [10]
    path = "tests.scenario.test_graph_gated:moves"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
        old = await stage.asked("@countersign go", word="Pay 10?")
        PRICES[:] = [30]
        await stage.click("Ada", old, "countersign:approve")
        new = await stage.card(number=2, word="Pay 30?")
        assert RAN == []
        await stage.click("Ada", new, "countersign:approve")
        await stage.said("paid 30")
        cards = str(stage.cards()[0])
        texts = "\n".join(stage.texts())
    assert RAN == ["paid 30"]
    assert "couldn't finish" not in texts
    assert "couldn't be used" in cards


async def test_i5_a_step_that_fails_after_its_approval_runs_once(tmp_path: Path) -> None:
    RAN.clear()
    path = "tests.scenario.test_graph_gated:fails"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
        await stage.say("Rosa", "@countersign go")
        card = await stage.card(word="Go: Continue with")  # the message says what it is about
        await stage.click("Ada", card, "countersign:approve")
        await stage.until(lambda: RAN == ["deploy"])
        await stage.rest()
        stage.clock.forward(minutes=1)  # the work is tried again, and finds the failure on record
        await stage.tick()
        await stage.said("(?s)I couldn't finish this.*does not run again")
    assert RAN == ["deploy"]


async def test_i4_a_step_whose_error_is_no_text_ends_its_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "bot.threads.worker")  # what xdist reports has to be text
    RAN.clear()
    path = "tests.scenario.test_graph_gated:fails_on_a_file"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
        card = await stage.asked("@countersign go", word="Continue with")
        await stage.click("Ada", card, "countersign:approve")
        await stage.until(lambda: RAN == ["deploy"])
        await stage.rest()
        stage.clock.forward(minutes=1)
        await stage.tick()
        await stage.said("I couldn't finish this")
        text = str(stage.cards()[0])
    assert RAN == ["deploy"]
    assert "no room for '\ufffd.png'" in text


async def test_i4_a_question_that_is_no_text_is_asked(tmp_path: Path) -> None:
    RAN.clear()
    PRICES[:] = ["10 \udcff"]
    path = "tests.scenario.test_graph_gated:moves"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
        card = await stage.asked("@countersign go", word="Pay 10 \ufffd?")
        await stage.click("Ada", card, "countersign:approve")
        await stage.said("paid 10 \ufffd")


async def test_a_stop_at_a_breakpoint_does_not_sound_like_a_failure(tmp_path: Path) -> None:
    RAN.clear()
    path = "tests.scenario.test_graph_gated:works"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
        card = await stage.asked("@countersign go", word="Continue with")
        await stage.click("Ada", card, "countersign:reject")
        view = await stage.modal("Ada")
        await stage.sandbox.submit(
            stage.user("Ada"), view, {"canned": "other", "reason": "Not today"}
        )
        await stage.said("Stopped before “deploy”, as you asked. Reason: Not today")
        texts = "\n".join(stage.texts())
    assert RAN == []
    assert "couldn't finish" not in texts
