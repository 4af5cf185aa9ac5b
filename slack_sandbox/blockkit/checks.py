"""Checks for Block Kit: texts, numbers, lists, objects.

A check takes a value and its JSON pointer. It yields a sentence for each fault, in the form of
Slack's `response_metadata.messages`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Check = Callable[[object, str], Iterator[str]]
"""Yields the faults of a value; the second argument is the JSON pointer of the value."""

Rule = Callable[[dict[str, Any], str], Iterator[str]]
"""A check of a whole object. It runs only if the fields have no faults."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Characters that no text may contain: all controls but tab and line ends."""

_BARE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt);)")


def fault(message: str, path: str) -> str:
    """Format a fault as Slack does."""
    return f"{message} [json-pointer:{path}]"


def mrkdwn_length(text: str) -> int:
    """Return the length of mrkdwn as Slack counts it: a bare `&` becomes `&amp;`."""
    return len(text) + 4 * len(_BARE_AMPERSAND.findall(text))


def literal_length(text: str) -> int:
    """Return the length of unparsed text, after Slack escaped it."""
    return len(text) + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def string(most: int, *, least: int = 1, pattern: str = "") -> Check:
    """Check a string: its length, and a pattern that must match it entirely."""

    def check(value: object, path: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield fault("must be a string", path)
        elif len(value) < least:
            yield fault(f"must be at least {least} characters", path)
        elif len(value) > most:
            yield fault(f"must be less than {most + 1} characters", path)
        elif pattern and not re.fullmatch(pattern, value):
            yield fault("has an invalid format", path)

    return check


def words(most: int) -> Check:
    """Check a string that is shown as it is."""
    return _measured(most, literal_length)


def date(value: object, path: str) -> Iterator[str]:
    """Check a day of the calendar."""
    yield from string(10, pattern=r"\d{4}-\d{2}-\d{2}")(value, path)
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        try:
            dt.date.fromisoformat(value)
        except ValueError:
            yield fault("is no day of the calendar", path)


def text(most: int, *, mrkdwn: bool = False, plain: bool = True) -> Check:
    """Check a text object. Its length is measured on the escaped string."""
    kinds = [kind for kind, on in (("plain_text", plain), ("mrkdwn", mrkdwn)) if on]
    tables = {
        "plain_text": shape(
            {"type": string(20), "text": _measured(most, literal_length)}, {"emoji": flag}
        ),
        "mrkdwn": shape(
            {"type": string(20), "text": _measured(most, mrkdwn_length)}, {"verbatim": flag}
        ),
    }
    return typed({kind: tables[kind] for kind in kinds})


def _measured(most: int, length: Callable[[str], int]) -> Check:
    def check(value: object, path: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield fault("must be a string", path)
        elif not value:
            yield fault("must be more than 0 characters", path)
        elif length(value) > most:
            yield fault(f"must be less than {most + 1} characters", path)
        elif _CONTROL.search(value):
            yield fault("must have no control characters", path)

    return check


def flag(value: object, path: str) -> Iterator[str]:
    """Check a boolean."""
    if not isinstance(value, bool):
        yield fault("must be a boolean", path)


def integer(least: int, most: int) -> Check:
    """Check an integer in a range."""

    def check(value: object, path: str) -> Iterator[str]:
        if isinstance(value, bool) or not isinstance(value, int):
            yield fault("must be an integer", path)
        elif not least <= value <= most:
            yield fault(f"must be between {least} and {most}", path)

    return check


def number(value: object, path: str) -> Iterator[str]:
    """Check a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield fault("must be a number", path)


def choice(*names: str) -> Check:
    """Check a string that must be one of several."""

    def check(value: object, path: str) -> Iterator[str]:
        if value not in names:
            yield fault(f"must be one of: {', '.join(names)}", path)

    return check


def items(check_item: Check, *, least: int = 1, most: int | None = None) -> Check:
    """Check a list: its length, and each value."""

    def check(value: object, path: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield fault("must be an array", path)
            return
        if len(value) < least:
            yield fault(f"no fewer than {least} items allowed", path)
        if most is not None and len(value) > most:
            yield fault(f"no more than {most} items allowed", path)
        for index, item in enumerate(value):
            yield from check_item(item, f"{path}/{index}")

    return check


def shape(
    required: Mapping[str, Check],
    optional: Mapping[str, Check] | None = None,
    *rules: Rule,
) -> Check:
    """Check an object that has these fields and no others."""
    known = {**required, **(optional or {})}

    def check(value: object, path: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield fault("must be an object", path)
            return
        faults = [*_missing(value, required, path), *_field_faults(value, known, path)]
        yield from faults
        if not faults:
            for rule in rules:
                yield from rule(value, path)

    return check


def _missing(value: dict[str, Any], required: Mapping[str, Check], path: str) -> Iterator[str]:
    for name in required:
        if name not in value:
            yield fault(f"missing required field: {name}", path)


def _field_faults(value: dict[str, Any], known: Mapping[str, Check], path: str) -> Iterator[str]:
    for name, item in value.items():
        if name in known:
            yield from known[name](item, f"{path}/{name}")
        else:
            yield fault(f"invalid additional property: {name}", path)


def typed(table: Mapping[str, Check]) -> Check:
    """Check an object with the check for its `type`."""

    def check(value: object, path: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield fault("must be an object", path)
            return
        kind = value.get("type")
        if not isinstance(kind, str) or kind not in table:
            yield fault(f"unsupported type: {kind}", f"{path}/type")
            return
        yield from table[kind](value, path)

    return check


def any_object(value: object, path: str) -> Iterator[str]:
    """Check an object without its fields."""
    if not isinstance(value, dict):
        yield fault("must be an object", path)
