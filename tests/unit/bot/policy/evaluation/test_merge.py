"""Several rulings as one, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from bot.policy.evaluation.asking import terms_of
from bot.policy.evaluation.context import Gate, ToolFacts
from bot.policy.evaluation.merge import Refusal, merge, plain_name
from bot.policy.model import AskEntry, PolicyFile
from bot.records.terms import BreakGlass, Group, Terms, TermsError

SRE: list[dict[str, Any]] = [{"from": ["sre"]}]


def terms(name: str = "a", *, gate: Gate = "none", **ask: Any) -> Terms:
    """The terms of an `ask` of a rule."""
    groups = {group: {"usergroups": [f"S0{group.upper()}"]} for group in ("sre", "leads", "fin")}
    data = {
        "version": 1,
        "timezone": "Europe/Berlin",
        "groups": groups,
        "quiet": {"from": "20:00", "until": "08:00", "days": ["sun"]},
        "rules": [],
        "default": "allow",
    }
    file = PolicyFile.model_validate(data)
    people = {} if "stages" in ask else {"approve": SRE}
    entry = AskEntry.model_validate({**people, **ask})
    return terms_of(file, entry, name, ToolFacts(name="t", gate=gate))


def merged(first: dict[str, Any], other: dict[str, Any]) -> Terms:
    result = merge([terms("a", **first), terms("b", **other)])
    assert isinstance(result, Terms)
    return result


@pytest.mark.parametrize(
    ("field", "first", "other", "value"),
    [
        ("exclude", {}, {"exclude": ["editors"]}, ("requesters", "editors")),
        ("exclude", {"exclude": []}, {"exclude": []}, ()),
        ("edit", {"edit": "yes"}, {"edit": "yes"}, "yes"),
        ("edit", {"edit": "yes"}, {"edit": "no"}, "no"),
        ("edit", {"edit": "yes"}, {"edit": {"by": ["approvers", "sre"]}}, "yes"),
        ("edit", {"edit": "yes"}, {"edit": {"by": ["sre"]}}, "no"),
        ("edit", {"edit": {"by": ["sre"]}}, {"edit": {"by": ["leads"]}}, "no"),
        ("editors", {"edit": {"by": ["sre", "fin"]}}, {"edit": {"by": ["fin"]}}, ("fin",)),
        ("reject", {}, {"reject": {"count": 2}}, 1),
        ("reject", {"reject": {"count": 3}}, {"reject": {"count": 2}}, 2),
        ("expires_s", {"expires": "8h"}, {"expires": "30m"}, 1_800),
        ("on_expiry", {}, {"on_expiry": "cancel_run"}, "cancel_run"),
        ("max_age_s", {"max_age": "1h"}, {"max_age": "5m"}, 300),
        ("remind_s", {"remind": "never"}, {"remind": "10m"}, 600),
        ("remind_times", {"remind": {"after": "5m", "times": 1}}, {"remind": "10m"}, 1),
        ("route", {}, {"route": "dm"}, "dm"),
        ("route", {"route": {"channel": "C0OPS"}}, {"route": "dm"}, "C0OPS"),
        ("mention", {"mention": "no"}, {}, True),
        ("clock", {"clock": "working"}, {}, "wall"),
        ("urgent", {}, {"urgent": "yes"}, True),
        ("risk", {"risk": "critical"}, {"risk": "low"}, "critical"),
        ("confirm", {}, {"confirm": "yes"}, True),
        ("approve_reason", {}, {"reason": {"approve": "required"}}, True),
        ("reject_reason", {"reason": {"reject": "required"}}, {}, True),
        ("reasons", {"reasons": ["x", "y"]}, {"reasons": ["y", "z"]}, ("x", "y", "z")),
        ("delegation", {}, {"delegation": "no"}, False),
        ("always_ask", {}, {"always_ask": "yes"}, True),
    ],
)
def test_the_stricter_counts(
    field: str, first: dict[str, Any], other: dict[str, Any], value: object
) -> None:
    assert getattr(merged(first, other), field) == value


def test_no_field_is_forgotten() -> None:
    """A field that is not put together would fall back to its default, which may be milder."""
    assert merged({}, {}).model_fields_set == set(Terms.model_fields)
    assert {*terms().model_fields_set, "reason"} == set(Terms.model_fields)


def test_all_requirements_stand_under_names_of_their_own() -> None:
    steps = [{"after": "1h", "add": ["leads"]}]
    result = merged({}, {"escalate": steps, "approve": [{"from": ["sre"], "count": 2}]})
    (stage,) = result.stages
    assert [(requirement.name, requirement.count) for requirement in stage.approve] == [
        ("sre", 1),
        ("sre #2", 2),
    ]
    assert [step.requirements for step in result.escalate] == [("sre #2",)]
    assert plain_name("sre #2") == "sre"
    assert result.rule == "a + b"


def test_break_glass_is_for_those_whom_all_let() -> None:
    glass = {"by": ["sre", "leads"], "alert": "C0ALERT"}
    assert merged({"break_glass": glass}, {}).break_glass is None
    both = merged({"break_glass": glass}, {"break_glass": {**glass, "by": ["leads"]}})
    assert both.break_glass == BreakGlass(groups=("leads",), alert="C0ALERT")
    other = {"break_glass": {**glass, "alert": "C0OPS"}}
    assert merged({"break_glass": glass}, other).break_glass is None
    other = {"break_glass": {**glass, "by": ["fin"]}}
    assert merged({"break_glass": glass}, other).break_glass is None
    assert merged({"break_glass": glass}, {"break_glass": glass, "always_ask": "yes"}).always_ask


def test_who_always_asks_has_no_other_way() -> None:
    ways: dict[str, Any] = {
        "break_glass": {"by": ["sre"], "alert": "C0ALERT"},
        "grants": {"max_time": "1h", "max_uses": 5},
    }
    assert terms(**ways).grants is not None
    asking = terms(always_ask="yes", **ways)
    assert (asking.grants, asking.break_glass) == (None, None)


def test_the_smaller_limits_count_where_one_person_decides() -> None:
    first = terms(grants={"max_time": "1h", "max_uses": 9, "vary": ["a", "b"]})
    other = terms("b", grants={"max_time": "2h", "max_uses": 5, "vary": ["b"]})
    both = merge([first, other.model_copy(update={"stages": ()})])
    assert isinstance(both, Terms)
    assert both.grants is not None
    assert both.grants.model_dump() == {"max_time_s": 3_600, "max_uses": 5, "vary": ("b",)}


def test_one_name_for_two_groups_refuses() -> None:
    other = terms("b").model_copy(update={"groups": {"sre": Group(users=("U0ROSA",))}})
    result = merge([terms(), other])
    assert isinstance(result, Refusal)
    assert result.reason == "two groups of different people are named sre"


def test_terms_with_two_requirements_of_one_name_cannot_be_read() -> None:
    original = terms()
    (stage,) = original.stages
    twice = stage.model_copy(update={"approve": (*stage.approve, *stage.approve)})
    with pytest.raises(TermsError):
        Terms.from_text(original.model_copy(update={"stages": (twice,)}).text)


@pytest.mark.parametrize(
    ("gate", "ask", "edit"),
    [
        ("none", {}, "no"),
        ("policy", {}, "no"),
        ("approval", {}, "no"),
        ("review", {}, "yes"),
        ("approval", {"edit": "yes"}, "no"),
        ("review", {"edit": "no"}, "no"),
        ("none", {"edit": "yes"}, "yes"),
        ("review", {"edit": {"by": ["sre"]}}, "by"),
    ],
)
def test_a_gate_has_a_say_in_editing(gate: Gate, ask: dict[str, Any], edit: str) -> None:
    assert terms(gate=gate, **ask).edit == edit
