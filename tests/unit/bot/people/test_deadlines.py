"""Times as people type them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from bot.people.deadlines import read_until
from bot.policy.hours import to_local, to_ms

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = to_ms(datetime.fromisoformat("2026-11-23T10:00"), BERLIN)


def read(text: str, *, now_ms: int = MONDAY, zone: ZoneInfo = BERLIN) -> str:
    at_ms = read_until(text.split(), now_ms=now_ms, zone=zone)
    return f"{to_local(at_ms, BERLIN):%a %Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("fri 18:00", "Fri 2026-11-27 18:00"),
        ("Friday at 18:00", "Fri 2026-11-27 18:00"),
        ("on fri 6pm", "Fri 2026-11-27 18:00"),
        ("fri 12am", "Fri 2026-11-27 00:00"),
        ("fri 12:30pm", "Fri 2026-11-27 12:30"),
        ("fri", "Fri 2026-11-27 23:59"),
        ("mon 18:00", "Mon 2026-11-23 18:00"),
        ("mon 9:00", "Mon 2026-11-30 09:00"),
        ("mon", "Mon 2026-11-23 23:59"),
        ("today 18:00", "Mon 2026-11-23 18:00"),
        ("today 9:00", "Mon 2026-11-23 09:00"),
        ("tomorrow", "Tue 2026-11-24 23:59"),
        ("tomorrow 9:00", "Tue 2026-11-24 09:00"),
        ("18:00", "Mon 2026-11-23 18:00"),
        ("9:00", "Tue 2026-11-24 09:00"),
        ("27 nov", "Fri 2026-11-27 23:59"),
        ("27. November 18:00", "Fri 2026-11-27 18:00"),
        ("2 jan 9am", "Sat 2027-01-02 09:00"),
        ("2026-11-27", "Fri 2026-11-27 23:59"),
        ("2026-11-27 18:00", "Fri 2026-11-27 18:00"),
        ("2026-11-27T18:00", "Fri 2026-11-27 18:00"),
    ],
)
def test_a_time_is_read_as_people_mean_it(text: str, moment: str) -> None:
    assert read(text) == moment


def test_a_time_is_of_the_clock_on_the_wall_of_who_typed_it() -> None:
    assert read("fri 18:00", zone=ZoneInfo("America/New_York")) == "Sat 2026-11-28 00:00"


@pytest.mark.parametrize("text", ["0001-01-01 0:00", "9999-12-31 23:59"])
@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati"])
def test_the_ends_of_time_can_be_read(text: str, zone: str) -> None:
    at_ms = read_until(text.split(), now_ms=MONDAY, zone=ZoneInfo(zone))
    assert (at_ms < MONDAY) is text.startswith("0")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no time behind"),
        ("at", "no time behind"),
        ("someday", "don't know this time"),
        ("fri fri 18:00", "don't know this time"),
        ("18", "don't know this time"),
        ("fri 25:00", "no such time of day"),
        ("fri 18:60", "no such time of day"),
        ("fri 13pm", "no such time of day"),
        ("fri 0am", "no such time of day"),
        ("31 feb", "no such day"),
        ("2026-13-01", "no such day"),
        ("0000-01-01", "no such day"),
    ],
)
def test_what_is_no_time_is_said_with_how_it_is_written(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        read(text)
    assert "fri 18:00" in str(error.value)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=4))
def test_anything_is_read_or_refused(words: list[str]) -> None:
    refusal = ""
    try:
        read_until(words, now_ms=MONDAY, zone=BERLIN)
    except ValueError as error:
        refusal = str(error)
    assert not refusal or "Please write it like" in refusal
