"""Standing grants, as far as rules say: their limits, and what a call must share (6.5)."""

from __future__ import annotations

from copy import deepcopy

import pytest

from agents.core.codec import Json
from agents.core.digest import canonical_json
from bot.approvals.grants import is_within
from bot.policy.grants import fixed_part, limits_of
from bot.records.approval import GrantRequest
from bot.records.terms import GrantTerms, Group, Requirement, Risk, Stage, Terms

LIMITS = GrantTerms(max_time_s=7_200, max_uses=5, vary=("host",))


def terms(*counts: int, always_ask: bool = False, limits: GrantTerms | None = LIMITS) -> Terms:
    stages = tuple(
        Stage(approve=(Requirement(name=f"r{n}", groups=("sre",), count=count),))
        for n, count in enumerate(counts)
    )
    return Terms(
        rules=("default",),
        stages=stages,
        groups={"sre": Group(users=("U0ADA",))},
        grants=limits,
        always_ask=always_ask,
    )


def test_a_grant_is_for_calls_that_one_person_decides() -> None:
    assert limits_of(terms(1)) == LIMITS
    assert limits_of(terms(2)) is None
    assert limits_of(terms(1, 1)) is None
    assert limits_of(terms(1, always_ask=True)) is None
    assert limits_of(terms(1, limits=None)) is None


@pytest.mark.parametrize("risk", ["high", "critical"])
def test_what_has_a_high_risk_has_no_grants(risk: Risk) -> None:
    assert limits_of(terms(1).model_copy(update={"risk": risk})) is None


@pytest.mark.parametrize(
    ("for_s", "uses", "expected"),
    [
        (7_200, 5, True),
        (1, 1, True),
        (7_201, 5, False),
        (60, 6, False),
        (0, 1, False),
        (1, 0, False),
    ],
)
def test_nobody_allows_more_than_the_rule(for_s: int, uses: int, expected: bool) -> None:
    assert is_within(GrantRequest(for_s=for_s, uses=uses), LIMITS) is expected


@pytest.mark.parametrize(
    ("vary", "left", "other", "is_same"),
    [
        (("host",), {"host": "a"}, {"host": "b"}, True),
        (("host",), {"host": "a"}, {}, True),
        (("host",), {"host": "a", "force": False}, {"host": "b", "force": True}, False),
        (("host",), {"host": "a"}, {"host": "a", "force": False}, False),
        ((), {"host": "a"}, {"host": "b"}, False),
        (("to.host",), {"to": {"host": "a", "zone": 1}}, {"to": {"host": "b", "zone": 1}}, True),
        (("to.host",), {"to": {"host": "a", "zone": 1}}, {"to": {"host": "a", "zone": 2}}, False),
        (("to.host",), {"to": {"host": "a"}}, {"to": "a"}, False),
        (("on.*.host",), {"on": [{"host": "a"}, {}]}, {"on": [{}, {"host": "b"}]}, True),
        (("on.*.host",), {"on": [{"host": "a"}]}, {"on": [{"host": "a"}, {"host": "a"}]}, False),
        (("on.0",), {"on": ["a", "b"]}, {"on": ["c", "b"]}, True),
        (("on.0",), {"on": ["a", "b"]}, {"on": ["a", "c"]}, False),
        (("on.7",), {"on": ["a"]}, {"on": ["b"]}, False),
        (("x",), {"x": 1, "y": 1}, {"x": 2, "y": True}, False),
    ],
)
def test_a_call_shares_all_arguments_but_those_that_may_vary(
    vary: tuple[str, ...], left: dict[str, Json], other: dict[str, Json], is_same: bool
) -> None:
    before = deepcopy(left)
    first, second = (canonical_json(fixed_part(each, vary)) for each in (left, other))
    assert (first == second) is is_same
    assert left == before
