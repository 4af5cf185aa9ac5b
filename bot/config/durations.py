"""Durations as people write them: `45s`, `15m`, `8h`, `1h30m`, `2d`."""

from __future__ import annotations

import re
from datetime import timedelta

LONGEST = timedelta(days=30)
"""Longest time from a request to its expiry, in the settings and in a policy file."""

LONGEST_RETENTION = timedelta(days=3_650)
"""Longest value of `COUNTERSIGN_RETENTION`."""

_UNITS_S = {
    "d": 86_400,
    "h": 3_600,
    "m": 60,
    "s": 1,
}
_SHAPE = re.compile(
    r"(?=[0-9])(?:(?P<d>[0-9]{1,9})d)?(?:(?P<h>[0-9]{1,9})h)?"
    r"(?:(?P<m>[0-9]{1,9})m)?(?:(?P<s>[0-9]{1,9})s)?"
)


def parse_duration(text: str, *, longest: timedelta = LONGEST) -> timedelta:
    """Parse a duration: whole numbers with a unit each, the largest unit first.

    Args:
        text: A text such as `15m` or `1h30m`. Case and surrounding spaces are ignored.
        longest: The maximum duration.

    Raises:
        ValueError: The text is not a duration, is zero, or is longer than `longest`. The message is
            a clause with the fault.
    """
    match = _SHAPE.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError("not a duration")
    numbers = match.groupdict(default="0")
    seconds = sum(length * int(numbers[unit]) for unit, length in _UNITS_S.items())
    if not seconds:
        raise ValueError("zero")
    if seconds > longest.total_seconds():
        raise ValueError(f"longer than {longest.days} days")
    return timedelta(seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """Format a duration for `parse_duration`.

    Args:
        duration: A positive duration; fractions of a second are dropped.
    """
    rest = int(duration.total_seconds())
    parts = []
    for unit, length in _UNITS_S.items():
        number, rest = divmod(rest, length)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts)
