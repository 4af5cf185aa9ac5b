"""The policy middleware, and tags that policies go by (I1, I2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial

import pytest

from agents.chat.agent import ChatModelAgent
from agents.core.asking.infos import ApprovalInfo
from agents.core.errors import AgentConfigError
from agents.core.observers import ToolOutcome
from agents.gates import policy_gate, tool
from agents.gates.base import CallGate
from agents.middlewares.base import Middleware
from agents.middlewares.gates import policy_middleware
from agents.models import ScriptedModel, call, say
from agents.policy import Allow, AllowList, Ask, Condition, Deny, PolicyCall, Rule, RulePolicy
from agents.policy.base import Policy, Ruling
from agents.tools import Tool
from tests.unit.agents.support import Plain, World, brief, contexts, no, yes

LIMITS = RulePolicy(
    rules=(
        Rule(tool="pay", when=(Condition("x", ">", 100),), then=Deny("more than 100")),
        Rule(tool="pay", when=(Condition("x", ">", 10),), then=Ask(rule="more than ten")),
        Rule(tool="look", then=Allow()),
    ),
    default=Allow(),
)


class Slow:
    """A policy that never comes to an end."""

    async def evaluate(self, call: PolicyCall) -> Ruling:
        await asyncio.Event().wait()
        return Allow()


def a_world(middlewares: list[Middleware], *tools: Tool, **arguments: int) -> World:
    script = [[call("pay", arguments, id="p1"), call("look", {"x": 1}, id="l1")], say("done")]
    return World(script, tools, options={"middlewares": middlewares})  # type: ignore[arg-type]


async def test_what_it_denies_does_not_run_and_nobody_is_asked() -> None:
    pay, look = Plain("pay"), Plain("look")
    world = a_world([policy_middleware(LIMITS)], pay, look, x=500)
    lines = brief(await world.run())
    assert lines[1].startswith("tool pay#p1 refused: The rules here do not allow this call")
    assert "more than 100" in lines[1]
    assert (pay.calls, look.calls) == ([], [{"x": 1}])


@pytest.mark.parametrize("is_approved", [True, False])
async def test_what_it_asks_about_waits_for_people(is_approved: bool) -> None:
    pay, look = Plain("pay"), Plain("look")
    world = a_world([policy_middleware(LIMITS)], pay, look, x=50)
    context = contexts(await world.run())["p1"]
    assert isinstance(context.info, ApprovalInfo)
    assert context.info.rule == "more than ten"
    assert pay.calls == []

    await world.resume({context.id: yes(context) if is_approved else no(context)})
    assert pay.calls == ([{"x": 50}] if is_approved else [])
    assert look.calls == [{"x": 1}]


async def test_a_policy_without_an_answer_in_time_denies() -> None:
    pay, look = Plain("pay"), Plain("look")
    world = a_world([policy_middleware(Slow(), time_limit=0.01)], pay, look, x=1)
    lines = brief(await world.run())
    assert "the policy did not answer within 0.01 seconds" in lines[1]
    assert (pay.calls, look.calls) == ([], [])


@pytest.mark.parametrize(
    "policy",
    [
        LIMITS,
        AllowList(["lock"]),
        RulePolicy(rules=(Rule(tool="lok*", then=Deny()),), default=Allow()),
    ],
)
def test_a_misspelled_tool_is_found_when_the_agent_is_made(policy: Policy) -> None:
    with pytest.raises(AgentConfigError, match="no such tool"):
        ChatModelAgent(
            name="A",
            model=ScriptedModel([]),
            tools=[Plain("look")],
            middlewares=[policy_middleware(policy)],
        )


GUARDS = [policy_middleware, partial(policy_gate, Plain("pay"))]


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("time_limit", [0, -1.0, float("nan")])
def test_a_policy_needs_time(guard: Callable[..., object], time_limit: float) -> None:
    with pytest.raises(AgentConfigError, match="more than 0"):
        guard(LIMITS, time_limit=time_limit)


@pytest.mark.parametrize("guard", GUARDS)
def test_a_function_is_no_policy(guard: Callable[..., object]) -> None:
    with pytest.raises(AgentConfigError, match="no method `evaluate`"):
        guard(lambda call: Allow())


# Tags: what a policy of many tools goes by.


@tool(tags=["money", "money", "outside"], gate="approval")
def transfer(amount: int) -> str:
    """Transfer.

    Args:
        amount: Cents.
    """
    return f"{amount} are on their way"


@tool(tags=("read-only",))
def balance() -> str:
    """Read the balance."""
    return "100"


def test_tags_of_a_tool() -> None:
    assert isinstance(transfer, CallGate)
    assert transfer.definition.tags == ("money", "outside")
    assert balance.definition.tags == ("read-only",)


@pytest.mark.parametrize("tags", ["money", [""], ["money", ""], [1]])
def test_tags_are_a_list_of_words(tags: Collection[str]) -> None:
    with pytest.raises(AgentConfigError, match="tags of tool 'nothing'"):

        @tool(tags=tags)
        def nothing() -> None: ...


async def test_a_policy_goes_by_tags() -> None:
    policy = RulePolicy(
        rules=(
            Rule(tags=("read-only",), then=Allow()),
            Rule(tags=("money",), then=Deny("no money today")),
        ),
        default=Deny("unknown"),
    )
    script = [
        [call("transfer", {"amount": 1}, id="t1"), call("balance", id="b1")],
        say("done"),
    ]
    world = World(
        script,  # type: ignore[arg-type]
        [transfer, balance],
        options={"middlewares": [policy_middleware(policy)]},
    )
    lines = brief(await world.run())
    assert lines[1].startswith(f"tool transfer#t1 {ToolOutcome.REFUSED}:")
    assert "no money today" in lines[1]
    assert lines[2] == "tool balance#b1 ran: 100"


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        (Rule(tags=("mony",), then=Deny()), "the tag 'mony', and no tool has it"),
        (
            Rule(tags=("money",), when=(Condition("amuont", ">", 5),), then=Deny()),
            "'transfer' has no such argument; its arguments are: amount",
        ),
        (
            Rule(when=(Condition("amount", ">", 5),), then=Deny()),
            "'balance' has no such argument; its arguments are: none",
        ),
    ],
)
async def test_f11_misspelled_word_of_a_rule_is_a_mistake(rule: Rule, fault: str) -> None:
    policy = RulePolicy(rules=(rule,), default=Allow())
    world = World(
        [say("done")], [transfer, balance], options={"middlewares": [policy_middleware(policy)]}
    )
    with pytest.raises(AgentConfigError, match=fault):
        await world.run()
