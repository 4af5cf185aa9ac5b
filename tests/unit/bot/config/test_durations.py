"""Durations: what is read is what was meant, and nothing else is read."""

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from bot.config.durations import LONGEST, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("45s", timedelta(seconds=45)),
        ("15m", timedelta(minutes=15)),
        ("8h", timedelta(hours=8)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("2d", timedelta(days=2)),
        (" 1D2H ", timedelta(days=1, hours=2)),
        ("90m", timedelta(minutes=90)),
        ("30d", LONGEST),
    ],
)
def test_reads_what_people_write(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    ["", " ", "15", "m", "15 m", "1.5h", "-5m", "30m1h", "1h1h", "1w", "٣m", "1h30", "5m\n5m"],
)
def test_refuses_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["0m", "0d0h0m0s"])
def test_refuses_zero(text: str) -> None:
    with pytest.raises(ValueError, match="zero"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["31d", "30d1s", "999999999d999999999h"])
def test_refuses_more_than_a_month(text: str) -> None:
    with pytest.raises(ValueError, match="longer than 30 days"):
        parse_duration(text)


@given(st.integers(min_value=1, max_value=int(LONGEST.total_seconds())))
def test_reads_back_what_it_writes(seconds: int) -> None:
    duration = timedelta(seconds=seconds)
    assert parse_duration(format_duration(duration)) == duration


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        duration = parse_duration(text)
    except ValueError:
        return
    assert timedelta() < duration <= LONGEST
