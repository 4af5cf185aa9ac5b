"""Rulings of code beside those of a file."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents.policy import Ask, Deny, Ruling, strictest
from agents.policy.base import GATE_RULE
from bot.policy.evaluation.context import Gate, PolicyQuestion, ToolFacts
from bot.policy.evaluation.evaluate import Judged, PolicyEvaluator
from bot.policy.evaluation.merge import Refusal
from bot.policy.model import PolicyFile
from bot.records.terms import Group, Terms

SRE = {"approve": [{"from": ["sre"]}]}


async def unknown(group: Group) -> frozenset[str] | None:
    raise AssertionError(group)


async def judge(
    *code: Ruling,
    default: Any = None,
    gate: Gate = "none",
    **defaults: Any,
) -> Judged:
    """Judge a call by a policy that asks `sre`, and by code."""
    data = {
        "version": 1,
        "groups": {"sre": {"usergroups": ["S0SRE"]}, "leads": {"usergroups": ["S0LEAD"]}},
        "defaults": {
            name: value for name, value in {**SRE, **defaults}.items() if value is not None
        },
        "rules": (),
        "default": {"ask": {}} if default is None else default,
    }
    question = PolicyQuestion(tool=ToolFacts(name="t", gate=gate), arguments={})
    return await PolicyEvaluator(PolicyFile.model_validate(data)).judge(
        question, unknown, strictest(code)
    )


async def terms(*code: Ruling, **parts: Any) -> Terms:
    ruling = (await judge(*code, **parts)).ruling
    assert isinstance(ruling, Terms)
    return ruling


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


async def test_what_is_no_ruling_denies() -> None:
    judged = await judge("yes", default="allow")  # type: ignore[arg-type]
    assert isinstance(judged.ruling, Refusal)
    assert judged.ruling.reason == "a policy answered with str, which is no ruling"


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


async def test_code_may_exclude_editors() -> None:
    ruling = await terms(Ask(rule="eyes", exclude_editors=True), exclude=[])
    assert ruling.exclude == ("editors",)


async def test_backup_people_of_code_count_for_its_people_alone() -> None:
    ask = Ask(rule="eyes", approvers=("U0MIA",), backups=("U0SAM",), escalate_in=timedelta(hours=1))
    ruling = await terms(ask, escalate=[{"after": "2h", "add": ["leads"]}])
    assert [(step.after_s, step.add, step.requirements) for step in ruling.escalate] == [
        (3_600, ("code:eyes:backups",), ("code:eyes",)),
        (7_200, ("leads",), ("sre",)),
    ]
    assert ruling.groups["code:eyes:backups"].users == ("U0SAM",)


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
