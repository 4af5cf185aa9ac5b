"""Rules over the name, the arguments and the tags of a call.

A condition holds, does not hold, or cannot be decided: a text where a number should be, a text too
long for a pattern, some items of a list but not others. What cannot be decided never allows: it
counts as holding where the rule asks or denies, and as not holding where it allows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, get_args

from agents.codec import Json
from agents.errors import AgentConfigError
from agents.patterns import Pattern, PatternError
from agents.policy.base import Allow, Ask, Deny, PolicyCall, Ruling

Operator = Literal["equals", "not_equals", "in", "not_in", ">", ">=", "<", "<=", "matches"]

_PATTERN_LIMIT = 200
"""The longest pattern, in characters."""
_TEXT_LIMIT = 1000
"""The longest text that is compared with a pattern."""
_DIGITS = 100
"""The longest text that is read as a number."""

_COMPARE: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """Something about one argument.

    Attributes:
        path: Where: field names and list positions with dots between, such as `items.0.price`; a
            star stands for every item of a list. An argument that is not there holds no condition,
            and for `not_equals` and `not_in` it cannot be decided.
        operator: How it is compared. A number is compared with a number, also when the argument
            is a text of digits, as decimals are. A pattern has to match the whole text; it is one
            of RE2, without look-around and back-references.
        value: With what: a list for `in` and `not_in`, a number for comparisons, a regular
            expression of at most 200 characters for `matches`, and JSON data for the rest.

    Raises:
        AgentConfigError: The value does not fit the operator, or the path is empty.
    """

    path: str
    operator: Operator
    value: Json

    def __post_init__(self) -> None:
        fault = self._fault()
        if fault:
            raise AgentConfigError(f"the condition on {self.path!r}: {fault}")

    def holds(self, arguments: Mapping[str, Json]) -> bool | None:
        """Whether it holds for these arguments; None when that cannot be decided."""
        found = _find(dict(arguments), self.path.split("."))
        if not isinstance(found, _Many):
            return self._check(found)
        results = {self._check(value) for value in found.values} or {False}
        return results.pop() if len(results) == 1 else None

    def _check(self, value: object) -> bool | None:
        negative = self.operator in {"not_equals", "not_in"}
        if isinstance(value, _Absent):
            return None if negative else False
        if isinstance(value, _Many):  # a star in a star
            results = {self._check(item) for item in value.values} or {False}
            return results.pop() if len(results) == 1 else None
        match self.operator:
            case "equals" | "not_equals":
                return _same(value, self.value) is not negative
            case "in" | "not_in":
                wanted = self.value if isinstance(self.value, list) else []
                return any(_same(value, one) for one in wanted) is not negative
            case "matches":
                return self._matches(value)
            case _:
                return self._compared(value)

    def _matches(self, value: object) -> bool | None:
        if not isinstance(value, str) or len(value) > _TEXT_LIMIT:
            return None
        return _compiled(str(self.value)).matches(value)

    def _compared(self, value: object) -> bool | None:
        number, limit = _number(value), _number(self.value)
        if number is None or limit is None:
            return None
        return _COMPARE[self.operator](number, limit)

    def _fault(self) -> str:
        if not self.path or "" in self.path.split("."):
            return "the path has an empty part; write it as `field` or `field.0.name`"
        operator: str = self.operator
        match operator:
            case "equals" | "not_equals":
                return ""
            case "in" | "not_in":
                return "" if isinstance(self.value, list) else "`in` and `not_in` take a list"
            case "matches":
                return _pattern_fault(self.value)
            case ">" | ">=" | "<" | "<=":
                is_number = isinstance(self.value, int | float) and _number(self.value) is not None
                return "" if is_number else f"{operator} takes a number"
            case _:
                return f"no operator {operator!r}; use {', '.join(get_args(Operator))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is said about calls of a kind.

    Attributes:
        tool: Name of the tool; `*` stands for any characters, `?` for one.
        tags: The tool has all of these.
        when: All of these hold.
        then: What is said.
    """

    tool: str = "*"
    tags: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    then: Ruling

    def __post_init__(self) -> None:
        if not isinstance(self.then, Allow | Deny | Ask):
            raise AgentConfigError(f"the rule for {self.tool!r} says {self.then!r}; use a ruling")

    def matches(self, call: PolicyCall) -> bool:
        """Whether it is about this call; what cannot be decided never allows."""
        if not fnmatchcase(call.tool, self.tool) or not set(self.tags) <= set(call.tags):
            return False
        results = {condition.holds(call.arguments) for condition in self.when}
        if False in results:
            return False
        return None not in results or not isinstance(self.then, Allow)


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePolicy:
    """Rules in order: the first that matches counts.

    Attributes:
        rules: In order.
        default: What is said when none matches; there is no implicit one.
    """

    rules: tuple[Rule, ...]
    default: Ruling

    async def evaluate(self, call: PolicyCall) -> Ruling:
        """Say what the first matching rule says; see `Policy.evaluate`."""
        return next((rule.then for rule in self.rules if rule.matches(call)), self.default)

    def check_names(self, known: Collection[str]) -> None:
        """Refuse a rule that is about no tool that exists; see `NamesTools`."""
        for rule in self.rules:
            if not any(fnmatchcase(name, rule.tool) for name in known):
                raise AgentConfigError(
                    f"a rule is about {rule.tool!r}, and there is no such tool; "
                    f"tools that exist: {', '.join(sorted(known)) or 'none'}"
                )


class _Absent:
    """There is nothing at a path."""


@dataclass(frozen=True, slots=True)
class _Many:
    """What is at a path with a star."""

    values: tuple[object, ...]


def _find(value: object, path: list[str]) -> object:
    """What is at a path: JSON data, `_Absent` or `_Many`."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(value, list):
        if head == "*":
            return _Many(tuple(_find(item, rest) for item in value))
        if head.isdecimal() and int(head) < len(value):
            return _find(value[int(head)], rest)
    if isinstance(value, dict) and head in value:
        return _find(value[head], rest)
    return _Absent()


def _number(value: object) -> Decimal | None:
    """Read a number, or a text of digits; None when it is neither."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and len(value) > _DIGITS:
        return None
    try:
        number = Decimal(value if isinstance(value, int) else str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _same(value: object, wanted: Json) -> bool:
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        number = _number(value)
        return number is not None and number == _number(wanted)
    # As JSON: for Python, True equals 1.
    return json.dumps(value, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def _pattern_fault(pattern: object) -> str:
    if not isinstance(pattern, str) or len(pattern) > _PATTERN_LIMIT:
        return f"`matches` takes a regular expression of at most {_PATTERN_LIMIT} characters"
    try:
        _compiled(pattern)
    except PatternError as error:
        return f"the regular expression {pattern!r} cannot be used: {error}"
    return ""


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> Pattern:
    return Pattern(pattern, dot_is_all=True)
