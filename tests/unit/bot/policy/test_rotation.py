"""Who is on duty when, also where clocks are changed."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime

import pytest

from bot.policy.hours import to_ms, zone_of
from bot.policy.rotation import next_handover, on_duty
from bot.records.terms import Rotation, TermsError
from tests.unit.bot.policy.times import HOUR_MS, MINUTE_MS, at, local


def rotation(
    start: str = "2026-11-02T09:00",
    every: str = "1w",
    people: tuple[str, ...] = ("ADA", "BEN"),
    overrides: tuple[tuple[str, str, str], ...] = (),
    zone: str = "Europe/Berlin",
) -> Rotation:
    rows = [{"start": first, "until": last, "user": who} for first, last, who in overrides]
    return Rotation.model_validate(
        {"start": start, "every": every, "people": people, "overrides": rows, "timezone": zone}
    )


@pytest.mark.parametrize(
    ("moment", "user"),
    [
        ("2026-11-02T08:59", None),
        ("2026-11-02T09:00", "ADA"),
        ("2026-11-09T08:59", "ADA"),
        ("2026-11-09T09:00", "BEN"),
        ("2026-11-16T09:00", "ADA"),
        ("2027-07-05T08:59", "ADA"),  # in summer, by the same local time
        ("2027-07-05T09:00", "BEN"),
    ],
)
def test_people_take_turns_at_the_same_local_time(moment: str, user: str | None) -> None:
    assert on_duty(rotation(), at(moment)) == user


def test_a_turn_of_days_is_a_local_day() -> None:
    duty = rotation("2027-03-27T12:00", "1d")
    assert on_duty(duty, at("2027-03-28T11:59")) == "ADA"
    assert on_duty(duty, at("2027-03-28T12:00")) == "BEN"
    assert at("2027-03-28T12:00") - at("2027-03-27T12:00") == 23 * HOUR_MS


def test_hours_are_absolute() -> None:
    duty = rotation("2027-03-27T12:00", "24h")
    assert on_duty(duty, at("2027-03-28T12:59")) == "ADA"
    assert on_duty(duty, at("2027-03-28T13:00")) == "BEN"


def test_a_local_time_that_does_not_exist_is_the_first_after_it() -> None:
    duty = rotation("2027-03-21T02:30")
    assert local(at("2027-03-28T02:30")) == "2027-03-28T03:00"
    assert on_duty(duty, at("2027-03-28T03:00") - 1) == "ADA"
    assert on_duty(duty, at("2027-03-28T03:00")) == "BEN"


def test_a_local_time_that_exists_twice_is_the_first() -> None:
    twice = at("2027-10-31T02:30")
    assert twice == int(datetime(2027, 10, 31, 0, 30, tzinfo=UTC).timestamp()) * 1_000
    duty = rotation("2027-10-24T02:30")
    assert [on_duty(duty, twice - 1), on_duty(duty, twice), on_duty(duty, twice + HOUR_MS)] == [
        "ADA",
        "BEN",
        "BEN",
    ]


@pytest.mark.parametrize(
    ("local_time", "zone", "first"),
    [
        ("2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-03T15:30"),  # half an hour
        ("2011-12-30T12:00", "Pacific/Apia", "2011-12-30T10:00"),  # a whole day
    ],
)
def test_odd_gaps_are_skipped_too(local_time: str, zone: str, first: str) -> None:
    moment = to_ms(datetime.fromisoformat(local_time), zone_of(zone))
    assert moment == int(datetime.fromisoformat(f"{first}+00:00").timestamp()) * 1_000


def test_the_last_override_that_holds_wins_until_its_end() -> None:
    duty = rotation(
        overrides=(
            ("2026-12-24T09:00", "2026-12-27T09:00", "MIA"),
            ("2026-12-25T09:00", "2026-12-26T09:00", "SAM"),
        )
    )
    days = ("24T08:59", "24T09:00", "25T09:00", "26T09:00", "27T08:59", "27T09:00")
    assert [on_duty(duty, at(f"2026-12-{day}")) for day in days] == [
        "BEN",
        "MIA",
        "SAM",
        "MIA",
        "MIA",
        "BEN",
    ]


def test_before_its_start_nobody_is_on_duty_whatever_is_overridden() -> None:
    duty = rotation(overrides=(("2026-10-01T09:00", "2026-12-01T09:00", "MIA"),))
    assert on_duty(duty, at("2026-10-15T09:00")) is None
    assert on_duty(duty, at("2026-11-15T09:00")) == "MIA"


def test_no_hand_over_at_the_deadline() -> None:
    deadline = at("2026-11-09T09:00")
    start = at("2026-11-03T10:00")
    assert next_handover(rotation(), after_ms=start, before_ms=deadline) is None
    assert next_handover(rotation(), after_ms=start, before_ms=deadline + 1) is not None


def test_a_turn_of_the_same_person_is_no_hand_over() -> None:
    start, end = at("2026-11-03T10:00"), at("2027-11-03T10:00")
    assert next_handover(rotation(people=("ADA",)), after_ms=start, before_ms=end) is None
    same = rotation(overrides=(("2026-11-04T09:00", "2026-11-10T09:00", "ADA"),))
    handover = next_handover(same, after_ms=start, before_ms=end)
    assert handover is not None
    assert (local(handover.at_ms), handover.user) == ("2026-11-10T09:00", "BEN")


@pytest.mark.parametrize("day", ["2027-03-28", "2027-10-31", "2027-06-15"])
@pytest.mark.parametrize("every", ["1d", "2d", "1w", "5h"])
def test_a_hand_over_is_the_first_moment_of_the_next_one(day: str, every: str) -> None:
    duty = rotation("2027-03-01T02:30", every, ("ADA", "BEN", "CLEO"))
    for hour in range(0, 24, 5):
        now = at(f"{day}T00:00") + hour * HOUR_MS
        handover = next_handover(duty, after_ms=now, before_ms=now + 30 * 24 * HOUR_MS)
        assert handover is not None
        assert on_duty(duty, handover.at_ms) == handover.user
        moments = range(now, handover.at_ms, MINUTE_MS * 30)
        assert {on_duty(duty, moment) for moment in moments} == {on_duty(duty, now)}


def test_zones_are_known_where_the_system_has_none() -> None:
    zoneinfo.reset_tzpath(())
    try:
        assert str(zoneinfo.ZoneInfo.no_cache("Europe/Berlin")) == "Europe/Berlin"
    finally:
        zoneinfo.reset_tzpath()


def test_an_unknown_zone_tells_nothing() -> None:
    duty = rotation().model_copy(update={"timezone": "Mars/Base"})
    with pytest.raises(TermsError, match="Mars/Base"):
        on_duty(duty, 0)


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati", "Etc/UTC"])
def test_for_ever_is_no_fault(zone: str) -> None:
    ever = ("0001-01-01T00:00", "9999-12-31T23:59")
    now = at("2026-11-22T10:00")
    always = rotation(start=ever[0], overrides=((*ever, "MIA"),), zone=zone)
    assert (on_duty(always, now), next_handover(always, after_ms=now, before_ms=2 * now)) == (
        "MIA",
        None,
    )
    never = rotation(start=ever[1], zone=zone)
    assert (on_duty(never, now), next_handover(never, after_ms=now, before_ms=2 * now)) == (
        None,
        None,
    )
