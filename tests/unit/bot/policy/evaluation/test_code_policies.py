"""Rulings of code beside those of a file."""

from __future__ import annotations

from typing import Any

from agents.policy import Ask, Ruling, strictest
from agents.policy.base import GATE_RULE
from bot.policy.evaluation.context import PolicyQuestion, ToolFacts
from bot.policy.evaluation.evaluate import Judged, PolicyEvaluator
from bot.policy.evaluation.merge import Refusal
from bot.policy.model import PolicyFile
from bot.records.terms import Group

SRE = {"approve": [{"from": ["sre"]}]}


async def unknown(group: Group) -> frozenset[str] | None:
    raise AssertionError(group)


async def judge(*code: Ruling, **defaults: Any) -> Judged:
    """Judge a call by a policy that allows it, whose defaults name `sre`, and by code."""
    data = {
        "version": 1,
        "groups": {"sre": {"usergroups": ["S0SRE"]}, "leads": {"usergroups": ["S0LEAD"]}},
        "defaults": {
            name: value for name, value in {**SRE, **defaults}.items() if value is not None
        },
        "rules": (),
        "default": "allow",
    }
    question = PolicyQuestion(tool=ToolFacts(name="t"), arguments={})
    return await PolicyEvaluator(PolicyFile.model_validate(data)).judge(
        question, unknown, strictest(code)
    )


async def test_a_gate_is_refused_where_the_defaults_name_nobody() -> None:
    for code in (Ask(rule=GATE_RULE), Ask(rule="eyes")):
        ruling = (await judge(code, approve=None)).ruling
        assert isinstance(ruling, Refusal)
        assert "defaults name no approvers" in ruling.reason


async def test_defaults_of_an_unknown_group_refuse() -> None:
    judged = await judge(Ask(rule="eyes", approvers=("U0MIA",)), exclude=["nobody"])
    assert isinstance(judged.ruling, Refusal)
    assert "no group named 'nobody'" in judged.ruling.reason


async def test_what_is_no_ruling_denies() -> None:
    judged = await judge("yes")  # type: ignore[arg-type]
    assert isinstance(judged.ruling, Refusal)
    assert judged.ruling.reason == "a policy answered with str, which is no ruling"
