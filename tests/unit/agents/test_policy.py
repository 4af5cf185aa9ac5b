"""Policies: the first rule that matches, the strictest of several, and no by accident."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agents.address import Address
from agents.codec import Json
from agents.errors import AgentConfigError
from agents.points import Point
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
from agents.policy.rules import Operator
from agents.signals import Interrupted


def a_call(tool: str = "pay", *, tags: tuple[str, ...] = (), **arguments: Json) -> PolicyCall:
    return PolicyCall(tool=tool, arguments=arguments, tags=tags)


class Says:
    """A policy that always says the same, whatever that is, and counts."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked = 0

    async def evaluate(self, call: PolicyCall) -> Ruling:
        self.asked += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]


async def test_ruling_is_passed_on() -> None:
    assert await ruling_of(Says(Allow()), a_call()) == Allow()
    assert await ruling_of(Says(Deny("no")), a_call()) == Deny("no")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (True, "answered with bool"),
        (None, "answered with NoneType"),
        (Allow, "answered with type"),
        ("allow", "answered with str"),
        (ValueError("a secret"), "the policy failed (ValueError)"),
        (TimeoutError(), "the policy failed (TimeoutError)"),
        (Interrupted(Point(id="i", address=Address())), "tried to ask people itself"),
    ],
)
async def test_what_is_no_ruling_denies(answer: object, reason: str) -> None:
    ruling = await ruling_of(Says(answer), a_call())
    assert isinstance(ruling, Deny)
    assert reason in ruling.reason
    assert "secret" not in ruling.reason


async def test_slow_policy_denies() -> None:
    class Slow:
        async def evaluate(self, call: PolicyCall) -> Ruling:
            await asyncio.Event().wait()
            return Allow()

    ruling = await ruling_of(Slow(), a_call(), time_limit=0)
    assert ruling == Deny("the policy did not answer within 0 seconds")


async def test_policy_that_is_not_async_denies() -> None:
    class Plain:
        def evaluate(self, call: PolicyCall) -> Ruling:
            return Allow()

    assert await ruling_of(Plain(), a_call()) == Deny("the policy failed (TypeError)")  # type: ignore[arg-type]


async def test_cancelled_run_is_not_a_denial() -> None:
    with pytest.raises(asyncio.CancelledError):
        await ruling_of(Says(asyncio.CancelledError()), a_call())


async def test_allow_list() -> None:
    policy = AllowList(["read", "find"])
    assert await policy.evaluate(a_call("read")) == Allow()
    assert isinstance(await policy.evaluate(a_call("rea")), Deny)


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
        (("x", "equals", True), 1, False),
        (("x", "equals", 1), True, False),
        (("x", "equals", 100), "100.0", True),
        (("x", "equals", {"a": [1]}), {"a": [1]}, True),
        (("x", "not_equals", "prod"), "staging", True),
        (("x", "not_equals", "prod"), "prod", False),
        (("x", "in", ["a", "b"]), "b", True),
        (("x", "in", ["a", "b"]), "c", False),
        (("x", "not_in", ["a", "b"]), "c", True),
        (("x", "not_in", ["a", 1]), 1, False),
        (("x", ">", 100), 101, True),
        (("x", ">", 100), 100, False),
        (("x", ">=", 100), 100.0, True),
        (("x", "<", 0.5), "0.25", True),
        (("x", "<=", 5), 6, False),
        (("x", ">", 100), "many", None),
        (("x", ">", 100), None, None),
        (("x", ">", 100), True, None),
        (("x", ">", 100), "9" * 101, None),
        (("x", ">", 100), "NaN", None),
        (("x", ">", 100), 10**500, True),
        (("x", "matches", "a.*"), "a\nb", True),
        (("x", "matches", "a"), "ab", False),
        (("x", "matches", "a*"), "a" * 1001, None),
        (("x", "matches", "a*"), 5, None),
        (("x.y.0", "equals", "z"), {"y": ["z"]}, True),
        (("x.y.1", "equals", "z"), {"y": ["z"]}, False),
        (("x.y", "equals", "z"), "text", False),
        (("x.y", "not_equals", "z"), {}, None),
        (("x.y", "not_in", ["z"]), {}, None),
        (("x.*.to", "equals", "us"), [{"to": "us"}, {"to": "us"}], True),
        (("x.*.to", "equals", "us"), [{"to": "them"}], False),
        (("x.*.to", "equals", "us"), [{"to": "us"}, {"to": "them"}], None),
        (("x.*", "equals", "us"), [], False),
        (("x.*.*", "equals", 1), [[1], [1, 1]], True),
        (("x.*.*", "equals", 1), [[1], [1, 2]], None),
        (("x.*", ">", 1), [2, "?"], None),
    ],
)
def test_condition(condition: tuple[str, Operator, Json], value: Json, holds: bool | None) -> None:
    assert Condition(*condition).holds({"x": value}) is holds


@pytest.mark.parametrize(
    ("path", "operator", "value", "fault"),
    [
        ("", "equals", 1, "empty part"),
        ("a..b", "equals", 1, "empty part"),
        ("a", "in", "abc", "take a list"),
        ("a", "not_in", None, "take a list"),
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


DEAR = Condition("euros", ">", 100)


@pytest.mark.parametrize(
    ("then", "euros", "matches"),
    [
        (Deny(), 101, True),
        (Deny(), "?", True),
        (Ask(), "?", True),
        (Allow(), 101, True),
        (Allow(), "?", False),
        (Deny(), 5, False),
    ],
)
def test_what_cannot_be_decided_never_allows(then: Ruling, euros: Json, matches: bool) -> None:
    assert Rule(when=(DEAR,), then=then).matches(a_call(euros=euros)) is matches


def test_all_conditions_of_a_rule_count() -> None:
    rule = Rule(when=(DEAR, Condition("to", "equals", "us")), then=Deny())
    assert rule.matches(a_call(euros=500, to="us"))
    assert not rule.matches(a_call(euros="?", to="them"))


def test_rule_is_about_tools_and_tags() -> None:
    rule = Rule(tool="db_*", tags=("write",), then=Deny())
    assert rule.matches(a_call("db_drop", tags=("write", "slow")))
    assert not rule.matches(a_call("db_drop"))
    assert not rule.matches(a_call("DB_drop", tags=("write",)))


async def test_first_rule_that_matches_counts() -> None:
    ask = Ask(rule="big payments", kind="review")
    policy = RulePolicy(
        rules=(
            Rule(tool="pay", when=(Condition("euros", ">", 5000),), then=Deny("too much")),
            Rule(tool="pay", when=(DEAR,), then=ask),
            Rule(tool="pay", then=Allow()),
        ),
        default=Deny("nobody has thought of it"),
    )
    assert await policy.evaluate(a_call(euros=9000)) == Deny("too much")
    assert await policy.evaluate(a_call(euros=900)) == ask
    assert await policy.evaluate(a_call(euros=9)) == Allow()
    assert await policy.evaluate(a_call("drop")) == Deny("nobody has thought of it")


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
    assert last.asked == 0
    assert await first_of(Says(Allow()), Says(Allow())).evaluate(a_call()) == Allow()


@pytest.mark.parametrize("combine", [all_of, first_of])
def test_combination_of_nothing_is_a_mistake(combine: object) -> None:
    with pytest.raises(AgentConfigError, match="at least one"):
        combine()  # type: ignore[operator]


def test_several_questions_become_one() -> None:
    one = Ask(
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
    assert strictest([one, Allow(), other]) == Ask(
        kind="approval",
        rule="a + b",
        title="Pay",
        reason="dear; risky",
        approvers=("U2",),
        expires_in=timedelta(hours=1),
        remind_in=timedelta(minutes=5),
        escalate_in=timedelta(minutes=30),
        backups=("U9",),
    )
    assert strictest([Ask(rule="a", kind="review"), Ask(rule="a", kind="review")]) == Ask(
        rule="a", kind="review"
    )


def test_questions_to_different_people_deny() -> None:
    ruling = strictest([Ask(rule="a", approvers=("U1",)), Ask(rule="b", approvers=("U2",))])
    assert ruling == Deny("the rules a and b ask different people")


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
    ruling = strictest([Ask(rule="a", backups=("U1",)), Ask(rule="b", backups=("U2",))])
    assert ruling == Deny("the rules a and b name different backup people")
    assert strictest([Ask(rule="a", backups=("U1",)), Ask(rule="a")]) == Ask(
        rule="a", backups=("U1",)
    )
