"""Rulings only get stricter: by what is undecided, by merging, and by rules of code."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

from hypothesis import given, settings, strategies as st

from agents.policy import Allow, Ask, Deny, Ruling, strictest
from bot.policy.evaluation.asking import terms_of
from bot.policy.evaluation.context import PolicyQuestion, ToolFacts
from bot.policy.evaluation.evaluate import Judged, PolicyEvaluator
from bot.policy.evaluation.merge import Permit, Refusal, Verdict, merge, names_of
from bot.policy.model import AskEntry, PolicyFile
from bot.records.terms import Group, Terms
from tests.property.worlds.strictness import is_at_least, slots_of

GROUPS = ("sre", "security", "leads")
ARGS = ("a", "b", "c")
TRUE, FALSE, UNDECIDED = 1, 2, "1"
"""Values of an argument for `eq 1`."""

groups = st.lists(st.sampled_from(GROUPS), min_size=1, max_size=2, unique=True)
yes_no = st.booleans()


def _approve() -> st.SearchStrategy[list[dict[str, Any]]]:
    requirement = st.fixed_dictionaries({"from": groups, "count": st.integers(1, 3)})
    return st.lists(
        requirement, min_size=1, max_size=2, unique_by=lambda entry: tuple(entry["from"])
    )


@st.composite
def asks(draw: st.DrawFn, *, stages: bool = True) -> dict[str, Any]:
    """An `ask` with some of all fields."""
    ask: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "exclude": st.lists(
                    st.sampled_from(["requesters", "editors", "leads"]), unique=True
                ),
                "edit": st.sampled_from(["yes", "no"])
                | st.fixed_dictionaries(
                    {
                        "by": st.lists(
                            st.sampled_from(["approvers", "requesters", "sre"]),
                            min_size=1,
                            unique=True,
                        )
                    }
                ),
                "reject": st.just("any") | st.builds(lambda n: {"count": n}, st.integers(2, 4)),
                "expires": st.sampled_from(["30m", "8h", "2d"]),
                "on_expiry": st.sampled_from(["expired", "cancel_run"]),
                "max_age": st.sampled_from(["1m", "15m", "24h"]),
                "remind": st.sampled_from(["never", "5m", "2h"]),
                "route": st.sampled_from(["thread", "dm"]),
                "mention": yes_no,
                "clock": st.sampled_from(["wall", "working"]),
                "urgent": yes_no,
                "risk": st.sampled_from(["low", "medium", "high", "critical"]),
                "confirm": yes_no,
                "reason": st.fixed_dictionaries(
                    {}, optional=dict.fromkeys(("approve", "reject"), st.just("required"))
                ),
                "reasons": st.lists(st.sampled_from("abcdefghijk"), max_size=8, unique=True),
                "grants": st.just({"max_time": "1h", "max_uses": 5, "vary": ["a"]}),
                "break_glass": st.builds(
                    lambda by, alert: {"by": by, "alert": alert},
                    groups,
                    st.sampled_from(["C0OPS", "C0PAY"]),
                ),
                "delegation": yes_no,
                "always_ask": yes_no,
            },
        )
    )
    if stages and draw(yes_no):
        ask["stages"] = [{"name": name, "approve": draw(_approve())} for name in ("one", "two")]
    else:
        ask["approve"] = draw(_approve())
    if draw(yes_no):
        names = _names(ask)
        steps = draw(st.lists(st.tuples(groups, st.sampled_from(names)), min_size=1, max_size=2))
        ask["escalate"] = [
            {"after": f"{hours}h", "add": add, "for": [name]}
            for hours, (add, name) in enumerate(steps, 1)
        ]
    return ask


def _names(ask: dict[str, Any]) -> list[str]:
    stages = ask.get("stages", [ask])
    return ["+".join(requirement["from"]) for stage in stages for requirement in stage["approve"]]


thens = (
    st.just("allow")
    | st.sampled_from(["No.", "Never."]).map(lambda why: {"deny": why})
    | asks().map(lambda ask: {"ask": ask})
    | asks().map(lambda ask: {"ask": ask})
)


@st.composite
def files(draw: st.DrawFn) -> PolicyFile:
    """A policy whose rules look at one or two of three arguments."""
    rules = []
    for number in range(draw(st.integers(0, 4))):
        args = draw(st.lists(st.sampled_from(ARGS), min_size=1, max_size=2, unique=True))
        ops = [draw(st.sampled_from(["eq", "ne"])) for _ in args]
        conditions = [
            {"path": path, "op": op, "value": 1} for path, op in zip(args, ops, strict=True)
        ]
        rules.append({"name": f"r{number}", "when": {"args": conditions}, "then": draw(thens)})
    return _file(rules=rules, default=draw(thens), defaults=draw(asks()))


def _file(**parts: Any) -> PolicyFile:
    names = {name: {"usergroups": [f"S0{name.upper()}"]} for name in GROUPS}
    data = {"version": 1, "groups": names, "rules": [], "default": "allow", **parts}
    return PolicyFile.model_validate(data)


arguments = st.fixed_dictionaries(
    dict.fromkeys(ARGS, st.sampled_from([TRUE, FALSE, UNDECIDED, UNDECIDED]))
)
tools = st.builds(
    ToolFacts,
    name=st.just("t"),
    risk=st.sampled_from(["low", "high"]),
    gate=st.sampled_from(["none", "approval", "review"]),
)


MANY = settings(max_examples=max(settings().max_examples, 20))


def _judge(
    file: PolicyFile, tool: ToolFacts, values: dict[str, Any], code: list[Ruling] | None = None
) -> Judged:
    async def unknown(_: Group) -> None:
        return None

    question = PolicyQuestion(tool=tool, arguments=values)
    ruling = strictest(code) if code else None
    return asyncio.run(PolicyEvaluator(file).judge(question, unknown, ruling))


@MANY
@given(files(), tools, arguments)
def test_undecided_is_as_strict_as_every_world(
    file: PolicyFile, tool: ToolFacts, values: dict[str, Any]
) -> None:
    ruling = _judge(file, tool, values).ruling
    worlds = ([TRUE, FALSE] if value == UNDECIDED else [value] for value in values.values())
    for world in product(*worlds):
        assert is_at_least(ruling, _judge(file, tool, dict(zip(values, world, strict=True))).ruling)


@st.composite
def verdicts(draw: st.DrawFn, *, stages: bool = True) -> list[Verdict]:
    """Three rulings of one file."""
    file, tool = _file(), ToolFacts(name="t")
    result: list[Verdict] = []
    for number in range(3):
        kind = draw(st.sampled_from(["allow", "deny", "ask", "ask", "ask"]))
        name = f"r{number}"
        if kind == "ask":
            entry = AskEntry.model_validate(draw(asks(stages=stages)))
            result.append(terms_of(file, entry, name, tool))
        else:
            result.append(Permit((name,)) if kind == "allow" else Refusal((name,), (f"no {name}",)))
    return result


@MANY
@given(verdicts())
def test_what_is_merged_is_as_strict_as_each_part(parts: list[Verdict]) -> None:
    merged = merge(parts)
    assert all(is_at_least(merged, part) for part in parts)


@MANY
@given(verdicts(stages=False))
def test_merging_is_associative_without_stages(parts: list[Verdict]) -> None:
    first, second, third = parts
    left, right = merge([merge([first, second]), third]), merge([first, merge([second, third])])
    assert left == right == merge(parts)


@MANY
@given(verdicts())
def test_with_stages_only_their_borders_depend_on_the_grouping(parts: list[Verdict]) -> None:
    first, second, third = parts
    left, right = merge([merge([first, second]), third]), merge([first, merge([second, third])])
    assert names_of(left) == names_of(right)
    if isinstance(left, Terms) and isinstance(right, Terms):
        assert slots_of(left) == slots_of(right)
        rest = {"stages"}
        assert left.model_dump(exclude=rest) == right.model_dump(exclude=rest)


@MANY
@given(verdicts())
def test_names_of_requirements_stay_unique(parts: list[Verdict]) -> None:
    merged = merge(parts)
    if isinstance(merged, Terms):
        names = [requirement.name for stage in merged.stages for requirement in stage.approve]
        assert len(set(names)) == len(names)
        assert {name for step in merged.escalate for name in step.requirements} <= set(names)


times = st.none() | st.sampled_from([timedelta(minutes=5), timedelta(days=3)])
people = st.lists(st.sampled_from(["U0MIA", "U0SAM", "S0SRE", "U-OPS"]), max_size=2, unique=True)
rulings = st.one_of(
    st.just(Allow()),
    st.just(Deny("no", rule="stop")),
    st.builds(
        Ask,
        rule=st.just("code"),
        kind=st.sampled_from(["approval", "review"]),
        approvers=people.map(tuple),
        backups=people.map(tuple),
        expires_in=times,
        remind_in=times,
        escalate_in=times,
        exclude_editors=yes_no,
    ),
)


@MANY
@given(files(), tools, arguments, st.lists(rulings, max_size=2))
def test_a_rule_of_code_never_widens(
    file: PolicyFile, tool: ToolFacts, values: dict[str, Any], code: list[Ruling]
) -> None:
    alone = _judge(file, tool, values).ruling
    kinds = {ruling.kind for ruling in code if isinstance(ruling, Ask)}
    if kinds == {"review"} and tool.gate == "none":
        # Of who may edit, a file that is silent takes what code says (1.16).
        alone = _judge(file, replace(tool, gate="review"), values).ruling
        if isinstance(alone, Permit):
            alone = _judge(file, tool, values).ruling
    assert is_at_least(_judge(file, tool, values, code).ruling, alone)
