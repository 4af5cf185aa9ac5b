"""A retry around what people agreed to runs none of it a second time (I2, I5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from agents.agent import AgentInput, ToolEvent, run_agent
from agents.chat.agent import ChatModelAgent
from agents.core.asking.answers import Expired
from agents.core.messages import user_message
from agents.core.observers import ToolOutcome
from agents.core.tools import Tool
from agents.gates.approval import PolicyGate, approval_gate
from agents.graph import NodeFailedError, NodeRefusedError, RetryPolicy, StateGraph, node_interrupt
from agents.memory import MemoryCheckpointStore
from agents.middlewares.retry import ToolRetryMiddleware
from agents.models import ScriptedModel, Turn, call, say
from agents.policy.base import Allow
from agents.runner import Runner
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.graph.support import Lab, State, chain
from tests.unit.agents.house import Says
from tests.unit.agents.support import Plain, collect, yes


async def at_once(_: float) -> None:
    """Wait for nothing."""


def nothing(_: int) -> timedelta:
    return timedelta()


POLICY = RetryPolicy(sleep=at_once)

PAY = call("pay", {"x": 1}, id="c1")


def payer(tool: Tool, *script: Turn) -> ChatModelAgent:
    return ChatModelAgent(name="payer", model=ScriptedModel(script), tools=[approval_gate(tool)])


def single_node(node: Any, **options: Any) -> Callable[[Lab], StateGraph]:
    def build(_: Lab) -> StateGraph:
        graph = StateGraph(State).add_node("a", node, **options)
        return graph.add_edge("__start__", "a").add_edge("a", "__end__")

    return build


def in_a_node(agent: ChatModelAgent, tries: Counter[str], results: list[str]) -> Any:
    """A node that runs an agent, keeps results of tools, and fails at its second try."""

    async def node(state: State) -> object:
        tries["node"] += 1
        given = AgentInput(messages=(user_message("Pay."),))
        events = [event async for event in run_agent(agent, given)]
        results.extend(event.result for event in events if isinstance(event, ToolEvent))
        if tries["node"] == 2:
            raise OSError("away")
        return {"log": ["a"]}

    return node


async def test_i5_an_agent_in_a_node_that_is_retried() -> None:
    tool, tries = Plain("pay"), Counter[str]()
    agent = payer(tool, PAY, say("paid"), say("paid"))
    results: list[str] = []
    lab = Lab(single_node(in_a_node(agent, tries, results), retry_policy=POLICY))
    [question] = (await lab.start()).interrupts
    result = await lab.run(resume=yes(question.context))
    assert result.values["log"] == ["a"]
    assert tries["node"] == 3
    assert tool.calls == [{"x": 1}]
    assert results == ['pay ok {"x": 1}'] * 2


async def test_i5_another_call_under_the_same_id_asks_for_itself() -> None:
    """What is known is the result of one call; a model may give its id to another one."""
    tool, tries = Plain("pay"), Counter[str]()
    scripted: list[Turn] = [
        call("pay", {"x": 2}, id="c2"),
        say("paid"),
        call("pay", {"x": 3}, id="c2"),
    ]
    gated = PolicyGate(tool, policy=Says(Allow()))
    model = ScriptedModel([call("ask", {"x": 1}, id="c1"), *scripted, say("paid")])
    agent = ChatModelAgent(name="payer", model=model, tools=[gated, approval_gate(Plain("ask"))])

    lab = Lab(single_node(in_a_node(agent, tries, []), retry_policy=POLICY))
    [first] = (await lab.start()).interrupts
    await lab.run(resume=yes(first.context))
    assert tries["node"] == 3
    assert tool.calls == [{"x": 2}, {"x": 3}]


@pytest.mark.parametrize("is_failing", [False, True])
async def test_i5_an_agent_tool_that_is_retried(*, is_failing: bool) -> None:
    def fail(_: object) -> object:
        raise OSError("lost")

    tool = Plain("pay", fail if is_failing else None)
    inner = AgentTool(payer(tool, PAY, OSError("model"), say("paid")))
    outer = ChatModelAgent(
        name="A",
        model=ScriptedModel([call("payer", {"request": "Pay."}, id="t1"), say("Done.")]),
        tools=[inner],
        middlewares=[ToolRetryMiddleware(backoff=nothing, sleep=at_once)],
    )
    runner = Runner(outer, checkpoint_store=MemoryCheckpointStore())
    await collect(runner.query("Pay.", checkpoint_id="1"))
    [waiting] = await runner.pending("1")
    events = await collect(runner.resume("1", {waiting.id: yes(waiting)}))
    [done] = [event for event in events if isinstance(event, ToolEvent) and not event.is_inner]
    assert (done.result, done.outcome) == ("paid", ToolOutcome.RAN)
    assert tool.calls == [{"x": 1}]


def flaky(ran: Counter[str], name: str, failures: int) -> Callable[[State], object]:
    def node(state: State) -> object:
        ran[name] += 1
        if ran[name] <= failures:
            raise OSError("away")
        return {"log": [name]}

    return node


def guarded(failures: int, waits: list[float]) -> Lab:
    """A graph with a breakpoint, inside a node that is retried; notes how long it waits."""

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    def build(lab: Lab) -> StateGraph:
        inner = chain(lab, pay=flaky(lab.ran, "pay", failures)).compile(interrupt_before=["pay"])
        return single_node(inner, retry_policy=RetryPolicy(sleep=wait))(lab)

    return Lab(build)


async def test_i5_a_policy_around_a_graph_does_not_run_a_guarded_node_again() -> None:
    waits: list[float] = []
    lab = guarded(1, waits)
    await lab.start()
    with pytest.raises(NodeFailedError, match=r"^[^:]*: OSError: away"):
        await lab.run(resume=True)
    assert (lab.ran["pay"], waits) == (1, [0.5])


@pytest.mark.parametrize("answer", [False, Expired(waited="1 h")])
async def test_i1_a_no_at_a_breakpoint_is_not_retried(answer: object) -> None:
    waits: list[float] = []
    lab = guarded(0, waits)
    await lab.start()
    with pytest.raises(NodeRefusedError):
        await lab.run(resume=answer)
    assert (waits, lab.ran["pay"]) == ([], 0)


async def test_i5_nor_a_node_whose_question_people_answered() -> None:
    def build(lab: Lab) -> StateGraph:
        def node(state: State) -> object:
            node_interrupt("pay?")
            return flaky(lab.ran, "pay", 1)(state)

        return single_node(chain(lab, pay=node).compile(), retry_policy=POLICY)(lab)

    lab = Lab(build)
    await lab.start()
    with pytest.raises(NodeFailedError):
        await lab.run(resume="yes")
    assert lab.ran["pay"] == 1


async def test_a_policy_of_its_own_still_counts() -> None:
    def build(lab: Lab) -> StateGraph:
        inner = StateGraph(State).add_node("pay", flaky(lab.ran, "pay", 1), retry_policy=POLICY)
        inner.add_edge("__start__", "pay").add_edge("pay", "__end__")
        return single_node(inner.compile(interrupt_before=["pay"]), retry_policy=POLICY)(lab)

    lab = Lab(build)
    await lab.start()
    assert (await lab.run(resume=True)).values["log"] == ["pay"]
    assert lab.ran["pay"] == 2


async def test_a_graph_that_people_let_run_as_a_whole_is_retried_as_its_policy_says() -> None:
    def build(lab: Lab) -> StateGraph:
        inner = chain(lab, pay=flaky(lab.ran, "pay", 0), mail=flaky(lab.ran, "mail", 2))
        return single_node(inner.compile(), retry_policy=POLICY)(lab)

    lab = Lab(build, {"interrupt_before": ["a"]})
    await lab.start()
    assert (await lab.run(resume=True)).values["log"] == ["pay", "mail"]
    assert lab.ran == {"pay": 1, "mail": 3}


async def test_i5_a_graph_inside_a_node_keeps_what_finished_behind_its_breakpoint() -> None:
    def build(lab: Lab) -> StateGraph:
        inner = chain(lab, pay=flaky(lab.ran, "pay", 0), mail=flaky(lab.ran, "mail", 1))
        graph = inner.compile(interrupt_before=["pay"])

        async def node(state: State) -> object:
            return {"log": cast("State", await graph.run_inside({}))["log"]}

        return single_node(node, retry_policy=POLICY)(lab)

    lab = Lab(build)
    await lab.start()
    assert (await lab.run(resume=True)).values["log"] == ["pay", "mail"]
    assert lab.ran == {"pay": 1, "mail": 2}
