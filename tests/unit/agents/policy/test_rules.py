"""Policies: the first rule that matches, the strictest of several, and no by accident."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import get_args

import pytest

from agents.core.address import Address
from agents.core.codec import Json
from agents.core.errors import AgentConfigError
from agents.core.interrupt import InterruptSignal
from agents.core.pending import InterruptNode
from agents.core.tools import ToolSpec
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
    Ruling,
    all_of,
    check_names,
    first_of,
    ruling_of,
    strictest,
)
from agents.policy.checks import check_tags, check_tool
from agents.policy.rules import Operator
from tests.unit.agents.house import Says


def a_call(tool: str = "pay", *, tags: tuple[str, ...] = (), **arguments: Json) -> PolicyCall:
    return PolicyCall(tool=tool, arguments=arguments, tags=tags)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (True, "answered with bool"),
        (None, "answered with NoneType"),
        (Allow, "answered with type"),
        ("allow", "answered with str"),
        (ValueError("a secret"), "the policy failed"),
        (TimeoutError(), "the policy failed"),
        (InterruptSignal(InterruptNode(id="i", address=Address())), "tried to ask people itself"),
    ],
)
async def test_what_is_no_ruling_denies(answer: object, reason: str) -> None:
    ruling = await ruling_of(Says(answer), a_call())
    assert isinstance(ruling, Deny)
    assert reason in ruling.reason
    assert ruling.failed
    assert "secret" not in ruling.reason


async def test_policy_that_is_not_async_denies() -> None:
    class Plain:
        def evaluate(self, call: PolicyCall) -> Ruling:
            return Allow()

    ruling = await ruling_of(Plain(), a_call())  # type: ignore[arg-type]
    assert ruling == Deny("the policy failed", failed=True)


async def test_cancelled_run_is_not_a_denial() -> None:
    with pytest.raises(asyncio.CancelledError):
        await ruling_of(Says(asyncio.CancelledError()), a_call())


async def test_block_list() -> None:
    policy = BlockList({"drop"}, "never in production")
    assert await policy.evaluate(a_call("drop")) == Deny("never in production")
    assert await policy.evaluate(a_call("read")) == Allow()


@pytest.mark.parametrize("kind", [AllowList, BlockList])
@pytest.mark.parametrize("names", ["payroll", 5])
def test_a_text_is_no_list(kind: type, names: object) -> None:
    with pytest.raises(AgentConfigError, match="a list of tools is needed"):
        kind(names)


@pytest.mark.parametrize(
    "policy",
    [
        AllowList(["pay", "pya"]),
        BlockList(["pya"]),
        RulePolicy(rules=(Rule(tool="pya*", then=Deny()),), default=Allow()),
        all_of(AllowList(["pay"]), BlockList(["pya"])),
        first_of(AllowList(["pay"]), BlockList(["pya"])),
    ],
)
def test_misspelled_name_is_a_mistake(policy: Policy) -> None:
    check_names(policy, ["pay", "pya", "pyat"])
    with pytest.raises(AgentConfigError, match=r"pya.*no such tool"):
        check_names(policy, ["pay"])


def test_policy_without_names_passes_the_check() -> None:
    check_names(Says(Allow()), [])
    check_names(RulePolicy(rules=(), default=Deny()), [])


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        (("x", "equals", "prod"), "prod", True),
        (("x", "equals", "prod"), "staging", False),
        (("x", "equals", True), 1, None),
        (("x", "equals", 1), True, None),
        (("x", "equals", True), True, True),
        (("x", "equals", True), False, False),
        (("x", "equals", 1), 1.0, True),
        (("x", "equals", 1), 2, False),
        (("x", "equals", 1), "one", None),
        (("x", "equals", None), None, True),
        (("x", "equals", None), False, False),
        (("x", "equals", None), 0, False),
        (("x", "equals", False), None, None),
        (("x", "equals", False), 0, None),
        (("x", "equals", None), "prod", False),
        (("x", "equals", "prod"), None, None),
        (("x", "equals", "prod"), ["prod"], None),
        (("x", "equals", "prod"), "PROD", None),
        (("x", "equals", "prod"), " prod\n", None),
        (("x", "equals", "prod"), "\uff50rod", None),
        (("x", "equals", ["a", 1]), ["a", 1.0], True),
        (("x", "equals", ["a", 1]), ["a", 2], False),
        (("x", "equals", ["a", 1]), ["A", 1], None),
        (("x", "equals", ["a", 1]), ["A", 2], False),
        (("x", "equals", ["a"]), ["a", "a"], False),
        (("x", "equals", ["a"]), "a", None),
        (("x", "equals", {"a": 1}), {"a": 1.0}, True),
        (("x", "equals", {"a": 1}), {"b": 1}, False),
        (("x", "equals", {"a": 1}), {"a": "?"}, None),
        (("x", "not_equals", "prod"), "Prod", None),
        (("x", "not_equals", "prod"), 5, None),
        (("x", "in", ["a", "b"]), "B", None),
        (("x", "in", ["a", "b"]), 5, None),
        (("x", "in", ["a", 5]), 6, False),
        (("x", "in", ["a", 5]), True, None),
        (("x", "in", []), "a", False),
        (("x", "not_in", ["a"]), "A", None),
        (("x", "not_in", ["a"]), None, None),
        (("x", "equals", 100), "100.0", True),
        (("x", "equals", {"a": [1]}), {"a": [1]}, True),
        (("x", "not_equals", "prod"), "staging", True),
        (("x", "not_equals", "prod"), "prod", False),
        (("x", "in", ["a", "b"]), "b", True),
        (("x", "in", ["a", "b"]), "c", False),
        (("x", "not_in", ["a", "b"]), "c", True),
        (("x", "not_in", ["a", 1]), 1, False),
        (("x", "<", 0.5), "0.25", True),
        (("x", ">", 100), "many", None),
        (("x", ">", 100), None, None),
        (("x", ">", 100), True, None),
        (("x", ">", 100), "NaN", None),
        (("x", ">", 100), 10**500, True),
        (("x", "equals", 0.1), "0.1", True),
        (("x", ">=", 0.1), "0.1", True),
        (("x", "matches", "a.*"), "a\nb", True),
        (("x", "matches", "a"), "ab", False),
        (("x", "matches", "a*"), 5, None),
        (("x.y.0", "equals", "z"), {"y": ["z"]}, True),
        (("x.y.1", "equals", "z"), {"y": ["z"]}, None),
        (("x.y", "equals", "z"), "text", None),
        (("x.y", "not_equals", "z"), {}, None),
        (("x.y", "not_in", ["z"]), {}, None),
        (("x.*.to", "equals", "us"), [{"to": "us"}, {"to": "us"}], True),
        (("x.*.to", "equals", "us"), [{"to": "them"}], False),
        (("x.*.to", "equals", "us"), {"0": {"to": "us"}}, None),
        (("x.*.to", "equals", "us"), [{"at": "us"}], None),
        (("x.*.to", "equals", "us"), [{"to": "us"}, {"to": "them"}], None),
        (("x.*", "equals", "us"), [], False),
        (("x.*.*", "equals", 1), [[1], [1, 1]], True),
        (("x.*.*", "equals", 1), [[1], [1, 2]], None),
        (("x.*.*", "equals", 1), [[1, 2]], None),
        (("x.*.*", "equals", 1), [[]], False),
        (("x.0.to", "equals", "us"), [{"to": "us"}], True),
        (("x.1.to", "equals", "us"), [{"to": "us"}, {"to": "them"}], False),
        (("x.*", ">", 1), [2, "?"], None),
    ],
)
def test_condition(condition: tuple[str, Operator, Json], value: Json, holds: bool | None) -> None:
    assert Condition(*condition).holds({"x": value}) is holds


@pytest.mark.parametrize(
    ("path", "operator", "value", "fault"),
    [
        ("", "equals", 1, ": the path has an empty part"),
        ("a..b", "equals", 1, ": the path has an empty part"),
        ("a", "in", "abc", ": `in` and `not_in` take a list"),
        ("a", "not_in", None, ": `in` and `not_in` take a list"),
        ("a", ">", "5", "takes a number"),
        ("a", ">", True, "takes a number"),
        ("a", "<", float("inf"), "takes a number"),
        ("a", "matches", "(", "missing \\)"),
        ("a", "matches", "(?=x)y", "look-around"),
        ("a", "matches", r"(x)\1", "back-reference"),
        ("a", "matches", r"a\Z", r"write \\z"),
        ("a", "matches", "a" * 201, "at most 200"),
        ("a", "matches", 5, "at most 200"),
        ("a", "like", 5, "no operator 'like'; use equals,"),
    ],
)
def test_condition_that_makes_no_sense(
    path: str, operator: Operator, value: Json, fault: str
) -> None:
    with pytest.raises(AgentConfigError, match=fault.replace("(", r"\(")):
        Condition(path, operator, value)


# Each operator at its boundary, just below and just above it, as a number and as digits.
@pytest.mark.parametrize(
    ("operator", "below", "at", "above"),
    [
        (">", False, False, True),
        (">=", False, True, True),
        ("<", True, False, False),
        ("<=", True, True, False),
        ("equals", False, True, False),
        ("not_equals", True, False, True),
    ],
)
@pytest.mark.parametrize("limit", [500, 500.0, -500, 0])
def test_each_operator_knows_its_boundary(
    operator: Operator, below: bool, at: bool, above: bool, limit: float
) -> None:
    condition = Condition("x", operator, limit)
    for offset, holds in ((-1, below), (0, at), (1, above)):
        assert condition.holds({"x": limit + offset}) is holds
        assert condition.holds({"x": str(limit + offset)}) is holds
    assert condition.holds({"x": limit - 0.001}) is below
    assert condition.holds({"x": limit + 0.001}) is above


@pytest.mark.parametrize(
    ("operator", "limit", "value", "holds"),
    [
        ("matches", "a*", "a" * 1000, True),
        ("matches", "a*", "a" * 1001, None),
        ("matches", "a" * 200, "a" * 200, True),
        (">", 1, "9" * 100, True),
        (">", 1, "9" * 101, None),
        pytest.param(">", 100, 10**5000, True, id="cannot be written"),
    ],
)
def test_what_is_too_long_is_not_judged(
    operator: Operator, limit: Json, value: Json, holds: bool | None
) -> None:
    assert Condition("x", operator, limit).holds({"x": value}) is holds


@pytest.mark.parametrize("operator", get_args(Operator))
def test_f11_nothing_at_the_path_is_undecided(operator: Operator) -> None:
    wanted: Json = [1] if operator in {"in", "not_in"} else ("a" if operator == "matches" else 1)
    assert Condition("x.y", operator, wanted).holds({}) is None
    assert Condition("x.y", operator, wanted).holds({"x": 5}) is None


DEAR = Condition("euros", ">", 100)


@pytest.mark.parametrize(("euros", "matches"), [(101, True), ("?", None), (5, False)])
def test_rule_holds_or_not_or_cannot_be_decided(euros: Json, matches: bool | None) -> None:
    for then in (Allow(), Deny(), Ask()):
        assert Rule(when=(DEAR,), then=then).matches(a_call(euros=euros)) is matches


RULES = RulePolicy(
    rules=(Rule(tool="pay", tags=("money",), when=(DEAR,), then=Ask(rule="dear")),),
    default=Ask(),
)
BIG = Ask(rule="big", approvers=("UMIA",))


@pytest.mark.parametrize(
    ("rulings", "default", "said"),
    [
        ((Allow(),), Deny("no"), Deny("no")),
        ((Deny("no"),), Allow(), Deny("no")),
        ((BIG,), Allow(), BIG),
        ((Allow(),), BIG, BIG),
        ((Allow(),), Allow(), Allow()),
        (
            (BIG,),
            Ask(rule="rest"),
            Ask(rule="big + rest", approvers=("UMIA",), asks=(BIG, Ask(rule="rest"))),
        ),
        (
            (BIG,),
            Ask(rule="rest", approvers=("UADA",)),
            Deny(
                "the rules big and rest ask different people",
                asks=(BIG, Ask(rule="rest", approvers=("UADA",))),
            ),
        ),
    ],
)
async def test_f11_undecided_rule_counts_with_all_that_follows(
    rulings: tuple[Ruling, ...], default: Ruling, said: Ruling
) -> None:
    rules = tuple(Rule(when=(DEAR,), then=then) for then in rulings)
    policy = RulePolicy(rules=rules, default=default)
    for arguments in ({"euros": "?"}, {"euro": 5}, {}):
        assert await policy.evaluate(a_call(**arguments)) == said


async def test_search_ends_at_the_first_rule_that_holds() -> None:
    policy = RulePolicy(
        rules=(
            Rule(when=(DEAR,), then=Allow()),
            Rule(when=(Condition("to", "equals", "us"),), then=BIG),
        ),
        default=Deny("no"),
    )
    assert await policy.evaluate(a_call(euros="?", to="us")) == BIG
    assert await policy.evaluate(a_call(euros=500, to="us")) == Allow()
    assert await policy.evaluate(a_call(euros=5, to="us")) == BIG
    assert await policy.evaluate(a_call(euros="?", to="them")) == Deny("no")


def test_all_conditions_of_a_rule_count() -> None:
    rule = Rule(when=(DEAR, Condition("to", "equals", "us")), then=Deny())
    assert rule.matches(a_call(euros=500, to="us"))
    assert not rule.matches(a_call(euros="?", to="them"))


def test_rule_is_about_tools_and_tags() -> None:
    rule = Rule(tool="db_*", tags=("write",), then=Deny())
    assert rule.matches(a_call("db_drop", tags=("write", "slow")))
    assert not rule.matches(a_call("db_drop"))
    assert not rule.matches(a_call("DB_drop", tags=("write",)))


def test_rules_need_a_default_and_rulings() -> None:
    with pytest.raises(TypeError, match="default"):
        RulePolicy(rules=())  # type: ignore[call-arg]
    with pytest.raises(AgentConfigError, match="use a ruling"):
        Rule(then=True)  # type: ignore[arg-type]


def test_question_needs_a_kind_and_a_name() -> None:
    with pytest.raises(AgentConfigError, match="use approval or review"):
        Ask(kind="maybe")  # type: ignore[arg-type]
    with pytest.raises(AgentConfigError, match="needs a name"):
        Ask(rule="")


async def test_all_of_takes_the_strictest() -> None:
    asks = Says(Ask(rule="r"))
    assert await all_of(Says(Allow()), asks).evaluate(a_call()) == Ask(rule="r")
    assert await all_of(asks, Says(Deny("no"))).evaluate(a_call()) == Deny("no")
    assert await all_of(Says(Allow())).evaluate(a_call()) == Allow()
    assert isinstance(await all_of(Says("?")).evaluate(a_call()), Deny)


async def test_first_of_stops_where_somebody_objects() -> None:
    last = Says(Deny("no"))
    assert await first_of(Says(Allow()), Says(Ask(rule="r")), last).evaluate(a_call()) == Ask(
        rule="r"
    )
    assert last.calls == []
    assert await first_of(Says(Allow()), Says(Allow())).evaluate(a_call()) == Allow()


@pytest.mark.parametrize("combine", [all_of, first_of])
def test_combination_of_nothing_is_a_mistake(combine: object) -> None:
    with pytest.raises(AgentConfigError, match="at least one"):
        combine()  # type: ignore[operator]


def test_several_questions_become_one() -> None:
    ask = Ask(
        kind="review",
        rule="a",
        approvers=("U1", "U2"),
        expires_in=timedelta(hours=2),
        escalate_in=timedelta(minutes=40),
        backups=("U8", "U9"),
        reason="dear",
    )
    other = Ask(
        kind="approval",
        rule="b",
        title="Pay",
        approvers=("U2", "U3"),
        expires_in=timedelta(hours=1),
        remind_in=timedelta(minutes=5),
        escalate_in=timedelta(minutes=30),
        backups=("U9", "U7"),
        reason="risky",
    )
    assert strictest([ask, Allow(), other]) == Ask(
        kind="approval",
        rule="a + b",
        title="Pay",
        reason="dear; risky",
        approvers=("U2",),
        expires_in=timedelta(hours=1),
        remind_in=timedelta(minutes=5),
        escalate_in=timedelta(minutes=30),
        backups=("U9",),
        asks=(ask, other),
    )
    assert strictest([Ask(rule="a", kind="review"), Ask(rule="a", kind="review")]) == Ask(
        rule="a", kind="review"
    )


def test_nested_combinations_keep_each_ruling_that_asks() -> None:
    first, two, three = (Ask(rule=name, approvers=(name,)) for name in ("a", "b", "c"))
    assert strictest([strictest([first, two]), three]) == strictest([first, two, three])


def test_all_denials_are_told() -> None:
    denial, other = Deny("no", rule="a"), Deny("never", rule="b", failed=True)
    assert strictest([denial, Ask(), other]) == Deny("no; never", rule="a + b")


def test_i1_the_backup_people_of_one_rule_are_strangers_to_another() -> None:
    strict, loose = Ask(rule="a", approvers=("U1",)), Ask(rule="b", backups=("U9", "U1"))
    merged = strictest([strict, loose])
    assert isinstance(merged, Ask)
    assert (merged.approvers, merged.backups) == (("U1",), ("U1",))
    knows_them = Ask(rule="a", approvers=("U1",), backups=("U9",))
    merged = strictest([knows_them, Ask(rule="b", approvers=("U1", "U9"))])
    assert isinstance(merged, Ask)
    assert (merged.approvers, merged.backups) == (("U1",), ("U9",))


def test_questions_with_different_backup_people_deny() -> None:
    asks = Ask(rule="a", backups=("U1",)), Ask(rule="b", backups=("U2",))
    assert strictest(asks) == Deny("the rules a and b name different backup people", asks=asks)
    asks = Ask(rule="a", backups=("U1",)), Ask(rule="b")
    assert strictest(asks) == Ask(rule="a + b", backups=("U1",), asks=asks)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RulePolicy(rules=(Rule(tool="a", then=Ask()),), default=Ask()),
        lambda: RulePolicy(
            rules=(Rule(tool="a", then=Ask(rule="r")), Rule(tool="b", then=Ask(rule="r"))),
            default=Allow(),
        ),
        lambda: all_of(RULES, RulePolicy(rules=(), default=Ask(rule="dear"))),
        lambda: first_of(RULES, all_of(RULES)),
    ],
)
def test_f1_two_rules_of_one_policy_have_two_names(make: Callable[[], Policy]) -> None:
    with pytest.raises(AgentConfigError, match=r"two rules .* ask by the name .*Ask\(rule=…\)"):
        make()


async def test_f1_strictest_denies_two_rules_of_one_name() -> None:
    ask, other = Ask(rule="r", approvers=("UADA",)), Ask(rule="r", approvers=("UADA", "UBEN"))
    assert strictest([ask, ask]) == ask
    assert strictest([ask, other]) == Deny("several rules that ask share a name: r and r")


def known(name: str, schema: Mapping[str, Json], tags: tuple[str, ...] = ()) -> ToolSpec:
    return ToolSpec(name=name, description="", schema=schema, tags=tags)


ITEM: dict[str, Json] = {"type": "object", "properties": {"price": {"type": "number"}}}
SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "euros": {"type": "number"},
        "note": {"anyOf": [{"$ref": "#/$defs/Note"}, {"type": "null"}]},
        "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "pair": {"type": "array", "prefixItems": [ITEM, {"type": "string"}]},
        "labels": {"type": "object", "additionalProperties": ITEM},
        "free": {"type": "object"},
        "any": True,
        "list": {"type": "array"},
        "lost": {"$ref": "#/$defs/Nobody"},
    },
    "additionalProperties": False,
    "$defs": {"Item": ITEM, "Note": {"type": "object", "properties": {"text": {}}}},
}


@pytest.mark.parametrize(
    ("path", "exists"),
    [
        ("euros", True),
        ("euro", False),
        ("euros.cents", False),
        ("note.text", True),
        ("note.txt", False),
        ("items.*.price", True),
        ("items.0.price", True),
        ("items.*.prize", False),
        ("items.price", False),
        ("pair.0.price", True),
        ("pair.0.prize", False),
        ("labels.red.price", True),
        ("labels.red.prize", False),
        ("free.what.ever", True),
        ("any.thing", True),
        ("list.0.what", True),
        ("lost.text", False),
    ],
)
def test_f11_misspelled_argument_is_a_mistake(path: str, exists: bool) -> None:
    policy = RulePolicy(
        rules=(Rule(when=(Condition(path, "equals", 1),), then=Deny()),), default=Deny()
    )
    tool = known("pay", SCHEMA)
    for variant in (policy, all_of(policy), first_of(policy)):
        if exists:
            check_tool(variant, tool)
        else:
            with pytest.raises(AgentConfigError, match="has no such argument; its arguments are"):
                check_tool(variant, tool)


def test_f11_arguments_are_those_of_each_tool_that_a_rule_is_about() -> None:
    check_tool(RULES, known("pay", SCHEMA, ("money",)))
    check_tool(RULES, known("look", {}))
    check_tool(Says(Allow()), known("look", {}))
    with pytest.raises(AgentConfigError, match="the tag 'money', and the tool does not have it"):
        check_tool(RULES, known("pay", SCHEMA, ("mony",)))
    with pytest.raises(AgentConfigError, match="its arguments are: none"):
        check_tool(RULES, known("pay", {"properties": {}}, ("money",)))


def test_f11_misspelled_tag_is_a_mistake() -> None:
    for policy in (RULES, all_of(RULES), first_of(RULES)):
        check_tags(policy, ["money", "slow"])
        with pytest.raises(AgentConfigError, match="the tag 'money', and no tool has it"):
            check_tags(policy, ["mony"])
    check_tags(Says(Allow()), [])
