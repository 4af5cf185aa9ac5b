"""Quiet hours and working time, also where clocks are changed."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from bot.policy.hours import add_working, is_quiet, quiet_end
from bot.records.terms import QuietHours
from tests.unit.bot.policy.times import HOUR_MS, MINUTE_MS, at, local

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EVERY_MINUTE = st.integers(0, 24 * 60 - 1).map(lambda minute: f"{minute // 60:02}:{minute % 60:02}")
MOMENTS = st.sampled_from(["2027-03-26T00:00", "2027-10-29T00:00", "2027-01-13T00:00"]).flatmap(
    lambda day: st.integers(0, 5 * 24 * 60).map(lambda minutes: at(day) + minutes * MINUTE_MS)
)


def hours(start: str = "20:00", until: str = "08:00", *days: str) -> QuietHours:
    return QuietHours(start=start, until=until, days=days, timezone="Europe/Berlin")


NIGHTS = hours("20:00", "08:00", "sat", "sun")
QUIET = st.builds(
    lambda start, until, days: hours(start, until, *days),
    EVERY_MINUTE,
    EVERY_MINUTE,
    st.sets(st.sampled_from(DAYS), max_size=6),
).filter(lambda window: window.start != window.until)


@pytest.mark.parametrize(
    ("moment", "end"),
    [
        ("2026-11-23T19:59", "2026-11-23T19:59"),  # a Monday
        ("2026-11-23T20:00", "2026-11-24T08:00"),
        ("2026-11-24T07:59", "2026-11-24T08:00"),
        ("2026-11-24T08:00", "2026-11-24T08:00"),
        ("2026-11-27T20:00", "2026-11-30T08:00"),  # Friday: a night, two days, a night
        ("2026-11-29T12:00", "2026-11-30T08:00"),
        ("2027-03-27T23:00", "2027-03-29T08:00"),  # clocks are changed meanwhile
    ],
)
def test_quiet_hours_end(moment: str, end: str) -> None:
    assert local(quiet_end(NIGHTS, at(moment))) == end
    assert is_quiet(NIGHTS, at(moment)) == (moment != end)


def test_a_span_within_a_day_is_of_that_day() -> None:
    lunch = hours("12:00", "13:00")
    assert local(quiet_end(lunch, at("2026-11-23T12:30"))) == "2026-11-23T13:00"
    assert not is_quiet(lunch, at("2026-11-23T23:00"))


def test_only_whole_days_may_be_quiet() -> None:
    weekend = hours("", "", "sat", "sun")
    assert local(quiet_end(weekend, at("2026-11-28T00:00"))) == "2026-11-30T00:00"
    assert not is_quiet(weekend, at("2026-11-27T23:59"))


def test_quiet_hours_need_not_end() -> None:
    always = hours("", "", *DAYS)
    now = at("2026-11-23T12:00")
    assert (quiet_end(always, now), add_working(always, now, 1)) == (None, None)


def test_the_longest_finite_quiet_ends() -> None:
    one_hour = hours("01:00", "00:00", "mon", "tue", "wed", "thu", "fri", "sat")
    assert local(quiet_end(one_hour, at("2026-11-22T01:00"))) == "2026-11-29T00:00"


@pytest.mark.parametrize(
    ("span", "end"),
    [
        (15, "2026-11-23T19:45"),
        (30, "2026-11-23T20:00"),
        (45, "2026-11-24T08:15"),
        (8 * 60, "2026-11-24T15:30"),
        (4 * 12 * 60 + 30, "2026-11-27T20:00"),
        (4 * 12 * 60 + 31, "2026-11-30T08:01"),  # on Monday
    ],
)
def test_working_time_is_outside_of_quiet_hours(span: int, end: str) -> None:
    assert local(add_working(NIGHTS, at("2026-11-23T19:30"), span * MINUTE_MS)) == end


@pytest.mark.parametrize(
    ("day", "later", "passed"), [("2027-03-28", "03:00", 2), ("2027-10-31", "02:00", 4)]
)
def test_the_hour_that_is_left_out_or_repeated_counts_as_it_passes(
    day: str, later: str, passed: int
) -> None:
    quiet = hours("04:00", "23:00")
    start = at(f"{day}T01:00")
    assert add_working(quiet, start, HOUR_MS) == at(f"{day}T{later}")
    assert add_working(quiet, start, passed * HOUR_MS) == at(f"{day}T04:00")


def test_a_span_within_the_hour_that_is_left_out_is_none() -> None:
    quiet = hours("02:10", "02:50")
    assert not is_quiet(quiet, at("2027-03-28T03:00"))
    assert is_quiet(quiet, at("2027-03-27T02:30"))


@given(QUIET, MOMENTS, st.integers(1, 12 * 60))
def test_working_time_counts_the_minutes_outside_of_quiet_hours(
    quiet: QuietHours, now: int, minutes: int
) -> None:
    moment, left = now, minutes
    while left:
        left -= not is_quiet(quiet, moment)
        moment += MINUTE_MS
    assert add_working(quiet, now, minutes * MINUTE_MS) == moment


@given(QUIET, MOMENTS, st.integers(0, 24 * 60), st.integers(0, 24 * 60))
def test_two_spans_one_after_the_other_are_one(
    quiet: QuietHours, now: int, first: int, second: int
) -> None:
    middle = add_working(quiet, now, first * MINUTE_MS)
    assert middle is not None
    whole = add_working(quiet, now, (first + second) * MINUTE_MS)
    assert add_working(quiet, middle, second * MINUTE_MS) == whole


@given(QUIET, MOMENTS)
def test_it_is_quiet_until_its_end_and_not_then(quiet: QuietHours, now: int) -> None:
    end = quiet_end(quiet, now)
    assert end is not None
    assert not is_quiet(quiet, end)
    step = max((end - now) // 50, MINUTE_MS)
    assert all(is_quiet(quiet, moment) for moment in range(now, end, step))
