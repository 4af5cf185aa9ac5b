"""Every approved call runs once, or people are asked about it, whichever processes die meanwhile.

Two bots share a database, and the clock of one is ahead. People ask for calls, alone and two in one
run, decide, take back, freeze and lift. The bots die or fall asleep at any step. In the end nothing
is frozen and two new bots catch up: `History.end` finds a call that was lost, ran twice, or waits
for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from agents.tools import call
from bot.approvals.due.worker import ApprovalWorker
from bot.threads import turns
from bot.threads.parked import ParkedThreads
from tests.property.worlds.histories import FREEZES, THEN, History
from tests.support.halves import first
from tests.support.sizes import size
from tests.unit.bot.office import ROSA

Step = Callable[[History], object]
BOTH, PAY, ROUNDS = 3, 0, 2
"""Jobs: two calls in one run, and a call alone."""
POINTS = (
    "",
    "",
    "switches",
    "checkpoints",
    "effect",
    "approvals",
    "threads.wake",
    "threads.release",
    "after an effect",
)
"""How far a bot goes on: to the end, or to a step of some kind."""
bots, points = st.sampled_from([0, 0, 1]), st.sampled_from(POINTS)


def ask(kind: int) -> Step:
    return lambda history: history.somebody_acts("ask", 0, ROSA, kind, pace="", then="go on")


def decide(bot: int, which: int, pace: str, then: str) -> Step:
    return lambda history: history.somebody_acts("decide", bot, "", which, pace=pace, then=then)


def withdraw(bot: int, which: int, pace: str) -> Step:
    return lambda history: history.somebody_acts(
        "withdraw", bot, ROSA, which, pace=pace, then="go on"
    )


def freeze(which: int) -> Step:
    return lambda history: history.somebody_freezes(which)


def lift(which: int) -> Step:
    return lambda history: history.somebody_lifts(which)


def happens(what: str, bot: int, picks: Sequence[int], pace: str) -> Step:
    return lambda history: history.something_happens(what, bot, picks, pace)


FATES = ("tick", "tick", "tick", "steps", "die", "sleep", "wait")
STEPS = st.one_of(
    st.builds(decide, bots, st.sampled_from([0, 3, 3, 1]), points, st.sampled_from(THEN)),
    st.builds(freeze, st.sampled_from(range(len(FREEZES)))),
    st.builds(lift, st.integers(0, 1)),
    st.builds(
        happens,
        st.sampled_from(FATES),
        bots,
        st.lists(st.integers(0, 3), min_size=1, max_size=4),
        points,
    ),
    st.builds(ask, st.sampled_from([BOTH, PAY])),
    st.builds(withdraw, bots, st.integers(0, 1), points),
)
LIVES = st.tuples(
    st.booleans(),  # whether they freeze before they decide
    st.lists(st.tuples(bots, points, st.sampled_from(THEN)), min_size=2, max_size=2),
    st.lists(STEPS, min_size=1, max_size=6),
)
FEW = settings(
    max_examples=size(5, 100),
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def live(life: tuple[bool, Sequence[tuple[int, str, str]], Sequence[Step]], skew_ms: int) -> None:
    """Play a life: two calls are decided, some steps, then all is lifted and caught up."""
    is_frozen, decisions, steps = life
    history = History(skew_ms=skew_ms)
    try:
        first = [freeze(0)] if is_frozen else []
        decided = [decide(bot, 0, pace, then) for bot, pace, then in decisions]
        for step in (ask(BOTH), *first, *decided, *steps):
            step(history)
            history.check()
        history.all_die()
        for _ in range(ROUNDS):
            catch_up(history)
    finally:
        history.end()


def catch_up(history: History) -> None:
    """Leases end, freezes too, the bots do what is due, and people decide what is left."""
    while history.somebody_lifts(0):
        pass
    for what in ("wait", "tick"):
        happens(what, 0, [0], "")(history)
    history.check()
    for _ in history.pending:
        decide(0, 0, "", "go on")(history)
        history.check()


@FEW
@given(life=LIVES, skew_ms=st.sampled_from([0, 2_000, -2_000]))
def test_i4_i5_each_approved_call_runs_once_or_people_are_asked(
    life: tuple[bool, Sequence[tuple[int, str, str]], Sequence[Step]], skew_ms: int
) -> None:
    live(life, skew_ms)


# ---- planted faults -----------------------------------------------------------------------------


def nothing_is_taken_up(patch: pytest.MonkeyPatch) -> None:
    """No thread goes on when a freeze is lifted."""

    async def unfrozen(_: ParkedThreads) -> list[str]:
        return []

    patch.setattr(ParkedThreads, "unfrozen", unfrozen)


def a_parked_call_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Its thread does not say which freeze it waits for."""
    patch.setattr(turns, "parked_by", lambda _: "")


def a_doubt_is_not_asked(patch: pytest.MonkeyPatch) -> None:
    """A call that was started runs again after a crash."""

    async def settle_doubt(*_: object) -> None:
        return None

    patch.setattr(call, "settle_doubt", settle_doubt)


def a_decision_tells_no_thread(patch: pytest.MonkeyPatch) -> None:
    """The process that decides wakes the thread; the approval's work does not repeat it."""

    async def tell_nobody(*_: object, **__: object) -> None:
        return None

    patch.setattr(ApprovalWorker, "tell_threads", tell_nobody)


PLANTED = [
    nothing_is_taken_up,
    a_parked_call_is_forgotten,
    a_doubt_is_not_asked,
    a_decision_tells_no_thread,
]


@pytest.mark.parametrize(
    "plant",
    first(2, PLANTED),
    ids=lambda plant: plant.__name__,
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    @settings(FEW, max_examples=100, phases=[Phase.generate], report_multiple_bugs=False)
    @given(life=LIVES)
    def lives(life: tuple[bool, Sequence[tuple[int, str, str]], Sequence[Step]]) -> None:
        live(life, 0)

    with pytest.raises(AssertionError):
        lives()
