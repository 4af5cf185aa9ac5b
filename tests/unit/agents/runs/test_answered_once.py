"""A question whose tool has acted on the answer does not wait again when the run fails after it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypedDict

import pytest

from agents import (
    ChatModelAgent,
    InDoubtInfo,
    InDoubtResult,
    MemoryCheckpointStore,
    Runner,
    ScriptedModel,
    Tool,
    get_resume_context,
    interrupt,
    make_message,
    tool,
)
from agents.agent import Agent, AgentEvent, AgentInput, function_agent
from agents.core.errors import CheckpointBusyError, ModelError
from agents.graph import START, GraphAgent, StateGraph, node_interrupt
from agents.models import Turn, call, say
from agents.workflows import SequentialAgent
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.support import Died, WatchedStore, brief, collect, contexts

BUSY = ConnectionError("503")

acted: list[object] = []


@tool
def ask() -> str:
    """Ask, and act on the answer."""
    _, has_answer, answer = get_resume_context(str)
    if not has_answer:
        interrupt("shall I?")
    acted.append(answer)
    return f"did {answer}"


def chat(script: list[Turn], *tools: Tool, name: str = "A") -> Agent:
    return ChatModelAgent(name=name, model=ScriptedModel(script), tools=tools)


async def fails(_: AgentInput) -> AsyncIterator[AgentEvent]:
    yield make_message("well")
    raise BUSY


class State(TypedDict, total=False):
    input: str
    output: str


def graph() -> Agent:
    def node(_: State) -> State:
        answer = node_interrupt("shall I?")
        acted.append(answer)
        return {"output": f"did {answer}"}

    return GraphAgent(StateGraph(State).add_node("n", node).add_edge(START, "n").compile(), "G")


def agents(last: str) -> dict[str, tuple[Agent, Agent, Agent]]:
    """Who asks; who fails after the answer; who goes on then, and what it says last."""
    asking, done = [call("ask", id="c1")], [say(last)]
    inner = [call("ask", id="i1")]
    outer = [call("In", {"request": "x"}, id="c1")]
    script: list[Turn] = [say("inner done")]

    def nested(of_inner: list[Turn], of_outer: list[Turn]) -> Agent:
        return chat(of_outer, AgentTool(chat(of_inner, ask, name="In")))

    end = chat(list(done), name="end")
    return {
        "tool": (chat([*asking], ask), chat([BUSY], ask), chat([*done], ask)),
        "inner agent": (
            nested([*inner], [*outer]),
            nested([*script], [BUSY]),
            nested([], [*done]),
        ),
        "node": (
            SequentialAgent("S", [graph(), end]),
            SequentialAgent("S", [graph(), function_agent("end", fails)]),
            SequentialAgent("S", [graph(), end]),
        ),
    }


@pytest.mark.parametrize("kind", agents(""))
async def test_an_answer_is_acted_on_once(kind: str) -> None:
    acted.clear()
    store = MemoryCheckpointStore()
    first, failing, then = (Runner(agent, checkpoint_store=store) for agent in agents("done")[kind])
    (asked,) = contexts(await collect(first.query("hi", checkpoint_id="1"))).values()

    with pytest.raises((ModelError, ConnectionError)):
        await collect(failing.resume("1", {asked.id: "yes"}))

    with pytest.raises(CheckpointBusyError, match="`recover`"):
        await collect(then.resume("1", {asked.id: "no"}))
    assert brief(await collect(then.recover("1")))[-1] == "says done"
    assert acted == ["yes"]


class StoreToDie(WatchedStore):
    """A store whose process dies at its next write, once a component has acted."""

    survived = 0

    def at(self, write: str, text: str, *, before: bool) -> None:
        if before and len(acted) > self.survived:
            self.survived = len(acted)  # the next process lives until something acts once more
            raise Died


async def asking_agent(_: AgentInput) -> AsyncIterator[AgentEvent]:
    _is_target, has_answer, answer = get_resume_context(str)
    if not has_answer:
        interrupt("shall I?")
    acted.append(answer)
    yield make_message(f"did {answer}")


ASKING: dict[str, Callable[[], Agent]] = {
    "tool": lambda: chat([call("ask", id="c1"), say("done")], ask),
    "node": graph,
    "agent": lambda: function_agent("asking", asking_agent),
}


@pytest.mark.parametrize("kind", ASKING)
async def test_i5_what_crashes_each_time_asks_each_time_and_keeps_its_answer(kind: str) -> None:
    """The process dies right after each try; people say "again" each time."""
    acted.clear()
    store = StoreToDie()
    agent = ASKING[kind]()
    runner = Runner(agent, checkpoint_store=store, durability="step")
    (asked,) = contexts(await collect(runner.query("hi", checkpoint_id="1"))).values()
    with pytest.raises(Died):
        await collect(runner.resume("1", {asked.id: "yes"}))
    for tries in (1, 2, 3):
        (doubt,) = contexts(await collect(runner.recover("1"))).values()
        assert isinstance(doubt.info, InDoubtInfo)
        assert acted == ["yes"] * tries  # no process acts while people are asked
        with pytest.raises(Died):
            await collect(runner.resume("1", {doubt.id: InDoubtResult(choice="again")}))
    (doubt,) = contexts(await collect(runner.recover("1"))).values()
    await collect(runner.resume("1", {doubt.id: InDoubtResult(choice="ran")}))
    assert acted == ["yes"] * 4
