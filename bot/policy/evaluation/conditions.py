"""Conditions on the arguments of a call: each is true, false, or undecided.

Undecided is whatever a careful reader could not tell: nothing is at the path, the value is of
another type, a text is the same but for what people overlook. Source: the specification of
policies, 1.21 to 1.24.
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
"""True, false, or None: undecided."""
TEXT_LIMIT = 10_000
"""Maximum length of an argument that a condition searches, in characters. A longer one is
undecided."""

_DIGITS = 100
"""The longest text that is read as a number."""
_COMPOSED = 5
"""More characters than these never become one when a text is folded."""
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
"""A number in a text: digits alone, so that no two readers differ."""
_Number: TypeAlias = int | Decimal
_Test: TypeAlias = Callable[[object], DoubtAnswer]


_NOTHING = object()
"""There is nothing at a path."""
_COMPARE: Mapping[str, Callable[[_Number, _Number], bool]] = {
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}


def all_hold(truths: Iterable[DoubtAnswer]) -> DoubtAnswer:
    """Kleene's *and*: false beats undecided, and undecided beats true; true of nothing."""
    result: DoubtAnswer = True
    for truth in truths:
        if truth is False:
            return False
        if truth is None:
            result = None
    return result


def any_holds(truths: Iterable[DoubtAnswer]) -> DoubtAnswer:
    """Kleene's *or*: true beats undecided, and undecided beats false; false of nothing."""
    result: DoubtAnswer = False
    for truth in truths:
        if truth:
            return True
        if truth is None:
            result = None
    return result


def negated(truth: DoubtAnswer) -> DoubtAnswer:
    """Kleene's *not*: of undecided, undecided."""
    return None if truth is None else not truth


@dataclass(frozen=True, slots=True)
class ArgCondition:
    """A condition of a rule, ready to be judged often.

    Attributes:
        text: As people read it: `amount gt 500`.
        parts: The path.
        absent: What it is where nothing is at the path.
        rest: Judges the value at the first part of the path.
    """

    text: str
    parts: tuple[str, ...]
    absent: DoubtAnswer
    rest: _Test

    @classmethod
    def of(cls, entry: ArgEntry) -> ArgCondition:
        """Prepare a condition of a file.

        Raises:
            PatternError: Its regular expression cannot be used.
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
        """Judge these arguments."""
        value: object = arguments.get(self.parts[0], _NOTHING)
        return self.absent if value is _NOTHING else self.rest(value)

    def describe(self, arguments: Mapping[str, Json]) -> str:
        """Say what was at its path, for people who ask why."""
        if "*" in self.parts:
            return "the items differ, or there are none"
        found: list[object] = []

        def keep(value: object) -> DoubtAnswer:
            found.append(value)
            return None

        _at(self.parts, "", None, keep)(dict(arguments))
        return f"it is {_kind(found[0])}: {_shown(found[0])}" if found else "nothing is there"


def _at(parts: tuple[str, ...], each: str, absent: DoubtAnswer, test: _Test) -> _Test:
    """Make a test of the value at a path of a test of that value itself."""
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
    """A text of digits is read as its number first; what is none stays undecided."""

    def read(value: object) -> DoubtAnswer:
        number = _number_in(value) if isinstance(value, str) else value
        return None if number is None else test(number)

    return read


def _equal_to(wanted: Json) -> _Test:
    if isinstance(wanted, str):
        return _equal_text(wanted)
    number = number_of(wanted)
    if number is not None:
        return lambda value: None if (one := number_of(value)) is None else one == number
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
        # In a list of texts and numbers, those of another type say nothing.
        alike = [same(value, one) for one in choices if _is_like(value, one)]
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
    """Whether a value is what is wanted; of another type, or almost the same: undecided."""
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
    return all_hold(same(one, other) for one, other in zip(values, wanted, strict=True))


def _is_like(value: object, wanted: Json) -> bool:
    """Whether two values are of one JSON type, so that they can be compared."""
    if isinstance(wanted, bool) or wanted is None:
        return type(value) is type(wanted)
    if isinstance(wanted, int | float):
        return number_of(value) is not None
    return isinstance(value, type(wanted))


def number_of(value: object) -> _Number | None:
    """Read a number exactly; None for what is none: a boolean, or what is not finite."""
    if isinstance(value, float):
        return _exact(value) if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return value


@lru_cache(maxsize=1_000)
def _exact(value: float) -> Decimal:
    """The number as it is written: of binary fractions, the shortest decimal one."""
    return Decimal(repr(value))


def _number_in(text: str) -> Decimal | None:
    if len(text) > _DIGITS or not _NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def _almost(text: str, folded: str) -> DoubtAnswer:
    """Undecided if a text is another but for what people overlook; else false."""
    # Composed characters are at most four before: what is much longer need not be folded.
    if len(text.strip()) > _COMPOSED * len(folded):
        return False
    return None if fold(text) == folded else False


def fold(text: str) -> str:
    """A text without what people overlook: form and case of characters, spaces around it."""
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
