"""Local times for tests of rotations, quiet hours and the ladder."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from bot.policy.hours import to_local, to_ms

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def at(text: str) -> int:
    """The moment of a local time in Berlin."""
    return to_ms(datetime.fromisoformat(text), BERLIN)


def local(at_ms: int | None) -> str:
    """A moment as clocks in Berlin show it."""
    return "never" if at_ms is None else f"{to_local(at_ms, BERLIN):%Y-%m-%dT%H:%M}"
