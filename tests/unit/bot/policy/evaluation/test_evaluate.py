"""Judging: places, requesters, look-ups that fail, and what a rule of a file cannot do."""

from __future__ import annotations

from typing import Any

import pytest

from bot.policy.evaluation.context import PolicyQuestion, ToolFacts
from bot.policy.evaluation.evaluate import Judged, PolicyEvaluator
from bot.policy.evaluation.merge import Refusal
from bot.policy.model import PolicyFile
from bot.records.terms import Group, Terms

GROUPS = {"sre": {"usergroups": ["S0SRE"]}, "fin": {"users": ["U0MIA"]}}
MEMBERS = {("S0SRE",): frozenset({"U0ADA", "U0BEN"}), (): frozenset({"U0MIA"})}


class People:
    """Looks groups up, and counts how often."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.looked_up: list[Group] = []

    async def members(self, group: Group) -> frozenset[str] | None:
        self.looked_up.append(group)
        if "error" in self.failing:
            raise OSError("Slack does not answer")
        return None if set(group.usergroups) & set(self.failing) else MEMBERS[group.usergroups]


def rulebook(*whens: dict[str, Any], then: Any = "allow", default: Any = None) -> PolicyEvaluator:
    rules = [
        {"name": f"r{number}", "when": when, "then": then} for number, when in enumerate(whens)
    ]
    data = {
        "version": 1,
        "groups": GROUPS,
        "rules": rules,
        "default": {"deny": "else"} if default is None else default,
    }
    return PolicyEvaluator(PolicyFile.model_validate(data))


async def judge(book: PolicyEvaluator, people: People | None = None, **parts: Any) -> Judged:
    given = {"tool": ToolFacts(name="pay_out", tags=("money", "slow"), risk="high")}
    question = PolicyQuestion(**{"arguments": {}, **given, **parts})
    return await book.judge(question, (people or People()).members)


async def first(when: dict[str, Any], people: People | None = None, **parts: Any) -> str:
    """What the only rule of a policy is for a call."""
    judged = await judge(rulebook(when), people, **parts)
    return judged.steps[0].word


@pytest.mark.parametrize(
    ("when", "word"),
    [
        ({}, "true"),
        ({"tool": "pay_*"}, "true"),
        ({"tool": "pay?out"}, "true"),
        ({"tool": "pay"}, "false"),
        ({"tool": "Pay_out"}, "false"),
        ({"tool": "pay[_]out"}, "false"),
        ({"tool": ["refund", "*out"]}, "true"),
        ({"tags": ["money"]}, "true"),
        ({"tags": ["money", "read-only"]}, "false"),
        ({"risk": ["high", "critical"]}, "true"),
        ({"risk": ["low"]}, "false"),
        ({"gated": True}, "true"),
        ({"gated": False}, "false"),
        ({"channel": ["C0OPS"]}, "true"),
        ({"channel": ["C0PAY"]}, "false"),
        ({"channel": ["direct"]}, "false"),
        ({"agent": ["clerk"]}, "true"),
        ({"agent": ["deployer"], "channel": ["C0OPS"]}, "false"),
    ],
)
async def test_a_rule_matches_by_all_that_it_says(when: dict[str, Any], word: str) -> None:
    assert await first(when, gated=True, channel="C0OPS", agent="clerk") == word


async def test_direct_messages_are_a_channel_of_their_own() -> None:
    when = {"channel": ["direct", "C0OPS"]}
    assert await first(when, channel="D0ROSA") == "true"
    assert await first(when, channel="C0OPS") == "true"
    assert await first(when, channel="C0PAY") == "false"


@pytest.mark.parametrize(
    ("requester", "said", "word"),
    [
        ({"in": ["sre"]}, ["U0ADA"], "true"),
        ({"in": ["sre"]}, ["U0ADA", "U0BEN"], "true"),
        ({"in": ["sre"]}, ["U0ROSA"], "false"),
        ({"in": ["sre"]}, ["U0ADA", "U0ROSA"], "undecided"),
        ({"in": ["sre", "fin"]}, ["U0ADA", "U0MIA"], "true"),
        ({"not_in": ["sre"]}, ["U0ROSA"], "true"),
        ({"not_in": ["sre"]}, ["U0ADA"], "false"),
        ({"not_in": ["sre", "fin"]}, ["U0MIA", "U0ADA"], "false"),
        ({"not_in": ["sre"]}, ["U0ADA", "U0ROSA"], "undecided"),
        ({"in": ["sre"]}, [], "undecided"),
    ],
)
async def test_requesters_are_judged_all_together(
    requester: dict[str, Any], said: list[str], word: str
) -> None:
    assert await first({"requester": requester}, requesters=tuple(said)) == word


@pytest.mark.parametrize("failing", ["S0SRE", "error"])
async def test_a_look_up_that_fails_leaves_it_undecided(failing: str) -> None:
    when = {"requester": {"in": ["sre"]}}
    assert await first(when, People(failing), requesters=("U0ADA",)) == "undecided"
    assert (await judge(rulebook(when), People(failing), requesters=("U0ADA",))).effect == "deny"


async def test_every_step_says_what_settled_it() -> None:
    whens = (
        {"tool": "refund"},
        {"tags": ["x"]},
        {"risk": ["low"]},
        {"gated": True},
        {"channel": ["C0PAY"]},
        {"requester": {"in": ["sre"]}},
        {"args": [{"path": "a", "op": "eq", "value": 1}]},
    )
    judged = await judge(rulebook(*whens), requesters=("U0TOM",), channel="C0OPS", agent="clerk")
    assert [step.why for step in judged.steps] == [
        "tool: it is pay_out",
        "tags: they are money, slow",
        "risk: it is high",
        "gated: it is no",
        "channel or agent: C0OPS, clerk",
        "requester: they are U0TOM",
        "a eq 1: nothing is there",
    ]


async def test_a_question_that_names_nobody_is_refused() -> None:
    judged = await judge(rulebook(default={"ask": {}}))
    assert isinstance(judged.ruling, Refusal)
    assert "names no approvers" in judged.ruling.reason


async def test_a_question_that_names_an_unknown_group_is_refused() -> None:
    judged = await judge(rulebook(default={"ask": {"approve": [{"from": ["nobody"]}]}}))
    assert isinstance(judged.ruling, Refusal)
    assert "no group named 'nobody'" in judged.ruling.reason


async def test_many_tools_do_not_fill_the_memory() -> None:
    book = rulebook({})
    for number in range(2_100):
        await judge(book, tool=ToolFacts(name=f"t{number}"))
    assert len(book._benches) <= 1_000


async def test_many_worlds_do_not_fill_the_memory() -> None:
    names = [f"a{number}" for number in range(8)]
    book = rulebook(*({"args": [{"path": path, "op": "eq", "value": 1}]} for path in names))
    for world in range(256):
        values = {name: "1" if world >> bit & 1 else 2 for bit, name in enumerate(names)}
        await judge(book, arguments=values)
    (bench,) = book._benches.values()
    assert len(bench.usual) <= 200


async def test_the_ruling_of_one_tool_is_not_that_of_another() -> None:
    book = rulebook(default={"ask": {"approve": [{"from": ["sre"]}]}})
    risks = []
    for risk in ("low", "critical", "low"):
        ruling = (await judge(book, tool=ToolFacts(name="t", risk=risk))).ruling
        assert isinstance(ruling, Terms)
        risks.append((ruling.risk, ruling.confirm))
    assert risks == [("low", False), ("critical", True), ("low", False)]


async def test_a_place_that_is_not_known_is_undecided() -> None:
    assert await first({"channel": ["C0OPS"]}) == "undecided"
    assert await first({"agent": ["clerk"]}) == "undecided"
