"""Judging calls of programs: what a program says can only make things stricter."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from bot.policy.evaluation.context import PolicyQuestion, ProgramFacts, ToolFacts
from bot.policy.evaluation.evaluate import Judged, PolicyEvaluator
from bot.policy.evaluation.merge import Refusal
from bot.policy.model import DoorName, PolicyFile
from bot.records.origin import RequestDoor
from bot.records.terms import Group, Terms

GROUPS = {"sre": {"users": ["U0ADA", "U0BEN"]}, "fin": {"users": ["U0MIA"]}}
SRE = {"ask": {"approve": [{"from": ["sre"]}]}}
FIN = {"ask": {"approve": [{"from": ["fin"]}]}}
CI = ProgramFacts(name="ci-main")
TRUSTED = ProgramFacts(name="ci-main", is_trusted=True)
TOOL = ToolFacts(name="restart", tags=("read-only",), risk="low", gate="approval")


def a_policy(*rules: dict[str, Any], default: Any = None, approve: bool = True) -> PolicyEvaluator:
    data: dict[str, Any] = {
        "version": 1,
        "groups": GROUPS,
        "rules": [{"name": f"r{number}", **rule} for number, rule in enumerate(rules)],
        "default": default or {"deny": "else"},
    }
    if approve:
        data["defaults"] = SRE["ask"]
    return PolicyEvaluator(PolicyFile.model_validate(data))


async def judged(book: PolicyEvaluator, program: ProgramFacts | None = CI, **parts: Any) -> Judged:
    async def members(group: Group) -> frozenset[str]:
        return frozenset(group.users)

    door = RequestDoor.SLACK if program is None else RequestDoor.API
    question = PolicyQuestion(
        **{"tool": TOOL, "arguments": {}, "gated": True, "door": door, "program": program, **parts}
    )
    return await book.judge(question, members)


async def word(when: dict[str, Any], program: ProgramFacts | None = CI, **parts: Any) -> str:
    """What the only rule of a policy, which asks, is for a call."""
    return (await judged(a_policy({"when": when, "then": SRE}), program, **parts)).steps[0].word


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({"origin": "api"}, "true"),
        ({"origin": ["cli", "api"]}, "true"),
        ({"origin": ["slack", "cli"]}, "false"),
        ({"program": "ci-main"}, "true"),
        ({"program": ["other", "ci-*"]}, "true"),
        ({"program": "ci"}, "false"),
        ({"program": "ci-*", "origin": "mcp"}, "false"),
        ({"tool": "restart"}, "true"),
        ({"gated": True}, "true"),
        ({"gated": False}, "false"),
    ],
)
async def test_a_rule_matches_by_door_and_program(when: dict[str, Any], expected: str) -> None:
    assert await word(when) == expected


async def test_a_rule_of_the_house_lets_no_program_run_what_has_the_same_name() -> None:
    book = a_policy({"when": {"tool": "restart"}, "then": "allow"})
    for_an_agent = await judged(book, None, tool=ToolFacts(name="restart"), gated=False)
    assert for_an_agent.effect == "allow"
    result = await judged(book)
    # Undecided, so the default counts, too: it denies.
    assert (result.effect, result.steps[0].word) == ("deny", "undecided")
    assert "must name one" in result.steps[0].why


async def test_a_stricter_rule_behind_an_undecided_one_counts() -> None:
    book = a_policy({"then": "allow"}, {"when": {"program": "ci-*"}, "then": FIN})
    result = await judged(book)
    assert isinstance(result.ruling, Terms)
    assert [*result.ruling.requirements] == ["fin"]


@pytest.mark.parametrize("when", [{"tags": ["read-only"]}, {"risk": ["low"]}])
async def test_tags_and_risk_are_claims_unless_the_program_is_trusted(when: dict[str, Any]) -> None:
    allows = a_policy({"when": {**when, "program": "ci-*"}, "then": "allow"}, default=FIN)
    assert (await judged(allows)).effect == "ask"
    assert (await judged(allows, TRUSTED)).effect == "allow"
    denies = a_policy({"when": when, "then": {"deny": "no"}}, default="allow")
    assert (await judged(denies)).effect == "deny"


async def test_a_requester_that_a_program_names_opens_nothing() -> None:
    claims = ProgramFacts(name="ci-main", claimed=frozenset({"U0BEN"}))
    said: dict[str, Any] = {"requesters": ("U0ADA", "U0BEN")}
    when = {"requester": {"in": ["sre"]}}
    assert await word(when, **said) == "true"
    assert await word(when, claims, **said) == "undecided"
    assert await word({"requester": {"not_in": ["fin"]}}, claims, **said) == "undecided"
    assert await word({"requester": {"in": ["fin"]}}, claims, **said) == "false"


def test_a_rule_can_name_each_door() -> None:
    assert {*get_args(DoorName)} == {str(door) for door in RequestDoor}


async def test_nobody_to_ask_is_a_refusal() -> None:
    result = await judged(a_policy(default="allow", approve=False))
    assert isinstance(result.ruling, Refusal)
    assert "name no approvers" in result.ruling.reason
