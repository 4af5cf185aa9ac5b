"""The conformance cases of judging: effect, names, each rule, and who is asked."""

from __future__ import annotations

from typing import Any

import pytest

from bot.policy.evaluation.evaluate import Judged, PolicyEvaluator
from bot.policy.evaluation.merge import Refusal, plain_name
from bot.policy.model import PolicyFile
from bot.policy.terms import Terms
from tests.support.judging import code_of, question_of, world_members
from tests.support.policies import CASES, POLICIES, cases_of


@pytest.mark.parametrize("name", cases_of("explain"))
async def test_case(name: str) -> None:
    case = CASES[name]
    policy = case["policy"]
    data = POLICIES[policy] if isinstance(policy, str) else policy
    rulebook = PolicyEvaluator(PolicyFile.model_validate(data))
    judged = await rulebook.judge(question_of(case["call"]), world_members, code_of(case["call"]))
    assert _picture(judged) == case["expect"]


def test_all_of_the_cases_are_played() -> None:
    assert len(cases_of("explain")) == 40


def _picture(judged: Judged) -> dict[str, Any]:
    """The judgement in the form of the cases."""
    picture: dict[str, Any] = {
        "effect": judged.effect,
        "names": list(judged.names),
        "rules": {step.name: step.word for step in judged.steps},
    }
    if isinstance(judged.ruling, Refusal):
        picture["reason"] = judged.ruling.reason
    if isinstance(judged.ruling, Terms):
        terms = judged.ruling
        picture["requirements"] = [
            [{plain_name(one.name): one.count} for one in stage.approve] for stage in terms.stages
        ]
        hours, rest = divmod(terms.expires_s, 3_600)
        assert not rest
        picture |= {
            "risk": terms.risk,
            "confirm": terms.confirm,
            "edit": terms.edit == "yes",
            "expires": f"{hours}h",
            "exclude": list(terms.exclude),
        }
    return picture
