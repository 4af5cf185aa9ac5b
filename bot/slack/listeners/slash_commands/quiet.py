"""The command `quiet 22:00-07:00`: set quiet hours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import time

from bot.people.model import PersonRecord
from bot.slack.home.times import TimeReader
from bot.slack.listeners.slash_commands.answers import Asker, TypedAnswer, TypoError, quoted
from bot.words import say

_CLOCK = r"(\d{1,2})(?::(\d{2}))? ?(am|pm)?"
_HOURS = re.compile(f"(?:from )?{_CLOCK} ?(?:-|\N{EN DASH}|\N{EM DASH}|to|until|till) ?{_CLOCK}")
_OFF = frozenset({"off", "none", "never", "stop", "end"})


async def quiet(asker: Asker, words: Sequence[str]) -> TypedAnswer:
    """`quiet 22:00-07:00`, `quiet off`: mute direct messages; alone, show the setting."""
    reader, typed = await asker.reader(), " ".join(words).lower()
    if not typed:
        person = await asker.wishes.of(asker.actor.user_id, team_id=asker.team_id)
        return TypedAnswer(text=hours_text(person, reader) or say("command.quiet_none"))
    hours = ("", "") if typed in _OFF else read_hours(typed, reader)
    person = await asker.wishes.set(asker.actor, team_id=asker.team_id, quiet=hours)
    asker.changed()
    return TypedAnswer(text=hours_text(person, reader) or say("command.quiet_off"))


def read_hours(typed: str, reader: TimeReader) -> tuple[str, str]:
    """Parse quiet hours into start and end, as `22:00` and `07:00`.

    Args:
        typed: Such as `22:00-07:00`, `22-7`, or `10pm to 7am`; in lower case.
        reader: The person's time format.

    Raises:
        TypoError: The input is invalid.
    """
    found = _HOURS.fullmatch(typed)
    times = [] if found is None else [_clock(*found.groups()[:3]), _clock(*found.groups()[3:])]
    start, until = [*times, None, None][:2]
    if start is None or until is None:
        raise TypoError(say("command.quiet_time", text=quoted(typed)))
    if start == until:
        raise TypoError(say("command.quiet_same", time=reader.wall(start)))
    return start, until


def hours_text(person: PersonRecord, reader: TimeReader) -> str:
    """Describe a person's quiet hours; empty without any."""
    if not person.quiet_from:
        return ""
    times = {"from": reader.wall(person.quiet_from), "to": reader.wall(person.quiet_until)}
    return say("command.quiet", **times)


def _clock(hour: str, minute: str | None, half: str | None) -> str | None:
    """Return a time of day as `22:00`; None if invalid."""
    number = int(hour)
    if half is not None:
        if not 1 <= number <= 12:
            return None
        number = number % 12 + (12 if half == "pm" else 0)
    if number == 24 and int(minute or 0) == 0:
        number = 0
    try:
        return f"{time(number, int(minute or 0)):%H:%M}"
    except ValueError:
        return None
