"""Parse times as people type them: `fri 18:00`, `tomorrow`, `2026-11-27T18:00`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from bot.policy.hours import to_local, to_ms

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(r"(?P<hour>\d{1,2})(:(?P<minute>\d{2}))?(?P<half>am|pm)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAY = re.compile(r"\d{1,2}\.?")
_MIDNIGHT = time()
_LAST_MINUTE = time(23, 59)
_NUMBER = re.compile(r"[1-9]\d{0,3}")
_UNITS = {"hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}


def read_until(words: Sequence[str], *, now_ms: int, zone: ZoneInfo) -> int:
    """Parse an end time: a day, a time, or both.

    A day alone means its last minute. A weekday is the next one, and so is a time without a day.

    Args:
        words: The input, split at spaces.
        now_ms: The time now.
        zone: Time zone of the person.

    Returns:
        Milliseconds since the epoch; may be in the past.

    Raises:
        ValueError: The input is not a time.
    """
    now = to_local(now_ms, zone)
    typed = [part for word in words for part in _apart(word.lower()) if part not in {"at", "on"}]
    if not typed:
        raise ValueError("no time")
    clock = _clock(typed[-1])
    days = typed[:-1] if clock is not None else typed
    if not days:
        day = now.date() if clock is not None and clock > now.time() else _next(now.date())
        return to_ms(datetime.combine(day, clock or _MIDNIGHT), zone)
    day = _date(days, now, clock)
    return end_of_day(day, zone) if clock is None else to_ms(datetime.combine(day, clock), zone)


def end_of_day(day: date, zone: ZoneInfo) -> int:
    """Return the last minute of a day in ms: midnight would show as the next day."""
    return to_ms(datetime.combine(day, _LAST_MINUTE), zone)


def read_for(words: Sequence[str]) -> int:
    """Parse a duration: `3 days`, `1 week`, `12 hours`.

    Args:
        words: The input, split at spaces.

    Returns:
        The duration in milliseconds.

    Raises:
        ValueError: The input is invalid.
    """
    match [word.lower() for word in words]:
        case [number, unit] if _NUMBER.fullmatch(number) and unit.removesuffix("s") in _UNITS:
            return int(number) * _UNITS[unit.removesuffix("s")]
        case _:
            raise ValueError("not a time")


def _apart(word: str) -> list[str]:
    """Split a date and time in one word, as in ISO 8601."""
    day, sign, clock = word.partition("t")
    return [day, clock] if sign and _DATE.fullmatch(day) else [word]


def _clock(word: str) -> time | None:
    """Parse a time of day. A bare number is refused: it may be a day."""
    match = _CLOCK.fullmatch(word)
    if match is None or (match["minute"] is None and match["half"] is None):
        return None
    hour, minute, half = int(match["hour"]), int(match["minute"] or 0), match["half"]
    if half is not None:
        if not 1 <= hour <= 12:
            raise ValueError("not a time of day")
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        raise ValueError("not a time of day")
    return time(hour, minute)


def _date(words: Sequence[str], now: datetime, clock: time | None) -> date:
    today = now.date()
    match words:
        case ["today"]:
            return today
        case ["tomorrow"]:
            return _next(today)
        case [day] if day in _DAYS or day in _FULL_DAYS:
            number = _DAYS.index(day[:3])
            ahead = (number - today.weekday()) % 7
            is_over = ahead == 0 and clock is not None and clock <= now.time()
            return today + timedelta(days=7 if is_over else ahead)
        case [day] if _DATE.fullmatch(day):
            return _made(lambda: date.fromisoformat(day))
        case [day, month] if _DAY.fullmatch(day) and month[:3] in _MONTHS:
            number = _MONTHS.index(month[:3]) + 1
            this_year = _made(lambda: date(today.year, number, int(day.rstrip("."))))
            return (
                this_year
                if this_year >= today
                else _made(lambda: this_year.replace(year=today.year + 1))
            )
        case _:
            raise ValueError("not a time")


def _next(day: date) -> date:
    return _made(lambda: day + timedelta(days=1))


def _made(make: Callable[[], date]) -> date:
    try:
        return make()
    except (ValueError, OverflowError) as error:
        raise ValueError("not a day") from error
