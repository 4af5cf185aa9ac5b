"""Rulings of code beside those of a file."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents.policy import Allow, Ask, Deny, Ruling, strictest
from agents.policy.base import GATE_RULE
from bot.policy.evaluation.context import Gate, PolicyQuestion, ToolFacts
from bot.policy.evaluation.evaluate import Judged, PolicyEvaluator
from bot.policy.evaluation.merge import Refusal
from bot.policy.model import PolicyFile
from bot.records.terms import Group, Terms

SRE = {"approve": [{"from": ["sre"]}]}
MAYBE = {"args": [{"path": "a", "op": "eq", "value": 1}]}
"""Undecided for a call without arguments."""


async def unknown(group: Group) -> frozenset[str] | None:
    raise AssertionError(group)


async def judge(
    *code: Ruling,
    default: Any = None,
    gate: Gate = "none",
    rules: tuple[dict[str, Any], ...] = (),
    **defaults: Any,
) -> Judged:
    """Judge a call by a policy that asks `sre`, and by code."""
    data = {
        "version": 1,
        "groups": {"sre": {"usergroups": ["S0SRE"]}, "leads": {"usergroups": ["S0LEAD"]}},
        "defaults": {
            name: value for name, value in {**SRE, **defaults}.items() if value is not None
        },
        "rules": rules,
        "default": {"ask": {}} if default is None else default,
    }
    question = PolicyQuestion(tool=ToolFacts(name="t", gate=gate), arguments={})
    return await PolicyEvaluator(PolicyFile.model_validate(data)).judge(
        question, unknown, strictest(code) if code else None
    )


async def terms(*code: Ruling, **parts: Any) -> Terms:
    ruling = (await judge(*code, **parts)).ruling
    assert isinstance(ruling, Terms)
    return ruling


def people_of(ruling: Terms) -> list[str]:
    return [requirement.name for requirement in ruling.requirements.values()]


async def test_people_of_code_are_a_group_of_their_own() -> None:
    ruling = await terms(Ask(rule="eyes", approvers=("U0MIA", "S0FIN")))
    assert people_of(ruling) == ["sre", "code:eyes"]
    assert ruling.groups["code:eyes"] == Group(users=("U0MIA",), usergroups=("S0FIN",))


async def test_backup_people_of_code_count_for_its_people_alone() -> None:
    ask = Ask(rule="eyes", approvers=("U0MIA",), backups=("U0SAM",), escalate_in=timedelta(hours=1))
    ruling = await terms(ask, escalate=[{"after": "2h", "add": ["leads"]}])
    assert [(step.after_s, step.add, step.requirements) for step in ruling.escalate] == [
        (3_600, ("code:eyes:backups",), ("code:eyes",)),
        (7_200, ("leads",), ("sre",)),
    ]
    assert ruling.groups["code:eyes:backups"].users == ("U0SAM",)


@pytest.mark.parametrize(
    ("defaults", "after_s"),
    [({"escalate": [{"after": "2h", "add": ["leads"]}]}, 7_200), ({"expires": "1h"}, 1_800)],
)
async def test_without_a_time_backup_people_come_with_those_of_the_file(
    defaults: dict[str, Any], after_s: int
) -> None:
    ask = Ask(rule="eyes", approvers=("U0MIA",), backups=("U0SAM",))
    ruling = await terms(ask, **defaults)
    (step,) = (
        escalation for escalation in ruling.escalate if escalation.requirements == ("code:eyes",)
    )
    assert step.after_s == after_s


async def test_backup_people_of_code_without_people_count_for_nobody() -> None:
    ask = Ask(rule="eyes", backups=("U0SAM",), escalate_in=timedelta(hours=1))
    ruling = await terms(ask)
    assert ruling.escalate == ()
    assert people_of(ruling) == ["sre"]


async def test_code_that_names_nobody_asks_the_people_of_the_file() -> None:
    asking = await terms(Ask(rule="eyes", reason="over 100"))
    assert (asking.rule, people_of(asking), asking.reason) == (
        "default + code:eyes",
        ["sre"],
        "over 100",
    )
    allowing = await terms(Ask(rule="eyes"), default="allow")
    assert (allowing.rule, people_of(allowing)) == ("code:eyes", ["sre"])


async def test_code_makes_times_shorter_and_never_longer() -> None:
    short = Ask(rule="eyes", expires_in=timedelta(minutes=5), remind_in=timedelta(minutes=1))
    long = Ask(rule="eyes", expires_in=timedelta(days=9), remind_in=timedelta(days=9))
    shorter, other = await terms(short), await terms(long)
    assert (shorter.expires_s, shorter.remind_s) == (300, 60)
    assert (other.expires_s, other.remind_s) == (28_800, 900)


async def test_code_may_remind_where_the_file_never_does() -> None:
    ruling = await terms(Ask(rule="eyes", remind_in=timedelta(minutes=1)), remind="never")
    assert (ruling.remind_s, ruling.remind_times) == (60, 3)
    silent = await terms(Ask(rule="eyes"), remind="never")
    assert (silent.remind_s, silent.remind_times) == (0, 0)


async def test_code_may_exclude_editors() -> None:
    ruling = await terms(Ask(rule="eyes", exclude_editors=True), exclude=[])
    assert ruling.exclude == ("editors",)


async def test_names_that_were_joined_in_code_are_each_marked() -> None:
    ruling = await terms(Ask(rule="eyes + over-100", approvers=("U0MIA",)), default="allow")
    assert ruling.rule == "code:eyes + code:over-100"


async def test_what_code_does_not_say_is_as_in_the_defaults() -> None:
    ask = Ask(rule="eyes", approvers=("U0MIA",))
    ruling = await terms(ask, default="allow", exclude=["leads"], max_age="5m")
    assert (people_of(ruling), ruling.exclude, ruling.max_age_s) == (["code:eyes"], ("leads",), 300)
    assert sorted(ruling.groups) == ["code:eyes", "leads"]


@pytest.mark.parametrize(
    ("kind", "gate", "edit"),
    [
        ("approval", "none", "no"),
        ("review", "none", "yes"),
        ("review", "policy", "yes"),
        ("review", "approval", "no"),
        ("approval", "review", "no"),
    ],
)
async def test_code_says_whether_people_may_edit(kind: Any, gate: Gate, edit: str) -> None:
    assert (await terms(Ask(rule="eyes", kind=kind), gate=gate, default="allow")).edit == edit


async def test_people_that_code_adds_change_nothing_about_editing() -> None:
    ask = Ask(rule="eyes", kind="approval", approvers=("U0MIA",))
    assert (await terms(ask, edit="yes")).edit == "yes"


@pytest.mark.parametrize("gate", ["none", "approval"])
async def test_a_gate_is_named_only_where_no_rule_of_the_file_asks(gate: Gate) -> None:
    code = () if gate == "approval" else (Ask(rule=GATE_RULE),)
    assert (await terms(*code, gate=gate)).rule == "default"
    assert (await terms(*code, gate=gate, default="allow")).rule == "code:gate"


async def test_a_policy_in_code_need_not_ask() -> None:
    assert (await judge(Allow(), gate="policy", default="allow")).effect == "allow"


async def test_a_gate_that_may_have_been_allowed_asks_both_kinds_of_people() -> None:
    rules = ({"name": "maybe", "when": MAYBE, "then": "allow"},)
    leads = {"ask": {"approve": [{"from": ["leads"]}]}}
    ruling = await terms(gate="approval", rules=rules, default=leads)
    assert (ruling.rule, people_of(ruling)) == ("default + code:gate", ["leads", "sre"])
    once = await terms(gate="approval", rules=rules)
    assert (once.rule, people_of(once)) == ("default", ["sre"])


async def test_a_gate_is_refused_where_the_defaults_name_nobody() -> None:
    for code in (Ask(rule=GATE_RULE), Ask(rule="eyes")):
        ruling = (await judge(code, default="allow", approve=None)).ruling
        assert isinstance(ruling, Refusal)
        assert "defaults name no approvers" in ruling.reason


async def test_defaults_of_an_unknown_group_refuse() -> None:
    judged = await judge(
        Ask(rule="eyes", approvers=("U0MIA",)), default="allow", exclude=["nobody"]
    )
    assert isinstance(judged.ruling, Refusal)
    assert "no group named 'nobody'" in judged.ruling.reason


async def test_a_denial_of_code_denies_and_is_named_if_it_has_a_name() -> None:
    judged = await judge(Deny("No.", rule="stop"), Deny("the policy failed"), default="allow")
    assert (judged.effect, judged.names) == ("deny", ("code:stop",))


async def test_what_is_no_ruling_denies() -> None:
    judged = await judge("yes", default="allow")  # type: ignore[arg-type]
    assert isinstance(judged.ruling, Refusal)
    assert judged.ruling.reason == "a policy answered with str, which is no ruling"


async def test_ids_that_are_nobodys_are_named_and_count_for_nobody() -> None:
    judged = await judge(Ask(rule="eyes", approvers=("U0MIA", "U-OPS"), backups=("ada",)))
    assert judged.undecidable == "no one has the ID U-OPS, ada"
    assert isinstance(judged.ruling, Terms)
    assert judged.ruling.groups["code:eyes"].users == ("U0MIA",)


@pytest.mark.parametrize(
    ("code", "default", "failed"),
    [
        ([Deny("late", failed=True)], None, True),
        ([Deny("late", failed=True)], {"deny": "never"}, False),
        ([Deny("late", failed=True), Deny("never")], None, False),
        ([Deny("never")], None, False),
    ],
)
async def test_a_rule_that_denies_is_heard_beside_a_failure(
    code: list[Ruling], default: Any, failed: bool
) -> None:
    ruling = (await judge(*code, default=default)).ruling
    assert isinstance(ruling, Refusal)
    assert ruling.failed is failed
