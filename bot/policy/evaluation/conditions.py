"""Conditions on the arguments of a call: true, false, or undecided.

A condition is undecided if a careful reader could not tell: the path has no value, the value has
another type, or a text differs only in ways that people overlook.
"""

from __future__ import annotations

import json
import math
import operator
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias, cast

from agents.core.codec import Json
from agents.core.patterns import Pattern
from bot.policy.model import ArgEntry

DoubtAnswer: TypeAlias = bool | None
"""True, false, or None for undecided."""
TEXT_LIMIT = 10_000
"""Maximum length of an argument that a condition searches, in characters. A longer one is
undecided."""

_DIGITS = 100
"""The maximum length of a text that is read as a number."""
_COMPOSED = 5
"""The maximum number of characters that folding can combine into one."""
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
"""A number in a text: plain decimal digits, which every reader reads the same way."""
_Number: TypeAlias = int | Decimal
_Test: TypeAlias = Callable[[object], DoubtAnswer]


_NOTHING = object()
"""Marks a path without a value."""
_COMPARE: Mapping[str, Callable[[_Number, _Number], bool]] = {
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}


def all_hold(truths: Iterable[DoubtAnswer]) -> DoubtAnswer:
    """Return the three-valued *and* (Kleene); true for no values.

    False takes precedence over undecided.
    """
    result: DoubtAnswer = True
    for truth in truths:
        if truth is False:
            return False
        if truth is None:
            result = None
    return result


def any_holds(truths: Iterable[DoubtAnswer]) -> DoubtAnswer:
    """Return the three-valued *or* (Kleene); false for no values.

    True takes precedence over undecided.
    """
    result: DoubtAnswer = False
    for truth in truths:
        if truth:
            return True
        if truth is None:
            result = None
    return result


def negated(truth: DoubtAnswer) -> DoubtAnswer:
    """Return the three-valued *not* (Kleene); undecided stays undecided."""
    return None if truth is None else not truth


@dataclass(frozen=True, slots=True)
class ArgCondition:
    """A condition of a rule, prepared for repeated evaluation.

    Attributes:
        text: Text for people: `amount gt 500`.
        parts: The path.
        absent: Result if the path has no value.
        rest: Evaluates the value at the first part of the path.
    """

    text: str
    parts: tuple[str, ...]
    absent: DoubtAnswer
    rest: _Test

    @classmethod
    def of(cls, entry: ArgEntry) -> ArgCondition:
        """Prepare a condition of a file.

        Raises:
            PatternError: Its regular expression is not supported.
        """
        value = "" if entry.op in {"exists", "missing"} else f" {_shown(entry.value)}"
        each = f"{entry.each} " if entry.each else ""
        parts = tuple(entry.path.split("."))
        absent: DoubtAnswer = {"exists": False, "missing": True}.get(entry.op)
        return cls(
            text=f"{each}{entry.path} {entry.op}{value}",
            parts=parts,
            absent=absent,
            rest=_at(parts[1:], entry.each or "", absent, _test(entry)),
        )

    def holds(self, arguments: Mapping[str, Json]) -> DoubtAnswer:
        """Evaluate the condition for these arguments."""
        value: object = arguments.get(self.parts[0], _NOTHING)
        return self.absent if value is _NOTHING else self.rest(value)

    def describe(self, arguments: Mapping[str, Json]) -> str:
        """Describe the value at its path, for explanations."""
        if "*" in self.parts:
            return "the items differ, or there are none"
        values: list[object] = []

        def keep(value: object) -> DoubtAnswer:
            values.append(value)
            return None

        _at(self.parts, "", None, keep)(dict(arguments))
        return f"it is {_kind(values[0])}: {_shown(values[0])}" if values else "nothing is there"


def _at(parts: tuple[str, ...], each: str, absent: DoubtAnswer, test: _Test) -> _Test:
    """Apply a test to the value at a path."""
    if not parts:
        return test
    rest = _at(parts[1:], each, absent, test)
    return _each(each, absent, rest) if parts[0] == "*" else _step(parts[0], absent, rest)


def _step(part: str, absent: DoubtAnswer, rest: _Test) -> _Test:
    is_place = part.isascii() and part.isdigit() and len(part) < _DIGITS
    place = int(part) if is_place else -1

    def test(value: object) -> DoubtAnswer:
        if isinstance(value, dict):
            item = cast("dict[str, object]", value).get(part, _NOTHING)
            return absent if item is _NOTHING else rest(item)
        if isinstance(value, list):
            items = cast("list[object]", value)
            return rest(items[place]) if 0 <= place < len(items) else absent
        return absent

    return test


def _each(each: str, absent: DoubtAnswer, rest: _Test) -> _Test:
    def test(value: object) -> DoubtAnswer:
        if not isinstance(value, list):
            return absent
        items = cast("list[object]", value)
        if each == "any":
            return any_holds(map(rest, items))
        return all_hold(map(rest, items)) if items and each == "all" else None

    return test


def _test(entry: ArgEntry) -> _Test:
    test = _plain_test(entry)
    return _of_number(test) if entry.as_ == "number" else test


def _plain_test(entry: ArgEntry) -> _Test:
    wanted: Json = list(entry.value) if isinstance(entry.value, tuple) else entry.value
    if entry.op in _COMPARE:
        return _compared(entry.op, wanted)
    return _MAKERS[entry.op](wanted)


def _not(test: _Test) -> _Test:
    return lambda value: negated(test(value))


def _of_number(test: _Test) -> _Test:
    """Convert a text of digits to a number before the test; other texts are undecided."""

    def read(value: object) -> DoubtAnswer:
        number = _number_in(value) if isinstance(value, str) else value
        return None if number is None else test(number)

    return read


def _equal_to(wanted: Json) -> _Test:
    if isinstance(wanted, str):
        return _equal_text(wanted)
    number = number_of(wanted)
    if number is not None:
        return lambda value: None if (other := number_of(value)) is None else other == number
    return lambda value: same(value, wanted)


def _equal_text(wanted: str) -> _Test:
    folded = fold(wanted)

    def is_equal(value: object) -> DoubtAnswer:
        if not isinstance(value, str):
            return None
        return True if value == wanted else _almost(value, folded)

    return is_equal


def _one_of(wanted: Json) -> _Test:
    choices = wanted if isinstance(wanted, list) else [wanted]

    def is_in(value: object) -> DoubtAnswer:
        # In a list of texts and numbers, compare only items of the value's type.
        alike = [same(value, choice) for choice in choices if _is_like(value, choice)]
        return None if choices and not alike else any_holds(alike)

    return is_in


def _compared(name: str, wanted: Json) -> _Test:
    compare, limit = _COMPARE[name], number_of(wanted)

    def is_beyond(value: object) -> DoubtAnswer:
        number = number_of(value)
        return None if number is None or limit is None else compare(number, limit)

    return is_beyond


def _matching(text: str) -> _Test:
    pattern = Pattern(text, dot_is_all=True)

    def matches(value: object) -> DoubtAnswer:
        if not isinstance(value, str) or len(value) > TEXT_LIMIT:
            return None
        return pattern.matches(value)

    return matches


def _containing(wanted: Json) -> _Test:
    folded = fold(wanted) if isinstance(wanted, str) else ""

    def contains(value: object) -> DoubtAnswer:
        if isinstance(value, list):
            return any_holds(same(item, wanted) for item in cast("list[object]", value))
        if not isinstance(value, str) or not isinstance(wanted, str):
            return None
        if wanted in value:
            return True
        if len(value) > TEXT_LIMIT:
            return None
        return None if folded in fold(value) else False

    return contains


_MAKERS: Mapping[str, Callable[[Json], _Test]] = {
    "exists": lambda _: lambda _: True,
    "missing": lambda _: lambda _: False,
    "eq": _equal_to,
    "ne": lambda wanted: _not(_equal_to(wanted)),
    "in": _one_of,
    "not_in": lambda wanted: _not(_one_of(wanted)),
    "matches": lambda wanted: _matching(str(wanted)),
    "contains": _containing,
}


def same(value: object, wanted: Json) -> DoubtAnswer:
    """Compare two values. Another type or an almost equal text is undecided."""
    if not _is_like(value, wanted):
        return None
    match wanted:
        case str(text):
            return True if value == text else _almost(cast("str", value), fold(text))
        case list():
            return _same_items(cast("list[object]", value), wanted)
        case _:
            number = number_of(wanted)
            return value == wanted if number is None else number_of(value) == number


def _same_items(values: list[object], wanted: list[Json]) -> DoubtAnswer:
    if len(values) != len(wanted):
        return False
    return all_hold(same(value, other) for value, other in zip(values, wanted, strict=True))


def _is_like(value: object, wanted: Json) -> bool:
    """Whether two values have the same JSON type and can be compared."""
    if isinstance(wanted, bool) or wanted is None:
        return type(value) is type(wanted)
    if isinstance(wanted, int | float):
        return number_of(value) is not None
    return isinstance(value, type(wanted))


def number_of(value: object) -> _Number | None:
    """Return a number exactly; None for booleans, infinities and other values."""
    if isinstance(value, float):
        return _exact(value) if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return value


@lru_cache(maxsize=1_000)
def _exact(value: float) -> Decimal:
    """Return the shortest decimal number with this binary value."""
    return Decimal(repr(value))


def _number_in(text: str) -> Decimal | None:
    if len(text) > _DIGITS or not _NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def _almost(text: str, folded: str) -> DoubtAnswer:
    """Return undecided if texts differ only in ways that people overlook, else false."""
    # Folding combines at most `_COMPOSED` characters, so skip texts that are much longer.
    if len(text.strip()) > _COMPOSED * len(folded):
        return False
    return None if fold(text) == folded else False


def fold(text: str) -> str:
    """Normalize a text: compatibility form, case folding, no surrounding space."""
    if text.isascii():
        return text.lower().strip()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded).strip()


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a text" if len(value) <= TEXT_LIMIT else "a long text"
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else "a number"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:79]}…"
