"""Policies at their edges: what each part passes on, and the words of each refusal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from agents.core.address import Address
from agents.core.codec import Json
from agents.core.errors import AgentConfigError
from agents.core.interrupt import InterruptSignal
from agents.core.pending import InterruptNode
from agents.policy import (
    Allow,
    AllowList,
    Ask,
    BlockList,
    Condition,
    Deny,
    Policy,
    PolicyCall,
    Rule,
    RulePolicy,
    all_of,
    check_names,
    first_of,
    ruling_of,
    strictest,
)
from agents.policy.checks import has_path, people_of
from tests.unit.agents.house import Says
from tests.unit.agents.policy.test_rules import known

CALL = PolicyCall(tool="pay", arguments={"euros": 5})


async def test_each_refusal_says_why() -> None:
    asks = Says(InterruptSignal(InterruptNode(id="i", address=Address())))
    denied = Deny("the policy tried to ask people itself; it has to return `Ask`", failed=True)
    assert await ruling_of(asks, CALL) == denied
    assert await AllowList([]).evaluate(CALL) == Deny("the tool is not on the list")
    assert await BlockList(["pay"]).evaluate(CALL) == Deny("the tool is blocked")
    wrong: Any = "yes"
    unclear = Deny("a policy answered with str, which is no ruling", failed=True)
    assert strictest([wrong]) == unclear


@pytest.mark.parametrize(("policy", "what"), [(AllowList, "allow-list"), (BlockList, "block-list")])
def test_names_of_no_tool_are_listed(policy: Any, what: str) -> None:
    with pytest.raises(AgentConfigError) as caught:
        check_names(policy(["b", "a", "pay"]), ["pay", "ask"])

    assert str(caught.value) == (
        f"the {what} names 'a', 'b', and there is no such tool; tools that exist: ask, pay"
    )
    with pytest.raises(AgentConfigError, match=r"exist: none$"):
        check_names(policy(["a"]), [])


@pytest.mark.parametrize(("excludes", "other"), [(True, True), (True, False), (False, True)])
def test_one_rule_that_excludes_editors_is_enough(*, excludes: bool, other: bool) -> None:
    asks = Ask(rule="a", exclude_editors=excludes), Ask(rule="b", exclude_editors=other)

    assert strictest(asks) == Ask(rule="a + b", exclude_editors=True, asks=asks)
    asks = Ask(rule="a"), Ask(rule="b")
    assert strictest(asks) == Ask(rule="a + b", exclude_editors=False, asks=asks)


ADA = RulePolicy(
    rules=(Rule(then=Ask(rule="a", approvers=("UADA", "UBEN"), backups=("UCY",))),),
    default=Ask(rule="rest", approvers=("UBEN", "UDAN")),
)
ADAS = ("UADA", "UBEN", "UCY", "UDAN")


@pytest.mark.parametrize(
    "policy", [ADA, all_of(ADA), first_of(ADA), all_of(Says(Allow()), first_of(Says(Allow()), ADA))]
)
def test_a_policy_names_all_whom_it_may_ask_once(policy: Policy) -> None:
    assert people_of(policy) == people_of(Says(Allow()), policy, policy) == ADAS
    assert people_of(Allow(), Says(Allow()), Deny()) == ()


def test_rules_in_first_of_have_names_of_their_own() -> None:
    assert first_of(Says(Allow()), ADA).rule_names() == ("a", "rest")  # type: ignore[attr-defined]
    with pytest.raises(AgentConfigError, match=r"two rules .* ask by the name 'a'"):
        all_of(first_of(ADA), ADA)


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        ({"properties": {"euros": {}, "to": {}}}, "euros, to"),
        ({"properties": {}}, "none"),
        ({"properties": "?", "additionalProperties": False}, "none"),
    ],
)
def test_a_misspelled_argument_is_answered_with_those_there_are(
    schema: Mapping[str, Json], fields: str
) -> None:
    rule = Rule(tool="pay", when=(Condition("euro", "equals", 1),), then=Deny())
    with pytest.raises(AgentConfigError, match=f"its arguments are: {fields}\\. Name in"):
        rule.check_tool(known("pay", schema))


TEXT: Json = {"type": "object", "properties": {"text": {"type": "string"}}}
REFERENCES: dict[str, Json] = {
    "type": "object",
    "properties": {
        "one": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/Again"}]},
        "all": {"allOf": [{"$ref": "#/$defs/Again"}]},
        "again": {"$ref": "#/$defs/Again"},
        "free": {"type": "object", "additionalProperties": True},
        "more": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Again"}},
        "list": {"type": "array", "items": {"$ref": "#/$defs/Again"}},
        "beyond": {"$ref": "#/properties/more/type/text"},
    },
    "$defs": {"Again": {"$ref": "#/$defs/Text"}, "Text": TEXT},
}


@pytest.mark.parametrize(
    "path", ["one.{}", "all.{}", "again.{}", "more.red.{}", "list.0.{}", "list.*.{}"]
)
def test_arguments_are_found_through_references_and_choices(path: str) -> None:
    assert has_path(REFERENCES, path.format("text").split("."))
    assert not has_path(REFERENCES, path.format("txt").split("."))


def test_an_object_that_takes_anything_has_any_argument() -> None:
    assert has_path(REFERENCES, ["free", "what"])
    assert has_path(REFERENCES, ["free", "what", "ever"])


def test_a_reference_to_nothing_has_no_arguments() -> None:
    assert not has_path(REFERENCES, ["beyond", "text"])


def test_the_text_of_a_ruling_never_changes() -> None:
    plain = Ask(rule="big").to_text()
    # Decisions are bound to it by their digest: another text here makes all of them void.
    assert plain == (
        '{"approvers":[],"backups":[],"effect":"ask","escalate_in":null,'
        '"exclude_editors":false,"expires_in":null,"kind":"approval","reason":"","rule":"big"}'
    )
    assert Ask(rule="big", title="Pay", remind_in=timedelta(minutes=1)).to_text() == plain
    assert Ask(
        kind="review",
        rule="r",
        reason="dear",
        approvers=("UADA", "UBEN"),
        backups=("UCY",),
        expires_in=timedelta(hours=1),
        escalate_in=timedelta(seconds=90),
        exclude_editors=True,
    ).to_text() == (
        '{"approvers":["UADA","UBEN"],"backups":["UCY"],"effect":"ask","escalate_in":90.0,'
        '"exclude_editors":true,"expires_in":3600.0,"kind":"review","reason":"dear","rule":"r"}'
    )
    assert '"kind":"choice"' in Ask(rule="r").to_text(kind="choice")
