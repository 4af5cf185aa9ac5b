"""The ladder: what is due when, and as one message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import given, strategies as st

from bot.policy.escalation import (
    Due,
    EscalationState,
    Notice,
    begin,
    deadline,
    due,
    next_moment,
    tells_nobody,
)
from bot.policy.hours import is_quiet
from bot.records.approval import CLAIM_MS
from bot.records.terms import Escalation, QuietHours, Rotation, Terms
from tests.unit.bot.policy.times import HOUR_MS, MINUTE_MS, at, local
from tests.unit.bot.policy.voting import terms

NIGHTS = QuietHours(start="20:00", until="08:00", days=("sat", "sun"), timezone="Europe/Berlin")
STEPS = tuple(
    Escalation(after_s=hours * 3_600, add=(group,), requirements=("sre",))
    for hours, group in ((1, "leads"), (2, "oncall"))
)
ONCALL = Rotation.model_validate(
    {
        "start": "2026-11-02T09:00",
        "every": "1w",
        "people": ["ADA", "BEN"],
        "timezone": "Europe/Berlin",
    }
)


def worked(**changes: object) -> Terms:
    """The terms of the worked timeline of the specification."""
    base: dict[str, object] = {"remind_times": 2, "escalate": STEPS, "quiet": NIGHTS}
    return terms(**{**base, **changes})


@dataclass
class Day:
    """A request that waits, and all that its ladder does."""

    rules: Terms
    state: EscalationState

    def play(self, until_ms: int) -> Iterator[tuple[int, Due]]:
        """Do what is due at each moment up to one; the deadline is the last."""
        now_ms = self.state.since_ms
        while (moment := next_moment(self.rules, self.state, now_ms)) <= until_ms:
            now_ms = max(moment, now_ms)
            result = due(self.rules, self.state, now_ms)
            yield now_ms, result
            if result.expires:
                return
            assert result.is_any
            self.state = result.state

    def messages(self, until: str) -> list[str]:
        """Each message, and the end: its local time and kind, with the steps that it tells."""
        return [
            f"{local(now_ms)[11:]} {words(result)}"
            for now_ms, result in self.play(at(until))
            if result.notice is not None or result.expires
        ]

    def rights(self, until: str) -> list[str]:
        """When each step begins."""
        return [
            local(now_ms)[11:]
            for now_ms, result in self.play(at(until))
            for _ in range(result.begun)
        ]


def words(result: Due) -> str:
    if result.expires or result.notice is None:
        return "expired"
    steps = "".join(f" {number}" for number in result.tells)
    return result.notice.value + steps


def day(asked: str, **changes: object) -> Day:
    rules = worked(**changes)
    return Day(rules, begin(rules, at(asked)))


def test_quiet_hours_that_outlast_the_deadline_are_said_at_once() -> None:
    late = day("2026-11-23T23:00")
    assert tells_nobody(late.rules, late.state)
    assert late.rights("2026-11-24T06:59") == ["00:00", "01:00"]
    assert late.messages("2026-11-24T09:00") == ["07:00 expired"]
    early = day("2026-11-24T05:00")
    assert not tells_nobody(early.rules, early.state)
    assert not tells_nobody(early.rules, day("2026-11-23T10:00").state)


def test_nothing_is_reminded_where_it_is_off() -> None:
    assert day("2026-11-23T10:00", remind_s=0, escalate=()).messages("2026-11-24T10:00") == [
        "18:00 expired"
    ]
    silent = day("2026-11-23T10:00", mention=False)
    assert silent.messages("2026-11-24T10:00") == ["18:00 expired"]
    assert day("2026-11-23T10:00", mention=False).rights("2026-11-24T10:00") == ["11:00", "12:00"]


def test_the_deadline_swallows_everything() -> None:
    waiting = day("2026-11-23T10:00", remind_times=1, expires_s=900, escalate=())
    assert waiting.messages("2026-11-24T10:00") == ["10:15 expired"]
    late = due(waiting.rules, waiting.state, at("2026-11-24T10:00"))
    assert (late.expires, late.notice, late.begun) == (True, None, 0)


def test_while_frozen_rights_begin_on_time_and_messages_wait() -> None:
    waiting = day("2026-11-23T10:00")
    waiting.state = replace(waiting.state, is_frozen=True)
    assert waiting.rights("2026-11-23T13:00") == ["11:00", "12:00"]
    assert waiting.messages("2026-11-24T10:00")[:-1] == []
    after = replace(waiting.state, is_frozen=False)
    result = due(waiting.rules, after, at("2026-11-23T13:00"))
    assert (result.notice, result.tells, result.begun) == (Notice.ESCALATION, range(2), 0)


def test_working_time_that_never_comes_expires_all_the_same() -> None:
    always = QuietHours(days=("mon", "tue", "wed", "thu", "fri", "sat", "sun"), timezone="UTC")
    rules = worked(quiet=always, clock="working")
    assert deadline(rules, 1_000) == 1_000 + 8 * HOUR_MS
    state = begin(rules, 1_000)
    assert tells_nobody(rules, state)
    assert next_moment(rules, state, 1_000) == state.deadline_ms


TERMS = st.builds(
    lambda remind, times, steps, expires, clock, urgent, quiet: terms(
        remind_s=remind * 60,
        remind_times=times,
        escalate=tuple(
            Escalation(after_s=after * 60, add=("leads",), requirements=("sre",))
            for after in sorted(steps)
        ),
        expires_s=expires * 60,
        clock=clock,
        urgent=urgent,
        quiet=NIGHTS if quiet else None,
    ),
    st.integers(0, 200),
    st.integers(1, 6),
    st.sets(st.integers(1, 1_000), max_size=4),
    st.integers(1, 3_000),
    st.sampled_from(["wall", "working"]),
    st.booleans(),
    st.booleans(),
)
ASKED = st.integers(0, 7 * 24 * 60).map(
    lambda minutes: at("2026-11-20T00:00") + minutes * MINUTE_MS
)


@given(TERMS, ASKED, st.integers(0, 500), st.integers(0, 2_000), st.booleans())
def test_each_ladder_keeps_its_rules(
    rules: Terms, asked: int, claim: int, snooze: int, on_duty: bool
) -> None:
    """At most one message at a moment, none in quiet hours or from the deadline on; it ends."""
    state = replace(
        begin(rules, asked),
        claimed_ms=asked + claim * MINUTE_MS,
        claim_until_ms=asked + claim * MINUTE_MS + CLAIM_MS,
        snoozes={"MIA": asked + snooze * MINUTE_MS},
        duties=(ONCALL,) if on_duty else (),
    )
    start = state
    results = list(Day(rules, state).play(state.deadline_ms))
    moments = [now for now, _ in results]
    assert moments == sorted(set(moments))
    assert [due_now.expires for _, due_now in results].index(True) == len(results) - 1
    assert moments[-1] == state.deadline_ms
    for now, step in results[:-1]:
        assert now < state.deadline_ms
        if step.notice is not None:
            assert rules.urgent or not is_quiet(rules.quiet, now)
        if step.notice in {Notice.REMINDER, Notice.ESCALATION}:
            assert not start.claimed_ms <= now < start.claim_until_ms
    last = results[-1][1].state
    assert last.notified_steps <= last.steps <= len(rules.escalate)
    assert last.reminders <= rules.remind_times
    assert sum(len(due_now.tells) for _, due_now in results) == last.notified_steps


@given(TERMS, ASKED)
def test_a_ladder_does_not_depend_on_how_often_one_looks(rules: Terms, asked: int) -> None:
    state = begin(rules, asked)
    for minute in range(0, 600, 37):
        now_ms = asked + minute * MINUTE_MS
        result = due(rules, state, now_ms)
        if result.expires:
            return
        again = due(rules, result.state, now_ms)
        assert not again.is_any
        assert next_moment(rules, result.state, now_ms) > now_ms
