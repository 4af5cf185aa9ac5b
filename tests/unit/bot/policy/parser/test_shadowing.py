"""A rule is called unreachable only if no call can prove the contrary."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from bot.policy.evaluation.context import PolicyQuestion, ProgramFacts, ToolFacts
from bot.policy.evaluation.matching import PolicyRule, names_programs
from bot.policy.model import RuleEntry
from bot.policy.parser.shadowing import shadowed
from bot.records.origin import RequestDoor

TOOLS = ("pay", "pay_all", "read")
NUMBERS = (1, 1.0, True, 2, 2.5, 3, "2", "a", "A", None)


def a_rule(**when: object) -> RuleEntry:
    then = {"ask": {}} if "limit" in when else "allow"
    return RuleEntry.model_validate({"name": "one", "when": when, "then": then})


def an_arg(op: str, value: object, **more: object) -> list[dict[str, object]]:
    return [{"path": "amount", "op": op, "value": value, **more}]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ({"tool": "pay"}, {"tool": "pay", "risk": ["high"]}),
        ({"tool": ["read", "pay*"]}, {"tool": ["pay", "pay_all"]}),
        ({"tags": ["db"]}, {"tags": ["money", "db"]}),
        ({"gated": "yes", "agent": ["a", "b"]}, {"gated": "yes", "agent": ["b"]}),
        ({"requester": {"in": ["sre", "leads"]}}, {"requester": {"in": ["sre"]}}),
        ({"requester": {"not_in": ["sre"]}}, {"requester": {"not_in": ["sre", "leads"]}}),
        ({"args": an_arg("gt", 100)}, {"args": an_arg("ge", 101), "channel": ["C0OPS"]}),
        ({"args": an_arg("ge", 100)}, {"args": an_arg("gt", 100)}),
        ({"args": an_arg("in", ["a", "b"])}, {"args": an_arg("eq", "b")}),
        ({"limit": ["tokens", "cost"]}, {"limit": "cost", "agent": ["a"]}),
        ({"program": "ci-*"}, {"program": "ci-main", "origin": "mcp"}),
        ({"program": "ci-*", "origin": "api"}, {"program": "ci-main", "origin": "api"}),
        ({"origin": ["api", "cli"]}, {"origin": "cli"}),
    ],
)
def test_a_rule_behind_a_wider_one_never_matches(wide: Any, narrow: Any) -> None:
    assert list(shadowed([a_rule(**wide), a_rule(**narrow)])) == [(1, 0)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"tool": "pay"}, {"tool": "pay*"}),
        ({"limit": "cost"}, {"agent": ["a"]}),
        ({"agent": ["a"]}, {"agent": ["a"], "limit": "cost"}),
        ({"limit": "cost"}, {"limit": ["tokens", "cost"]}),
        ({"tool": "pay", "channel": ["C0OPS"]}, {"tool": "pay"}),
        ({"tags": ["money", "db"]}, {"tags": ["db"]}),
        ({"requester": {"in": ["sre"]}}, {"requester": {"not_in": ["leads"]}}),
        ({"args": an_arg("gt", 100)}, {"args": an_arg("ge", 100)}),
        ({"args": an_arg("gt", 100)}, {"args": an_arg("lt", 200)}),
        ({"args": an_arg("eq", 1)}, {"args": an_arg("eq", True)}),
        ({"args": an_arg("gt", 100)}, {"args": an_arg("gt", 200, **{"as": "number"})}),
        ({"program": "ci"}, {"tool": "pay"}),
        ({"origin": "cli"}, {"origin": ["api", "cli"]}),
        # For a program, the first one is undecided, so the second one counts.
        ({"tool": "pay"}, {"tool": "pay", "program": "ci"}),
        ({"tags": ["db"], "origin": "api"}, {"tags": ["db"], "origin": "api"}),
        # In a thread that the program starts, the first one is undecided.
        ({"program": "ci-*"}, {"program": "ci-main", "tool": "pay"}),
        ({"program": "ci"}, {"program": "ci", "origin": ["api", "mcp"]}),
    ],
)
def test_a_rule_that_some_call_reaches_is_not_told(first: Any, second: Any) -> None:
    assert list(shadowed([a_rule(**first), a_rule(**second)])) == []


def args() -> st.SearchStrategy[list[dict[str, object]]]:
    numbers = st.sampled_from([number for number in NUMBERS if isinstance(number, int | float)])
    orders = st.builds(an_arg, st.sampled_from(["gt", "ge", "lt", "le"]), numbers)
    same = st.builds(an_arg, st.sampled_from(["eq", "ne"]), st.sampled_from(NUMBERS))
    listed = st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3)
    lists = st.builds(an_arg, st.sampled_from(["in", "not_in"]), listed)
    return st.one_of(orders, same, lists)


CI = ProgramFacts(name="ci", is_trusted=False)
WAYS: list[dict[str, Any]] = [
    {"door": RequestDoor.SLACK},
    {"door": RequestDoor.API, "program": CI},
    {"door": RequestDoor.MCP, "program": ProgramFacts(name="ci", is_trusted=True)},
    {"door": RequestDoor.API, "program": CI, "is_unattended": True},
    {"door": RequestDoor.TRIGGER, "is_unattended": True},
]

WHENS = st.fixed_dictionaries(
    {},
    optional={
        "tool": st.lists(st.sampled_from([*TOOLS, "pay*", "*", "p?y"]), min_size=1, max_size=2),
        "tags": st.lists(st.sampled_from(["a", "b"]), min_size=1, unique=True),
        "risk": st.lists(st.sampled_from(["low", "high"]), min_size=1, unique=True),
        "args": args(),
        "origin": st.lists(
            st.sampled_from(["slack", "api", "mcp", "trigger"]), min_size=1, unique=True
        ),
        "program": st.lists(st.sampled_from(["ci", "ci-*", "*"]), min_size=1, unique=True),
        "channel": st.lists(st.sampled_from(["C1AAA", "C2AAA", "direct"]), min_size=1, max_size=2),
        "requester": st.dictionaries(
            st.sampled_from(["in", "not_in"]),
            st.lists(st.sampled_from(["x", "y"]), min_size=1, unique=True),
            min_size=1,
            max_size=1,
        ),
    },
)


@given(
    first=WHENS,
    second=WHENS,
    tool=st.builds(
        ToolFacts,
        name=st.sampled_from(TOOLS),
        tags=st.sampled_from([(), ("a",), ("a", "b")]),
        risk=st.sampled_from(["low", "high"]),
    ),
    amount=st.sampled_from(NUMBERS),
    channel=st.sampled_from(["C1AAA", "C2AAA", "D1AAA"]),
    members=st.dictionaries(st.sampled_from(["x", "y"]), st.just(frozenset({"U1AAA"}))),
    way=st.sampled_from(WAYS),
)
def test_no_call_reaches_a_rule_that_is_called_unreachable(
    *,
    first: dict[str, object],
    second: dict[str, object],
    tool: ToolFacts,
    amount: float | str | None,
    channel: str,
    members: dict[str, frozenset[str]],
    way: dict[str, Any],
) -> None:
    rules = [a_rule(**first), a_rule(**second)]
    is_meant = way["door"] is RequestDoor.SLACK or names_programs(rules[1].when)
    if not is_meant or not list(shadowed(rules)):
        return
    people = {"x": frozenset[str](), "y": frozenset[str](), **members}
    question = PolicyQuestion(
        tool=tool,
        arguments={"amount": amount},
        requesters=("U1AAA",),
        channel=channel,
        agent="a",
        **way,
    )
    wide, narrow = (
        not rule.misses(tool, gated=False)
        and rule.truth(question) is True
        and rule.is_requested(question, people) is True
        for rule in map(PolicyRule.of, rules)
    )
    assert wide or not narrow
