"""Random histories of one thread: people, two bots, crashes, a lame Slack, and the time.

Whatever happens, in whatever order: nothing gated runs without a decision of somebody who may
decide, nothing runs twice unless a person says so, a decision is made once and stays, and in the
end everything is at rest and every card shows its record.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bot.records.approval import Status
from tests.property.worlds.histories import ACTS, FATES, PACES, THEN, WHO, History
from tests.support.halves import first
from tests.unit.bot.office import ADA, ROSA

bots = st.sampled_from([0, 0, 1])
paces = st.sampled_from(PACES)


class ApprovalMachine(RuleBasedStateMachine):
    """Histories that hypothesis makes, and makes as short as it can when they end badly."""

    def __init__(self) -> None:
        super().__init__()
        self.history = History()

    @rule(
        what=st.sampled_from(ACTS),
        bot=bots,
        who=st.sampled_from(WHO),
        which=st.integers(0, 5),
        pace=paces,
        then=st.sampled_from(THEN),
    )
    def somebody_acts(
        self, what: str, bot: int, who: str, which: int, *, pace: str, then: str
    ) -> None:
        self.history.somebody_acts(what, bot, who, which, pace=pace, then=then)

    @rule(
        what=st.sampled_from(FATES),
        bot=bots,
        picks=st.lists(st.integers(0, 5), min_size=1, max_size=12),
        pace=paces,
    )
    def something_happens(self, what: str, bot: int, picks: list[int], pace: str) -> None:
        self.history.something_happens(what, bot, picks, pace)

    @invariant()
    def everything_is_as_it_must_be(self) -> None:
        self.history.check()

    def teardown(self) -> None:
        self.history.end()


ApprovalMachine.TestCase.settings = settings(
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestApprovals = ApprovalMachine.TestCase


@pytest.mark.parametrize("can_sleep", [False, True], ids=["awake", "asleep"])
@pytest.mark.parametrize("seed", first(1, range(15)))
def test_i1_i3_i4_i5_i8_any_history(seed: int, can_sleep: bool) -> None:
    """Histories that are long, and not like each other."""
    history, random = History(can_sleep=can_sleep), Random(seed)  # noqa: S311 - not for secrets
    try:
        for _ in range(40):
            bot, pace = random.choice([0, 0, 1]), random.choice(PACES)
            if random.random() < 0.6:
                who, which = random.choice(WHO), random.randrange(6)
                then = random.choice(THEN)
                history.somebody_acts(random.choice(ACTS), bot, who, which, pace=pace, then=then)
            else:
                picks = [random.randrange(6) for _ in range(random.randint(1, 12))]
                history.something_happens(random.choice(FATES), bot, picks, pace)
            history.check()
    finally:
        history.end()


def test_i4_a_message_that_comes_while_a_turn_begins_twice() -> None:
    history = History()
    history.somebody_acts("ask", 0, ROSA, 0, pace="checkpoints", then="sleep")
    history.somebody_acts("ask", 1, ROSA, 0, pace="checkpoints", then="go on")
    steps = [[name for name, _ in bot.waiting] for bot in history.bots]
    goes_on(history, 0)
    goes_on(history, 1)
    history.end()
    assert steps == [["checkpoints.save"], ["checkpoints.save"]]


def test_i4_a_message_that_nobody_lived_to_acknowledge_comes_again() -> None:
    history = History()
    history.somebody_acts("ask", 0, ROSA, 0, pace="", then="go on")
    history.check()
    history.somebody_acts("decide", 0, ADA, 0, pace="", then="go on")
    history.somebody_acts("ask", 0, ROSA, 0, pace="threads", then="die")
    history.check()
    history.end()
    asked = {approval.arguments["ref"] for approval in history.all}
    assert (asked, len(history.all)) == ({"job-1", "job-2"}, 2)


def test_i6_a_turn_that_ends_twice_leaves_the_next_one_alone() -> None:
    history = History()
    history.somebody_acts("ask", 0, ROSA, 0, pace="", then="go on")
    history.check()
    history.somebody_acts("decide", 0, ADA, 0, pace="stream", then="sleep")
    history.something_happens("tick", 1, [0], "")
    history.somebody_acts("ask", 1, ROSA, 0, pace="", then="go on")
    goes_on(history, 0)
    history.end()


@pytest.mark.parametrize(("which", "amount"), [(2, 103), (5, 104)], ids=["Ben", "the backup"])
@pytest.mark.parametrize("seconds", [0, 120], ids=["at once", "after a crash"])
def test_i13_an_edit_after_the_escalation_is_the_approval_of_who_made_it(
    which: int, amount: int, seconds: int
) -> None:
    history = History()
    history.somebody_acts("ask", 0, ROSA, 0, pace="", then="go on")
    history.something_happens("wait", 0, [3], "")
    history.something_happens("tick", 0, [0], "")
    history.check()
    assert [approval.escalation.begun_ms for approval in history.all] == [history.world.clock()]
    pace, then = ("", "go on") if not seconds else ("threads", "die")
    history.somebody_acts("decide", 0, ADA, which, pace=pace, then=then)
    history.check()
    assert len(history.world.effects) == (not seconds)
    history.world.clock.forward(seconds=seconds)
    history.end()
    assert [effect.amount for effect in history.world.effects] == [amount]


def test_i2_a_decision_that_could_not_start_in_time_is_asked_anew() -> None:
    history = History()
    history.somebody_acts("ask", 0, ROSA, 0, pace="", then="go on")
    history.check()
    history.somebody_acts("decide", 0, ADA, 0, pace="threads", then="die")
    history.world.clock.forward(minutes=16)
    history.something_happens("tick", 0, [0], "")
    history.check()
    assert {approval.status for approval in history.all} == {Status.APPROVED, Status.PENDING}
    assert history.world.effects == []
    history.somebody_acts("decide", 0, ADA, 0, pace="", then="go on")
    history.end()
    assert len(history.world.effects) == 1


def goes_on(history: History, bot: int) -> None:
    """A bot does what it was kept from doing."""
    history.run(history.bots[bot].finish())
    history.check()
