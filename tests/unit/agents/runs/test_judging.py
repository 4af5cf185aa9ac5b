"""What the rules would say of an edited call, before anything of it is decided."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TypedDict

import pytest

from agents import (
    ChatModelAgent,
    InterruptContext,
    ScriptedModel,
    get_resume_context,
    interrupt,
    make_message,
    tool,
)
from agents.agent import Agent, AgentEvent, AgentInput, function_agent
from agents.core.asking.infos import ApprovalInfo, CallInfo, ReviewEditInfo
from agents.core.codec import Json
from agents.core.errors import InvalidArgumentsError
from agents.gates import approval_gate, policy_gate, review_edit_gate
from agents.gates.rulings import Judgement
from agents.graph import END, START, StateGraph
from agents.graph.agent import GraphAgent
from agents.middlewares import policy_middleware
from agents.middlewares.retry import ToolRetryMiddleware
from agents.models import call, say
from agents.policy import Allow, Ask, Condition, Deny, Rule, RulePolicy
from agents.tools import Tool
from agents.workflows import AgentTool
from tests.unit.agents.support import Watchman, World, collect, yes

RAN: list[int] = []
LIMITS = RulePolicy(
    rules=(
        Rule(when=(Condition("x", ">", 1000),), then=Deny("too much")),
        Rule(when=(Condition("x", ">", 100),), then=Ask(rule="big", approvers=("UMIA",))),
        Rule(when=(Condition("x", ">", 10),), then=Ask(kind="review", rule="small")),
    ),
    default=Allow(),
)


@tool(title="Pay {x}")
def pay(x: int) -> str:
    """Pay."""
    RAN.append(x)
    return "paid"


def a_world(made: Tool, x: int = 50) -> World:
    RAN.clear()
    return World([call("pay", {"x": x}, id="c1"), say("done")], [made])


async def judged(world: World, **arguments: Json) -> Judgement:
    (waiting,) = await world.pending()
    judgement = await world.runner().judge("1", waiting.id, arguments)
    assert judgement is not None
    return judgement


async def asked(world: World, **arguments: Json) -> CallInfo:
    """What people would be asked about the call with these arguments."""
    judgement = await judged(world, **arguments)
    assert judgement.info is not None
    return judgement.info


async def test_ruling_of_other_arguments_is_told_and_nothing_runs() -> None:
    world = a_world(policy_gate(pay, LIMITS))
    await world.run()
    before = await world.pending()
    assert await judged(world, x=5) == Judgement(arguments={"x": 5})
    denied = await judged(world, x=5000)
    assert denied == Judgement(
        arguments={"x": 5000},
        denied="the rules do not allow the call with these arguments: too much",
    )
    same = await judged(world, x=60)
    assert isinstance(same.info, ReviewEditInfo)
    shown = before[0].info
    assert isinstance(shown, ReviewEditInfo)
    assert same.info.ruling == shown.ruling
    assert (same.info.title, same.info.digest) == ("Pay 60", shown.digest_of({"x": 60}))
    other = await judged(world, x=500)
    assert isinstance(other.info, ApprovalInfo)
    assert (other.info.rule, other.info.approvers) == ("big", ("UMIA",))
    assert other.info.digest == shown.digest_of({"x": 500}, ruling=other.info.ruling)
    assert await world.pending() == before
    assert RAN == []


async def test_gates_around_are_asked_too() -> None:
    world = a_world(policy_gate(review_edit_gate(pay), LIMITS), 5)
    await world.run()
    judgement = await judged(world, x=5000)
    assert "too much" in judgement.denied
    info = await asked(world, x=6)
    assert info.rule == "always"
    retried = ToolRetryMiddleware().wrap_tool(review_edit_gate(pay))
    world = a_world(policy_gate(retried, LIMITS), 5)
    await world.run()
    await judged(world, x=5000)


async def test_gates_around_that_asked_are_known_with_what_they_let_pass() -> None:
    world = a_world(policy_gate(review_edit_gate(pay), LIMITS), 500)
    await world.run()
    (first,) = await world.pending()
    await world.resume({first.id: yes(first, by="UMIA")})
    info = await asked(world, x=5)
    assert (info.rule, info.counted) == ("always", ())


async def test_agents_in_tools_and_middlewares_are_found() -> None:
    RAN.clear()
    clerk = ChatModelAgent(
        name="clerk",
        description="pays",
        model=ScriptedModel([call("pay", {"x": 50}, id="c1"), say("done")]),
        tools=[pay],
        middlewares=[policy_middleware(LIMITS)],
    )
    world = World([call("clerk", {"request": "pay"}, id="b1"), say("ok")], [AgentTool(clerk)])
    runner = world.runner()
    await collect(runner.query("hi", checkpoint_id="1"))
    (waiting,) = await runner.pending("1")
    judgement = await runner.judge("1", waiting.id, {"x": 5000})
    assert judgement is not None
    assert "too much" in judgement.denied


async def test_arguments_that_do_not_fit_are_refused() -> None:
    world = a_world(policy_gate(pay, LIMITS))
    await world.run()
    with pytest.raises(InvalidArgumentsError):
        await judged(world, x="many")


async def ask(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
    answered = get_resume_context(str)[0]
    if not answered:
        interrupt("who?")
    yield make_message("thanks")


async def first(agent: Agent) -> tuple[World, InterruptContext]:
    world = World([])
    await collect(world.runner(agent).query("hi", checkpoint_id="1"))
    (waiting,) = await world.runner(agent).pending("1")
    return world, waiting


async def test_what_is_no_call_is_not_judged() -> None:
    agent = function_agent("asks", ask)
    world, waiting = await first(agent)
    assert await world.runner(agent).judge("1", waiting.id, {}) is None
    assert await world.runner(agent).judge("1", "nobody", {}) is None


async def test_call_behind_code_that_does_not_say_what_it_is_is_not_judged() -> None:
    clerk = ChatModelAgent(
        name="clerk",
        model=ScriptedModel([call("pay", {"x": 50}, id="c1")]),
        tools=[policy_gate(pay, LIMITS)],
    )

    class Hides:
        name, description = "hides", ""

        def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002
            return clerk.run(input)

        def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002
            return clerk.resume(input)

    agent = Hides()
    world, waiting = await first(agent)
    assert isinstance(waiting.info, ReviewEditInfo)
    assert await world.runner(agent).judge("1", waiting.id, {"x": 1}) is None


async def test_gate_that_is_gone_is_not_judged() -> None:
    world = a_world(approval_gate(review_edit_gate(pay)))
    await world.run()
    world.tools = [review_edit_gate(pay)]
    (waiting,) = await world.pending()
    assert await world.runner().judge("1", waiting.id, {"x": 1}) is None


class State(TypedDict, total=False):
    input: str
    output: str


async def test_graph_agent_is_not_judged() -> None:
    def node(_: State) -> State:
        return {}

    made = StateGraph(State).add_node("n", node)
    made.add_edge(START, "n").add_edge("n", END)
    agent = GraphAgent(made.compile(interrupt_before=["n"]), "asking")
    world, waiting = await first(agent)
    assert await world.runner(agent).judge("1", waiting.id, {}) is None


async def test_people_whose_decision_has_lapsed_are_asked_whatever_they_agreed_to() -> None:
    world = a_world(approval_gate(policy_gate(pay, LIMITS)), 5)
    world.before_start = Watchman(["too old"])
    await world.run()
    (first,) = await world.pending()
    await world.resume({first.id: yes(first, by="UMIA")})
    info = await asked(world, x=5)
    assert (info.rule, RAN) == ("always", [])
