"""D12: a program that is started anew must be what it was, on the way to what waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TypedDict

import pytest

from agents.agent import Agent, AgentEvent, AgentInput
from agents.chat.agent import ChatModelAgent
from agents.core.address import Address
from agents.core.component.state import address_segment
from agents.core.errors import AgentChangedError
from agents.core.interrupt import interrupt
from agents.core.pending import InterruptNode
from agents.gates import approval_gate, policy_gate, review_edit_gate
from agents.graph import START, CompiledGraph, GraphAgent, StateGraph, ToolsNode, graph_tool
from agents.memory import MemoryCheckpointStore
from agents.middlewares import ToolRetryMiddleware, policy_middleware
from agents.models import ScriptedModel, call, say
from agents.policy import Ask, Deny, Rule, RulePolicy
from agents.runner import Runner
from agents.runs.answers import ResumeParams
from agents.runs.declared import people_named
from agents.runs.topology import (
    Component,
    Described,
    Key,
    agent_component,
    check_topology,
    topology,
)
from agents.tools import Tool, with_tags
from agents.workflows import LoopAgent, SequentialAgent
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.support import Asker, Died, DyingStore, Plain, brief, collect, contexts, yes


class Itself(Asker):
    """An agent that is built of itself."""

    def components(self) -> Mapping[Key, Component]:
        return dict([agent_component(self)])


def outer(inner: Agent, name: str = "outer") -> Agent:
    return SequentialAgent(name, [inner])


def chat(*tools: Tool, name: str = "A", script: Sequence[object] = ()) -> ChatModelAgent:
    model = ScriptedModel(script or [say("done")])  # type: ignore[arg-type]
    return ChatModelAgent(name=name, model=model, tools=tools, instruction=f"I am {len(tools)}")


async def asked(agent: Agent) -> tuple[MemoryCheckpointStore, dict[str, object]]:
    """Run an agent to its question; give the store, and the answers of a person who agrees."""
    store = MemoryCheckpointStore()
    events = await collect(Runner(agent, checkpoint_store=store).query("hi", checkpoint_id="1"))
    return store, {c.id: yes(c) for c in contexts(events).values()}


CALL = [[call("pay", {"x": 1}, id="c1")]]


def gated(name: str) -> Tool:
    return approval_gate(Plain(name))


@pytest.mark.parametrize(
    ("now", "was_told", "now_told"),
    [
        (chat(Plain("pay")), "approval", "no gate"),
        (chat(approval_gate(gated("pay"))), "approval", "approval, approval"),
        (chat(review_edit_gate(Plain("pay"))), "approval", "review"),
        (chat(gated("other")), "approval", "nothing of that name"),
        (chat(), "approval", "nothing of that name"),
    ],
)
@pytest.mark.parametrize("depth", [0, 1])
async def test_28_29_what_asked_has_changed(
    now: ChatModelAgent, was_told: str, now_told: str, depth: int
) -> None:
    before: Agent = chat(gated("pay"), script=CALL)
    after: Agent = now
    if depth:
        before, after = outer(before), outer(now)
    store, answers = await asked(before)
    stored = await store.load("1")

    params = ResumeParams(targets=answers)
    with pytest.raises(AgentChangedError) as error:
        await collect(Runner(after, checkpoint_store=store).resume_with_params("1", params))
    with pytest.raises(AgentChangedError):
        await collect(Runner(after, checkpoint_store=store).resume("1"))

    assert (error.value.was, error.value.now) == (was_told, now_told)
    assert await store.load("1") == stored
    again = chat(pay := Plain("unrelated"), gated("pay"))
    old = outer(again) if depth else again
    events = await collect(Runner(old, checkpoint_store=store).resume_with_params("1", params))
    assert brief(events)[-1] == "says done"
    assert pay.calls == []


async def test_what_does_not_ask_may_change() -> None:
    store, answers = await asked(chat(gated("pay"), Plain("look"), script=CALL))

    later = Runner(chat(gated("pay"), gated("look"), gated("new")), checkpoint_store=store)
    events = await collect(later.resume("1", answers))

    assert brief(events)[-1] == "says done"


@pytest.mark.parametrize(
    "after",
    [
        outer(chat(gated("pay"), name="B")),
        LoopAgent("outer", [chat(gated("pay"))]),
        outer(Asker("A")),
        outer(chat(gated("pay")), name="other"),
        Asker("outer"),
    ],
    ids=["inner renamed", "other kind", "other inner kind", "root renamed", "other root"],
)
async def test_an_agent_above_what_asks_has_changed(after: Agent) -> None:
    store, answers = await asked(outer(chat(gated("pay"), script=CALL)))
    stored = await store.load("1")

    for targets in (answers, {}):
        params = ResumeParams(targets=targets, untargeted="reenter")
        with pytest.raises(AgentChangedError):
            await collect(Runner(after, checkpoint_store=store).resume_with_params("1", params))

    assert await store.load("1") == stored


async def test_a_gate_of_another_question_counts_as_well() -> None:
    """Otherwise the answer to one would store the other as if it had never had a gate."""
    script = [[call("a", id="c1"), call("b", id="c2")], say("done")]
    store, answers = await asked(chat(gated("a"), gated("b"), script=script))
    first = dict([next(iter(answers.items()))])
    b = Plain("b")

    with pytest.raises(AgentChangedError, match="tool:b"):
        await collect(Runner(chat(gated("a"), b), checkpoint_store=store).resume("1", first))
    assert b.calls == []


async def test_an_agent_below_a_gated_tool_is_compared() -> None:
    def office(inner: str) -> ChatModelAgent:
        tool = approval_gate(AgentTool(outer(Asker(inner), name="ask")))
        return chat(tool, script=[[call("ask", {"request": "x"}, id="c1")], say("done")])

    store, answers = await asked(office("x"))
    (event,) = await collect(Runner(office("x"), checkpoint_store=store).resume("1", answers))
    assert brief([event]) == ["INT agent:A;tool:ask:c1;agent:ask;agent:x"]

    with pytest.raises(AgentChangedError, match="agent:x"):
        await collect(Runner(office("y"), checkpoint_store=store).resume("1"))


async def test_a_recovery_of_what_has_changed_is_refused_and_writes_nothing() -> None:
    store, answers = await asked(chat(gated("pay"), script=CALL))
    dying = DyingStore(store, at=2, before=True)
    with pytest.raises(Died):
        await collect(Runner(chat(gated("pay")), checkpoint_store=dying).resume("1", answers))
    stored = await store.load("1")
    pay = Plain("pay")

    with pytest.raises(AgentChangedError):
        await collect(Runner(chat(pay), checkpoint_store=store).recover("1"))

    assert (pay.calls, await store.load("1")) == ([], stored)
    events = await collect(Runner(chat(gated("pay")), checkpoint_store=store).recover("1"))
    assert brief(events)[-1] == "says done"


async def test_what_is_not_described_is_not_compared() -> None:
    class Custom(Asker):
        async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
            yield  # type: ignore[misc]
            with address_segment("process", "p1"):
                interrupt("p1?")

    agent = Custom("a")
    point = InterruptNode(id="1", address=Address.parse("agent:a;process:p1:3"))

    assert not isinstance(agent, Described)
    assert topology(agent, point) == {"agent:a": "an agent"}
    check_topology(agent, point, {})


# ---- whom policies name -------------------------------------------------------------------------


def asking(*names: str) -> RulePolicy:
    rules = (Rule(tool="pay", then=Ask(rule="few", approvers=names)),)
    return RulePolicy(rules=rules, default=Deny("no"))


def clerk(*tools: Tool, **options: object) -> ChatModelAgent:
    return ChatModelAgent(name="C", model=ScriptedModel([]), tools=tools, **options)  # type: ignore[arg-type]


class State(TypedDict, total=False):
    input: str
    output: str
    messages: list[object]


def graph_of(node: object) -> CompiledGraph:
    return StateGraph(State).add_node("n", node).add_edge(START, "n").compile(name="g")  # type: ignore[arg-type]


def begin() -> dict[str, object]:
    """Begin."""
    return {}


def in_a_graph() -> Agent:
    inner = graph_of(ToolsNode([policy_gate(Plain("pay"), asking("U1"))]))
    return GraphAgent(graph_of(inner), "G")


@pytest.mark.parametrize(
    "agent",
    [
        clerk(policy_gate(Plain("pay"), asking("U1"))),
        clerk(Plain("pay"), middlewares=[policy_middleware(asking("U1"))]),
        clerk(Plain("pay"), middlewares=[ToolRetryMiddleware(), policy_middleware(asking("U1"))]),
        clerk(approval_gate(with_tags(policy_gate(Plain("pay"), asking("U1")), "money"))),
        SequentialAgent(name="S", agents=[clerk(policy_gate(Plain("pay"), asking("U1")))]),
        in_a_graph(),
        clerk(graph_tool(graph_of(ToolsNode([policy_gate(Plain("pay"), asking("U1"))])), begin)),
    ],
    ids=["tool", "middleware", "behind another", "tagged", "sequence", "graph", "graph tool"],
)
def test_whom_a_policy_names_is_found_wherever_it_stands(agent: Agent) -> None:
    assert people_named(agent) == ("U1",)


def test_what_is_built_of_itself_is_looked_at_once() -> None:
    assert people_named(Itself("x")) == ()
