"""I13 over random messages, edits, withdrawals, people and times: the right people agree.

No call runs unless its final arguments' rule was satisfied by the people whom it demands, none of
whom asked for it. What nobody can decide asks nobody.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bot.records.approval import Status
from tests.property.worlds.crowd import ADA, BEN, FATES, PEOPLE, ROSA, Crowd
from tests.support.halves import first

WRITERS = (ROSA, ROSA, BEN, *PEOPLE)
CHOICES = ("approve", "approve", "edit", "reject", "withdraw")
people = st.sampled_from(PEOPLE)


class RightPeople(RuleBasedStateMachine):
    """Whatever people do, and whatever becomes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.crowd = Crowd()

    @rule(who=st.sampled_from(WRITERS), kind=st.sampled_from(("pay", "pay", "ask")))
    def somebody_asks_for_something(self, who: str, kind: str) -> None:
        self.crowd.ask_for(who, kind)

    @rule(who=people)
    def somebody_writes(self, who: str) -> None:
        self.crowd.write(who, "it is fine")

    @rule(who=people, which=st.integers(0, 3), choice=st.sampled_from(CHOICES))
    def somebody_decides(self, who: str, which: int, choice: str) -> None:
        self.crowd.decide(who, which, choice)

    @rule(who=people, what=st.sampled_from(FATES))
    def something_becomes_of_somebody(self, who: str, what: str) -> None:
        self.crowd.befalls(who, what)

    @rule(who=people, what=st.sampled_from(FATES), which=st.integers(0, 3))
    def something_becomes_of_somebody_who_clicks(self, who: str, what: str, which: int) -> None:
        self.crowd.befalls(who, what)
        self.crowd.decide(who, which, "approve")

    @rule(minutes=st.sampled_from((1, 16, 31, 500)))
    def time_passes(self, minutes: int) -> None:
        self.crowd.passes(minutes)

    @invariant()
    def the_right_people_agreed(self) -> None:
        check(self.crowd)

    def teardown(self) -> None:
        self.crowd.close()


def check(crowd: Crowd) -> None:
    """What must be true at any time."""
    assert crowd.faults == []
    for yes in crowd.agreed:
        assert yes.is_entitled, f"{yes} was taken"
    for approval_id in crowd.stopped:
        stored = crowd.loop.run(crowd.storage.approvals.get(approval_id))
        assert stored.status in {Status.REJECTED, Status.WITHDRAWN}


RightPeople.TestCase.settings = settings(
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestRightPeople = RightPeople.TestCase


@pytest.mark.parametrize("seed", first(3, range(10)))
def test_i13_in_any_long_history(seed: int) -> None:
    crowd, random = Crowd(), Random(seed)  # noqa: S311 - not for secrets
    try:
        for _ in range(60):
            who, luck = random.choice(PEOPLE), random.random()
            if luck < 0.3:
                crowd.ask_for(random.choice(WRITERS), random.choice(("pay", "pay", "ask")))
            elif luck < 0.75:
                crowd.decide(who, random.randrange(4), random.choice(CHOICES))
            elif luck < 0.9:
                crowd.befalls(who, random.choice(FATES))
                if luck < 0.85:
                    crowd.decide(who, random.randrange(4), "approve")
            else:
                crowd.passes(random.choice((1, 16, 31)))
            check(crowd)
    finally:
        crowd.close()


def test_i13_what_people_may_do_is_done() -> None:
    """Who is entitled gets through: the histories above would else prove nothing."""
    crowd = Crowd()
    try:
        crowd.ask_for(ROSA, "pay")
        crowd.decide(ROSA, 0, "approve")
        assert crowd.agreed == []
        crowd.decide(ADA, 0, "edit")  # larger: the treasury has to agree
        assert crowd.agreed == []
        crowd.decide(BEN, 0, "approve")
        assert crowd.agreed == []
        crowd.decide("UCLEO", 0, "approve")
        assert [(agreement.by, agreement.is_entitled) for agreement in crowd.agreed] == [
            ("UCLEO", True)
        ]
        check(crowd)
    finally:
        crowd.close()
