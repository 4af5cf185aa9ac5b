"""D12: a program that is started anew must be what it was, on the way to what waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import pytest

from agents.agent import Agent, AgentEvent, AgentInput, run_agent
from agents.chat.agent import ChatModelAgent
from agents.core.address import Address
from agents.core.cancel import CancelInfo
from agents.core.component.state import address_segment
from agents.core.errors import AgentChangedError
from agents.core.interrupt import InterruptSignal, composite_interrupt, interrupt
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
from agents.runs.document import RunDocument
from agents.runs.topology import (
    Component,
    Described,
    Key,
    agent_component,
    check_topology,
    tool_component,
    topology,
)
from agents.tools import Tool, with_tags
from agents.workflows import SequentialAgent
from tests.unit.agents.support import Asker, Died, DyingStore, Plain, brief, collect, contexts, yes


class Chat(ChatModelAgent):
    """A chat model agent that says which tools it has."""

    def components(self) -> Mapping[Key, Component]:
        return dict(map(tool_component, self._tools.values()))


@dataclass
class Outer:
    """Runs one agent, and says so."""

    inner: Agent
    name: str = "outer"
    description: str = ""

    def components(self) -> Mapping[Key, Component]:
        return dict([agent_component(self.inner)])

    async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        try:
            async for event in run_agent(self.inner, input):
                yield event
        except InterruptSignal as signal:
            composite_interrupt("outer waits", None, signal)

    resume = run


class OtherOuter(Outer):
    """Another kind of agent with the same name."""


@dataclass
class Agency:
    """A tool that runs an agent."""

    inner: Agent
    plain: Plain = field(default_factory=lambda: Plain("ask"))

    def __getattr__(self, name: str) -> object:
        return getattr(self.plain, name)

    def components(self) -> Mapping[Key, Component]:
        return dict([agent_component(self.inner)])

    async def call(self, arguments: object) -> str:
        async for _ in run_agent(self.inner, AgentInput(messages=())):
            pass
        return "asked"


def chat(*tools: Tool, name: str = "A", script: Sequence[object] = ()) -> Chat:
    model = ScriptedModel(script or [say("done")])  # type: ignore[arg-type]
    return Chat(name=name, model=model, tools=tools, instruction=f"I am {len(tools)}")


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
    now: Chat, was_told: str, now_told: str, depth: int
) -> None:
    before: Agent = chat(gated("pay"), script=CALL)
    after: Agent = now
    if depth:
        before, after = Outer(before), Outer(now)
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
    old = Outer(again) if depth else again
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
        Outer(chat(gated("pay"), name="B")),
        OtherOuter(chat(gated("pay"))),
        Outer(Asker("A")),
        Outer(chat(gated("pay")), name="other"),
        Asker("outer"),
    ],
    ids=["inner renamed", "other kind", "other inner kind", "root renamed", "other root"],
)
async def test_an_agent_above_what_asks_has_changed(after: Agent) -> None:
    store, answers = await asked(Outer(chat(gated("pay"), script=CALL)))
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
    def office(inner: str) -> Chat:
        tool = approval_gate(Agency(Asker(inner)))  # type: ignore[arg-type]
        return chat(tool, script=[[call("ask", id="c1")], say("done")])

    store, answers = await asked(office("x"))
    (event,) = await collect(Runner(office("x"), checkpoint_store=store).resume("1", answers))
    assert brief([event]) == ["INT agent:A;tool:ask:c1;agent:x"]

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


async def test_only_what_is_on_the_way_is_stored() -> None:
    store, _ = await asked(chat(gated("pay"), gated("look"), Plain("x"), script=CALL))
    stored = await store.load("1")
    assert stored is not None

    assert RunDocument.from_text(stored.data).topology == {
        "agent:A": "Chat",
        "agent:A;tool:pay": "approval",
    }


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


def test_a_stop_is_compared_at_its_agent() -> None:
    point = InterruptNode(id="1", address=Address.parse("agent:A"), info=CancelInfo(mode="now"))

    check_topology(chat(Plain("x")), point, {"agent:A": "Chat"})
    with pytest.raises(AgentChangedError, match="nothing of that name"):
        check_topology(chat(name="B"), point, {"agent:A": "Chat"})


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
    agent = Outer(Asker("x"))
    agent.inner = agent
    assert people_named(agent) == ()
