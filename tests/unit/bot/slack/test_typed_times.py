"""Times as people type them."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from bot.policy.hours import to_local, to_ms
from bot.slack.typed_times import read_until

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = to_ms(datetime.fromisoformat("2026-11-23T10:00"), BERLIN)


def read(text: str, *, now_ms: int = MONDAY, zone: ZoneInfo = BERLIN) -> str:
    at_ms = read_until(text.split(), now_ms=now_ms, zone=zone)
    return f"{to_local(at_ms, BERLIN):%a %Y-%m-%d %H:%M}"


def test_a_time_is_of_the_clock_on_the_wall_of_who_typed_it() -> None:
    assert read("fri 18:00", zone=ZoneInfo("America/New_York")) == "Sat 2026-11-28 00:00"


@pytest.mark.parametrize("text", ["0001-01-01 0:00", "9999-12-31 23:59"])
@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati"])
def test_the_ends_of_time_can_be_read(text: str, zone: str) -> None:
    at_ms = read_until(text.split(), now_ms=MONDAY, zone=ZoneInfo(zone))
    assert (at_ms < MONDAY) is text.startswith("0")


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=4))
def test_anything_is_read_or_refused(words: list[str]) -> None:
    with suppress(ValueError):
        assert isinstance(read_until(words, now_ms=MONDAY, zone=BERLIN), int)
