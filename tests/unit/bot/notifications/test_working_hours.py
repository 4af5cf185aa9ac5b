"""A person's day: when it begins, through their nights, the policy's, and other clocks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.notifications.working_hours import WorkingDay, known_zone, own_hours
from bot.records.people import PersonRecord
from bot.records.terms import QuietHours

BERLIN, NEW_YORK, UTC_ = "Europe/Berlin", "America/New_York", "Etc/UTC"


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def at(moment: int | None) -> str:
    return "" if moment is None else f"{datetime.fromtimestamp(moment / 1000, UTC):%m-%d %H:%M}"


def hours(start: str, until: str, zone: str = UTC_, days: tuple[str, ...] = ()) -> QuietHours:
    return QuietHours(start=start, until=until, timezone=zone, days=days)


@pytest.mark.parametrize(
    ("day", "now", "begins"),
    [
        (WorkingDay(zone=UTC_), "2026-11-23 08:00", "11-23 09:00"),
        (WorkingDay(zone=UTC_), "2026-11-23 09:00", "11-24 09:00"),
        (WorkingDay(zone=NEW_YORK), "2026-11-23 08:00", "11-23 14:00"),
        (WorkingDay(zone=UTC_, own=hours("22:00", "07:00")), "2026-11-23 06:00", "11-23 07:00"),
        (WorkingDay(zone=UTC_, own=hours("12:00", "14:00")), "2026-11-23 08:00", "11-23 09:00"),
        (WorkingDay(zone=UTC_, own=hours("00:00", "10:00")), "2026-11-23 08:00", "11-23 10:00"),
        (WorkingDay(zone=UTC_, house=hours("20:00", "08:00")), "2026-11-23 07:00", "11-23 08:00"),
        # The office in Berlin is asleep while it is eight in the morning in Auckland.
        (
            WorkingDay(zone="Pacific/Auckland", house=hours("20:00", "08:00", BERLIN)),
            "2026-11-23 05:00",
            "11-23 07:00",
        ),
        # Their own wish goes before the policy's morning, where that allows it.
        (
            WorkingDay(zone=UTC_, own=hours("23:00", "10:30"), house=hours("20:00", "08:00")),
            "2026-11-23 07:00",
            "11-23 10:30",
        ),
        # Friday evening: the weekend is quiet, so that the next day is Monday.
        (
            WorkingDay(zone=UTC_, house=hours("", "", days=("sat", "sun"))),
            "2026-11-27 18:00",
            "11-30 09:00",
        ),
    ],
)
def test_a_day_begins(day: WorkingDay, now: str, begins: str) -> None:
    assert at(day.next_ms(ms(now))) == begins


def test_the_day_of_the_last_list_is_passed_over() -> None:
    day = WorkingDay(zone=UTC_)
    assert at(day.next_ms(ms("2026-11-23 08:00"), after="2026-11-23")) == "11-24 09:00"


@pytest.mark.parametrize(
    ("now", "begins"),
    [
        ("2026-03-28 09:00", "03-29 07:00"),  # the clocks went forward that night
        ("2026-03-27 09:00", "03-28 08:00"),
        ("2026-10-24 09:00", "10-25 08:00"),  # and back
        ("2026-10-23 09:00", "10-24 07:00"),
    ],
)
def test_a_day_begins_at_nine_by_the_clock_on_the_wall(now: str, begins: str) -> None:
    assert at(WorkingDay(zone=BERLIN).next_ms(ms(now))) == begins


def test_a_morning_that_the_clocks_leave_out_begins_after_the_gap() -> None:
    day = WorkingDay(zone=BERLIN, own=hours("22:00", "02:30", BERLIN))
    assert at(day.next_ms(ms("2026-03-28 12:00"))) == "03-29 01:00"


def test_who_is_never_to_be_messaged_has_no_day() -> None:
    every = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    day = WorkingDay(zone=UTC_, house=hours("", "", days=every))
    assert day.next_ms(ms("2026-11-23 08:00")) is None
    assert day.free_ms(ms("2026-11-23 08:00")) is None


def test_hours_that_meet_are_one_night() -> None:
    day = WorkingDay(zone=UTC_, own=hours("22:00", "06:00"), house=hours("06:00", "08:00"))
    assert at(day.free_ms(ms("2026-11-23 23:00"))) == "11-24 08:00"


def test_a_zone_that_is_not_known_here_is_passed_over() -> None:
    assert known_zone(["Mars/Olympus", BERLIN]) == BERLIN
    assert known_zone(["Mars/Olympus"]) == UTC_


def test_own_hours_are_by_the_clock_of_their_person() -> None:
    person = PersonRecord(person_id="T1:U1", team_id="T1", user_id="U1")
    assert own_hours(person, BERLIN) is None
