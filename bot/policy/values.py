"""Single values of a policy file: names, ids, durations, times, yes and no.

Each refusal has the code of the fault, a description and a remedy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, time
from typing import Annotated, Literal, NoReturn
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

NAME = r"[a-z][a-z0-9-]{0,39}"
"""Pattern of the names of rules, groups and stages."""
REQUIREMENT_NAME = r"[a-z][a-z0-9+-]{0,79}"
"""Pattern of a requirement's own name; by default, the groups are joined by `+`."""
PERSON = r"[UW][A-Z0-9]{2,30}"
USERGROUP = r"S[A-Z0-9]{2,30}"
CHANNEL = r"[CG][A-Z0-9]{2,30}"

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
LONGEST_S = 365 * DAY_S
"""Longest duration in a policy file, in seconds."""

_UNITS_S = {"w": 7 * DAY_S, "d": DAY_S, "h": HOUR_S, "m": MINUTE_S, "s": 1}
_DURATION = re.compile("(?=[0-9])" + "".join(f"(?:(?P<{u}>[0-9]{{1,9}}){u})?" for u in _UNITS_S))
_TURN = re.compile(r"[1-9][0-9]{0,3}[hdw]")
_LOCAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?", re.ASCII)
_CLOCK = re.compile(r"\d\d:\d\d", re.ASCII)
_YES_NO = {"yes": True, "no": False}


def fault(code: str, what: str, remedy: str) -> PydanticCustomError:
    """Return the error of an invalid value. Fault and remedy are clauses."""
    words: dict[str, object] = {"fault": what, "remedy": remedy}
    return PydanticCustomError(code, "{fault}; {remedy}", words)


def refuse(code: str, what: str, remedy: str) -> NoReturn:
    """Raise the error of an invalid value; see `fault`."""
    raise fault(code, what, remedy)


def wrong_type(value: object, wanted: str) -> NoReturn:
    """Raise the error of a value of the wrong type."""
    refuse("wrong_type", f"found {kind(value)}", f"write {wanted}")


def unknown(value: object, wanted: str) -> PydanticCustomError:
    """Return the error of a value that is not one of a few words and maps."""
    if not isinstance(value, str):
        return fault("wrong_type", f"found {kind(value)}", f"write {wanted}")
    return fault("bad_value", invalid(value), f"write {wanted}")


def invalid(value: object, what: str = "isn't a valid value") -> str:
    """Return the fault of a value, as it stands in the file; of lists and maps, the type."""
    if isinstance(value, bool):
        return f"{str(value).lower()} {what}"
    return f"{value!r} {what}" if isinstance(value, str | int | float) else f"found {kind(value)}"


def kind(value: object) -> str:
    """Return the type of a value, for people."""
    if isinstance(value, bool):
        return "yes or no"
    names = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "a map"}
    return "nothing" if value is None else names.get(type(value), "of another type")


def seconds(text: str) -> int:
    """Parse a duration: whole numbers with units, the largest unit first.

    Raises:
        ValueError: The text is not a duration, is zero, or is longer than a year.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("not a duration")
    numbers = match.groupdict(default="0")
    total = sum(length * int(numbers[unit]) for unit, length in _UNITS_S.items())
    if not 0 < total <= LONGEST_S:
        raise ValueError("longer than a year" if total else "zero")
    return total


FROM_SETTINGS = {"is_settings": True}
"""Validation context of the settings, which permit shorter durations than a file."""


DURATION = "^" + "(?=[0-9])" + "".join(f"([0-9]{{1,9}}{unit})?" for unit in "wdhms") + "$"
"""Pattern of durations for the JSON schema."""
Duration = Annotated[str, Field(pattern=DURATION)]


def between(least: int, most: int, words: str) -> Callable[[object, ValidationInfo], int]:
    """Return a validator of durations within limits in seconds.

    `words` are the limits for people, such as `1m to 30d`.
    """

    def read(value: object, info: ValidationInfo) -> int:
        remedy = f"write such as 45s, 15m, 1h30m, 8h, 2d or 1w; from {words}"
        if not isinstance(value, str):
            refuse("bad_duration", f"found {kind(value)}, and no duration", remedy)
        try:
            duration = seconds(value)
        except ValueError as error:
            refuse("bad_duration", f"{value!r} isn't valid: {error}", remedy)
        if not (1 if info.context == FROM_SETTINGS else least) <= duration <= most:
            refuse("bad_duration", f"{value!r} is not within {words}", remedy)
        return duration

    return read


def _shaped(code: str, shape: str, what: str) -> Callable[[object], str]:
    form = re.compile(shape)

    def read(value: object) -> str:
        if not isinstance(value, str):
            wrong_type(value, what)
        if not form.fullmatch(value):
            refuse(code, f"{value!r} isn't in the right format", f"write {what}")
        return value

    return read


def _turn(value: object) -> str:
    remedy = "write whole hours, days or weeks: 12h, 1d, 1w"
    if not isinstance(value, str) or not _TURN.fullmatch(value):
        refuse("bad_duration", invalid(value, "is not the length of a turn"), remedy)
    if seconds_of_turn(value) > LONGEST_S:
        refuse("bad_duration", f"{value!r} is longer than a year", remedy)
    return value


def seconds_of_turn(text: str) -> int:
    """Return the length of a rotation's turn, without changes of daylight saving time."""
    return int(text[:-1]) * _UNITS_S[text[-1]]


def _local(value: object) -> datetime:
    remedy = "write a local time such as 2026-11-02T09:00, without a zone"
    if isinstance(value, datetime) and value.tzinfo is None:
        return value
    if not isinstance(value, str) or not _LOCAL.fullmatch(value):
        refuse("bad_value", invalid(value, "is not a local time"), remedy)
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        refuse("bad_value", f"{value!r} isn't a real date", remedy)


def _clock(value: object) -> str:
    remedy = 'write hours and minutes in quotes: "20:00"'
    if not isinstance(value, str) or not _CLOCK.fullmatch(value):
        refuse("bad_value", invalid(value, "is not a time of the day"), remedy)
    try:
        time.fromisoformat(value)
    except ValueError:
        refuse("bad_value", f"{value!r} isn't a real time", remedy)
    return value


def _zone(value: object) -> str:
    if not isinstance(value, str):
        wrong_type(value, "the name of a zone, such as Europe/Berlin")
    try:
        ZoneInfo(value)
    except (ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        pass
    except KeyError:
        pass
    else:
        return value
    refuse("bad_value", f"{value!r} is not a zone", "write one such as Europe/Berlin or UTC")


def _yes_no(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        wrong_type(value, "yes or no")
    if value not in _YES_NO:
        refuse("bad_value", f"{value!r} isn't yes or no", "write yes or no")
    return _YES_NO[value]


def only_true(value: object) -> bool:
    """Validate a switch that can only be switched on."""
    if value is not True:
        refuse("bad_value", invalid(value, "means nothing here"), "write true, or leave it out")
    return True


def _reason(value: object) -> str:
    if not isinstance(value, str):
        wrong_type(value, "a text")
    if not value.strip():
        refuse("bad_value", "empty", "say briefly why this is blocked")
    return value


def as_tuple(value: object) -> object:
    """Convert a YAML list to a tuple, which strict models require."""
    return tuple(value) if isinstance(value, list) else value


def _text(code: str, shape: str, what: str) -> BeforeValidator:
    """Return a validator of texts by a pattern, which the JSON schema shows, too."""
    shown = Annotated[str, Field(pattern=f"^(?:{shape})$")]
    return BeforeValidator(_shaped(code, shape, what), json_schema_input_type=shown)


def _shown(read: Callable[[object], object], pattern: str) -> BeforeValidator:
    """Return a validator whose pattern the JSON schema shows."""
    return BeforeValidator(read, json_schema_input_type=Annotated[str, Field(pattern=pattern)])


_NAMES = "a small letter, then up to 39 small letters, digits and hyphens"
_REQUIREMENTS = "a small letter, then up to 79 small letters, digits, hyphens and plus signs"
_PLACES = "ids of channels (C… or G…), or direct for direct messages"

Name = Annotated[str, _text("bad_name", NAME, _NAMES)]
RequirementName = Annotated[str, _text("bad_name", REQUIREMENT_NAME, _REQUIREMENTS)]
GroupTitle = Annotated[str, Field(max_length=60, pattern=r"^[^\s<>&*_~`@#][^\n\r<>&*_~`@#]*$")]
"""The title of a group: plain words without markup and mentions."""
PersonId = Annotated[str, _text("bad_id", PERSON, "the id of a person (U… or W…)")]
UsergroupId = Annotated[str, _text("bad_id", USERGROUP, "the id of a user group (S…)")]
ChannelId = Annotated[str, _text("bad_id", CHANNEL, "the id of a channel (C… or G…)")]
Place = Annotated[str, _text("bad_id", f"{CHANNEL}|direct", _PLACES)]
TURN = "^[1-9][0-9]{0,3}[hdw]$"
LOCAL_TIME = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?$"
CLOCK_TIME = "^[0-9]{2}:[0-9]{2}$"
ZONE = "^[A-Za-z]"
"""Pattern of time zones for the JSON schema; the machine has the list of zones."""
Turn = Annotated[str, _shown(_turn, TURN)]
LocalTime = Annotated[datetime, _shown(_local, LOCAL_TIME)]
ClockTime = Annotated[str, _shown(_clock, CLOCK_TIME)]
Zone = Annotated[str, _shown(_zone, ZONE)]
YesNo = Annotated[
    bool, BeforeValidator(_yes_no, json_schema_input_type=bool | Literal["yes", "no"])
]
Reason = Annotated[str, BeforeValidator(_reason), Field(min_length=1)]
