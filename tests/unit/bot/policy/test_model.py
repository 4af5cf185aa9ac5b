"""The models of a policy file: what one entry by itself must be."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from bot.policy.model import ApproveEntry, AskEntry, RequesterEntry, RuleEntry, When


def test_an_absent_field_is_taken_whole_from_the_defaults() -> None:
    defaults = AskEntry.model_validate(
        {"approve": [{"from": ["sre"]}], "expires": "1h30m", "remind": {"after": "5m", "times": 2}}
    )
    entry = AskEntry.model_validate({"remind": "10m"}).over(defaults)
    assert entry.expires == 5_400
    assert entry.remind is not None
    assert (entry.remind.after, entry.remind.times) == (600, 3)
    assert [item.title for item in entry.requirements] == ["sre"]


def test_who_names_approvers_takes_no_stages_from_the_defaults() -> None:
    stages = [
        {"name": "team", "approve": [{"from": ["sre"]}]},
        {"name": "lead", "approve": [{"from": ["leads"]}]},
    ]
    defaults = AskEntry.model_validate({"stages": stages})
    own = AskEntry.model_validate({"approve": [{"from": ["sre", "leads"]}]}).over(defaults)
    assert own.stages is None
    assert [item.title for item in own.requirements] == ["sre+leads"]
    assert len(AskEntry().over(defaults).requirements) == 2


def test_never_any_and_no_are_told_apart_from_absent() -> None:
    entry = AskEntry.model_validate(
        {"remind": "never", "reject": "any", "grants": "never", "break_glass": "no", "route": "dm"}
    )
    assert entry.remind is not None
    assert entry.reject is not None
    assert entry.grants is not None
    assert entry.break_glass is not None
    assert entry.route is not None
    assert (entry.remind.after, entry.reject.count, entry.grants.max_uses) == (0, 1, 0)
    assert (entry.break_glass.by, entry.route.channel) == ((), "dm")
    assert AskEntry().grants is None


@pytest.mark.parametrize("value", [{}, {"in": ["sre"], "not_in": ["sre"]}])
def test_requesters_are_in_or_not_in(value: object) -> None:
    with pytest.raises(ValidationError, match="exactly one"):
        RequesterEntry.model_validate(value)


@pytest.mark.parametrize("key", ["tool", "tags", "risk", "gated", "args", "channel", "agent"])
def test_a_key_without_a_value_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match="it has no value"):
        When.model_validate({key: None})


@pytest.mark.parametrize("key", ["tool", "tags", "risk", "args", "channel", "agent"])
def test_a_condition_that_lists_nothing_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match="at least 1 item"):
        When.model_validate({key: []})


@pytest.mark.parametrize("count", [0, 11, True, "2", 1.5])
def test_a_count_is_a_whole_number_from_one_to_ten(count: object) -> None:
    with pytest.raises(ValidationError):
        ApproveEntry.model_validate({"from": ["sre"], "count": count})


@pytest.mark.parametrize(
    ("when", "then"),
    [
        ({"limit": "time"}, {"ask": {}}),
        ({"limit": []}, {"ask": {}}),
        ({"limit": "cost", "tool": "pay"}, {"ask": {}}),
        ({"limit": "cost", "tags": ["money"]}, {"ask": {}}),
        ({"limit": "cost", "risk": ["high"]}, {"ask": {}}),
        ({"limit": "cost", "gated": "no"}, {"ask": {}}),
        ({"limit": "cost", "args": [{"path": "a", "op": "exists"}]}, {"ask": {}}),
        ({"limit": "cost"}, "allow"),
    ],
)
def test_a_rule_of_a_limit_is_about_no_call_and_never_allows(when: object, then: object) -> None:
    with pytest.raises(ValidationError):
        RuleEntry.model_validate({"name": "one", "when": when, "then": then})
