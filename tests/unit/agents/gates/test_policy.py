"""The policy gate: judged once, frozen into the question, and no way around it (I1, I2)."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from agents.core.asking.answers import Expired
from agents.core.asking.infos import ApprovalInfo, ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json, decode, encode
from agents.core.errors import AgentConfigError, ToolError
from agents.core.observers import ToolOutcome
from agents.gates import GateState, approval_gate, policy_gate, review_edit_gate, tool
from agents.gates.approval import PolicyGate
from agents.gates.complete import fill_arguments
from agents.policy import Allow, Ask, Condition, Deny, PolicyCall, Rule, RulePolicy, Ruling
from agents.tools import with_tags
from tests.unit.agents.house import Says
from tests.unit.agents.stage import Stage, asked, asking_tool
from tests.unit.agents.support import Plain

ASK = Ask(
    kind="review",
    rule="big payments",
    title="Pay a lot",
    reason="more than 100 EUR",
    approvers=("U1", "U2"),
    expires_in=timedelta(hours=1),
    remind_in=timedelta(minutes=5),
    escalate_in=timedelta(minutes=30),
    backups=("U3",),
)
LIMITS = RulePolicy(
    rules=(
        Rule(when=(Condition("x", ">", 100),), then=Deny("more than 100")),
        Rule(when=(Condition("x", ">", 10),), then=Ask(kind="review", rule="ten")),
        Rule(when=(Condition("x", ">", 5),), then=Ask(kind="review", rule="five")),
    ),
    default=Allow(),
)


def staged(ruling: Ruling, **arguments: Json) -> tuple[Stage, Says, Plain]:
    judge, pay = Says(ruling), Plain("pay")
    return Stage(policy_gate(pay, judge), arguments or {"x": 1}, why="They asked."), judge, pay


async def test_policy_is_told_about_the_call() -> None:
    judge = Says(Allow())
    stage = Stage(
        policy_gate(with_tags(Plain("pay", idempotent=True), "money"), judge), {"x": 1}, "Why."
    )
    await stage.run()
    (call,) = judge.calls
    assert (call.tool, call.arguments, call.call_id) == ("pay", {"x": 1}, "c1")
    assert (call.address, call.thread, call.why) == ("agent:A;tool:pay:c1", "t1", "Why.")
    assert (call.tags, call.idempotent, dict(call.session)) == (("money",), True, {})


async def test_denied_call_runs_nothing_and_asks_nobody() -> None:
    stage, _, pay = staged(Deny("over the limit."))
    result = await stage.run()
    assert result is not None
    assert result.outcome is ToolOutcome.REFUSED
    assert result.text.startswith(
        "The rules here do not allow this call of 'pay'; nothing ran. Reason: over the limit.\n"
    )
    assert pay.calls == []
    assert not stage.started
    stage, _, _ = staged(Deny())
    result = await stage.run()
    assert result is not None
    assert "Reason: none was given." in result.text


async def test_question_of_a_policy_shows_its_rule_and_its_hints() -> None:
    stage, _, pay = staged(ASK)
    assert await stage.run() is None
    info = stage.question(ReviewEditInfo)
    assert (info.rule, info.title, info.reason) == ("big payments", "Pay a lot", ASK.reason)
    assert (info.approvers, info.expires_in, info.remind_in) == (
        ("U1", "U2"),
        timedelta(hours=1),
        timedelta(minutes=5),
    )
    assert (info.escalate_in, info.backups) == (timedelta(minutes=30), ("U3",))
    assert info.why == "They asked."
    assert decode(encode(info)) == info
    assert info.digest == info.digest_of({"x": 1})
    assert info.digest != replace(info, rule="other").digest_of({"x": 1})
    assert pay.calls == []


@pytest.mark.parametrize("later", [Allow(), Deny(), Ask(rule="other"), ValueError()])
async def test_g092_ruling_is_frozen_into_the_question(later: Ruling) -> None:
    stage, judge, pay = staged(ASK)
    await stage.run()
    judge.answer = later
    result = await stage.result(stage.question(ReviewEditInfo).reject("no"))
    assert result.outcome is ToolOutcome.REJECTED
    assert pay.calls == []
    assert len(judge.calls) == 1


async def test_g092_unanswered_call_is_not_judged_again() -> None:
    stage, judge, pay = staged(ASK)
    await stage.run()
    judge.answer = Allow()
    assert await stage.run(reenter=True) is None
    assert await stage.answer(Expired()) is not None
    assert pay.calls == []
    assert len(judge.calls) == 1


async def test_edit_is_judged() -> None:
    pay = Plain("pay")
    stage = await asked(policy_gate(pay, LIMITS), {"x": 20})
    info = stage.question(ReviewEditInfo)
    assert re.search("do not allow.*more than 100", str(await stage.refused(info.edit({"x": 500}))))
    assert pay.calls == []
    assert await stage.answer(info.edit({"x": 30})) is not None
    assert pay.calls == [{"x": 30}]


@pytest.mark.parametrize(("x", "runs"), [(500, False), (2, True)])
async def test_edit_in_a_gate_inside_is_judged_too(x: int, runs: bool) -> None:
    pay = Plain("pay")
    stage = await asked(policy_gate(review_edit_gate(pay), LIMITS), {"x": 1})
    result = await stage.answer(stage.question(ReviewEditInfo).edit({"x": x}))
    assert (result is not None) is runs
    assert pay.calls == ([{"x": x}] if runs else [])
    assert bool(stage.refusals) is not runs


async def test_allowance_for_other_arguments_does_not_count() -> None:
    stage = await asked(policy_gate(asking_tool([]), Says(Allow())), {"x": 1})
    assert stage.point is not None
    state = decode(stage.point.state)
    assert isinstance(state, GateState)
    stage.point = replace(stage.point, state=encode(replace(state, arguments={"x": 2})))
    with pytest.raises(ToolError, match="nobody agreed"):
        await stage.run()


async def test_policy_goes_inside_of_a_completing_gate() -> None:
    async def pay(x: int, note: str) -> str:
        return f"{x} {note}"

    judge = Says(Allow())
    made = policy_gate(approval_gate(fill_arguments(tool(pay), ["x"])), judge)
    assert made.definition.gates == ("approval", "complete", "policy")
    stage = await asked(made, {"note": "n"})
    await stage.answer(stage.question(ApprovalInfo).approve())
    info: object = stage.asked.info
    await stage.answer(info.complete({"x": 7}))  # type: ignore[attr-defined]
    assert [dict(call.arguments) for call in judge.calls] == [{"x": 7, "note": "n"}]


async def test_granted_arguments_are_not_judged() -> None:
    stage, judge, pay = staged(Deny())
    assert await stage.run(granted={"x": 3}) == ToolReturn('pay ok {"x": 3}')
    assert judge.calls == []
    assert pay.calls == [{"x": 3}]


def test_tags_add_up_and_are_not_empty() -> None:
    made = with_tags(with_tags(Plain("pay"), "money"), "money", "slow")
    assert made.definition.tags == ("money", "slow")
    assert made.validate({"x": 1}) == {"x": 1}
    assert made.describe({}).title == "Do pay"
    for tags in [(), ("",)]:
        with pytest.raises(AgentConfigError, match="needs tags"):
            with_tags(Plain("pay"), *tags)


def test_wrappers_say_what_is_in_them() -> None:
    class Graph(Plain):
        def components(self) -> dict[tuple[str, str], object]:
            return {("graph", "g"): 1}

    inner = Graph("pay")
    assert policy_gate(with_tags(inner, "t"), Says(Allow())).components() == {("graph", "g"): 1}  # type: ignore[attr-defined]
    assert policy_gate(with_tags(Plain("pay"), "t"), Says(Allow())).components() == {}  # type: ignore[attr-defined]
    assert policy_gate(Plain("pay"), Says(Allow())).components() == {}  # type: ignore[attr-defined]


class Endless:
    """A policy that never answers."""

    async def evaluate(self, call: PolicyCall) -> Ruling:
        await asyncio.Event().wait()
        return Allow()


async def test_i1_a_policy_that_takes_longer_than_it_may_denies() -> None:
    pay = Plain("pay")
    done = await Stage(policy_gate(pay, Endless(), time_limit=0.01), {"x": 1}).run()
    assert done is not None
    assert done.outcome is ToolOutcome.REFUSED
    assert "did not answer within 0.01 seconds" in done.text
    assert pay.calls == []


def test_the_time_of_a_policy_goes_inside_of_a_completing_gate_with_it() -> None:
    made = policy_gate(fill_arguments(Plain("pay"), ["x"]), Says(Allow()), time_limit=2)
    inner = getattr(made, "tool", None)
    assert isinstance(inner, PolicyGate)
    assert inner.time_limit == 2


def test_f11_a_rule_that_guards_nothing_is_refused_where_the_policy_is_put() -> None:
    rule = Rule(when=(Condition("amuont", ">", 5),), then=Ask(rule="big"))
    with pytest.raises(AgentConfigError, match="amuont"):
        policy_gate(Plain("pay"), RulePolicy(rules=(rule,), default=Allow()))


async def test_policy_cannot_change_what_runs() -> None:
    class Meddler:
        async def evaluate(self, call: PolicyCall) -> Ruling:
            call.arguments["x"] = 99  # type: ignore[index]
            return Allow()

    pay = Plain("pay")
    await Stage(policy_gate(pay, Meddler()), {"x": 1}).run()
    assert pay.calls == [{"x": 1}]
