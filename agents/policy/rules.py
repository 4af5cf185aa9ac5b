"""Policy rules that match the name, the arguments and the tags of a call.

A condition is true, false or undecided. It is undecided if the path has no value or one of another
type, if texts differ only in case, if a text is too long for a pattern, or if only some items of a
list match. For an undecided rule, the call is evaluated both with and without it, and the strictest
ruling counts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, cast, get_args

from agents.core.codec import Json
from agents.core.errors import AgentConfigError
from agents.core.patterns import Pattern, PatternError
from agents.core.tools import ToolSpec
from agents.policy.base import Allow, Ask, Deny, PolicyCall, Ruling
from agents.policy.checks import check_rule_names, has_path, people_of
from agents.policy.combine import strictest

Operator = Literal["equals", "not_equals", "in", "not_in", ">", ">=", "<", "<=", "matches"]

_PATTERN_LIMIT = 200
"""Maximum length of a pattern of a policy in code, in characters."""
_TEXT_LIMIT = 1000
"""Maximum length of a text for a pattern of a policy in code, in characters."""
_DIGITS = 100
"""Length up to which a text is read as a number, in characters."""

_COMPARE: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    ">": lambda value, other: value > other,
    ">=": lambda value, other: value >= other,
    "<": lambda value, other: value < other,
    "<=": lambda value, other: value <= other,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one argument.

    Attributes:
        path: Field names and list positions with dots between, such as `items.0.price`. A star
            stands for every item of a list. Undecided without a value at the path, or if it has
            another type than `value`.
        operator: Numbers are compared with numbers and with texts of digits, as decimals are
            written. Texts are compared exactly; undecided if they differ only in case, in
            surrounding spaces or in the Unicode form. A pattern must match the whole text; it is
            an RE2 pattern, without look-around and back-references.
        value: A list for `in` and `not_in`, a number for comparisons, a regular expression of at
            most 200 characters for `matches`, else JSON data.

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
        """Whether the condition is true for these arguments; None if undecided."""
        argument = _value_at(dict(arguments), self.path.split("."))
        if not isinstance(argument, _Many):
            return self._check(argument)
        results = {self._check(value) for value in argument.values} or {False}
        return results.pop() if len(results) == 1 else None

    def _check(self, value: object) -> bool | None:
        if isinstance(value, _Absent):
            return None
        if isinstance(value, _Many):  # a star inside a star
            results = {self._check(item) for item in value.values} or {False}
            return results.pop() if len(results) == 1 else None
        operator, is_negative = self.operator, self.operator.startswith("not_")
        if operator in {"in", "not_in"}:
            result = self._is_in(value)
        elif operator in {"equals", "not_equals"}:
            result = _same(value, self.value)
        else:
            is_text = operator == "matches"
            result = self._matches(value) if is_text else self._compared(value)
        return not result if is_negative and result is not None else result

    def _is_in(self, value: object) -> bool | None:
        wanted = cast("list[Json]", self.value)
        # In a mixed list, wanted values of another type must not make the result undecided.
        results = {_same(value, candidate) for candidate in wanted if _is_like(value, candidate)}
        if True in results:
            return True
        return False if results == {False} or not wanted else None

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
    """A ruling for calls that match.

    Attributes:
        tool: Name of the tool; `*` matches any characters, `?` matches one.
        tags: The tool must have all of these.
        when: All of these must be true.
        then: The ruling.
    """

    tool: str = "*"
    tags: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    then: Ruling

    def __post_init__(self) -> None:
        if not isinstance(self.then, Allow | Deny | Ask):
            raise AgentConfigError(f"the rule for {self.tool!r} says {self.then!r}; use a ruling")

    def matches(self, call: PolicyCall) -> bool | None:
        """Whether the rule matches this call; None if undecided."""
        if not self.is_about(call.tool, call.tags):
            return False
        results = {condition.holds(call.arguments) for condition in self.when}
        # One false condition decides, whatever the undecided ones are.
        if False in results:
            return False
        return None if None in results else True

    def is_about(self, tool: str, tags: Collection[str]) -> bool:
        """Whether the rule can match a tool with this name and these tags."""
        return fnmatchcase(tool, self.tool) and set(self.tags) <= set(tags)

    def check_tool(self, tool: ToolSpec) -> None:
        """Refuse an argument or a tag that the tool does not have; see `Policy`."""
        missing = sorted(set(self.tags) - set(tool.tags))
        if self.tool == tool.name and missing:
            raise AgentConfigError(
                f"a rule is about {tool.name!r} with the tag {missing[0]!r}, and the tool does not "
                f"have it; its tags are: {', '.join(tool.tags) or 'none'}"
            )
        if not self.is_about(tool.name, tool.tags):
            return
        for condition in self.when:
            if not has_path(tool.schema, condition.path.split(".")):
                known = tool.schema.get("properties")
                fields = ", ".join(known) if isinstance(known, dict) and known else "none"
                raise AgentConfigError(
                    f"a rule about {self.tool!r} names the argument {condition.path!r}, and "
                    f"{tool.name!r} has no such argument; its arguments are: {fields}. Name in "
                    "`tool` or `tags` only the tools that have it"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePolicy:
    """An ordered list of rules: the first that matches counts.

    An undecided rule is remembered and the search continues. The strictest of the rulings found
    counts.

    Attributes:
        rules: In order.
        default: The ruling if no rule matches.

    Raises:
        AgentConfigError: Two rulings that ask have the same name.
    """

    rules: tuple[Rule, ...]
    default: Ruling

    def __post_init__(self) -> None:
        check_rule_names(self.rule_names())

    async def evaluate(self, call: PolicyCall) -> Ruling:
        """Return the ruling of the first matching rule; see `Policy.evaluate`."""
        rulings: list[Ruling] = []
        for rule in self.rules:
            matches = rule.matches(call)
            # An undecided rule counts, too: the call may be one that it is meant for.
            if matches is not False:
                rulings.append(rule.then)
            if matches:
                return strictest(rulings)
        return strictest([*rulings, self.default])

    def rule_names(self) -> tuple[str, ...]:
        """Return the names of the rules that ask; see `Policy`."""
        rulings = (*(rule.then for rule in self.rules), self.default)
        return tuple(ruling.rule for ruling in rulings if isinstance(ruling, Ask))

    def check_tool(self, tool: ToolSpec) -> None:
        """Refuse rules about arguments that the tool does not have; see `Policy`."""
        for rule in self.rules:
            rule.check_tool(tool)

    def check_tags(self, known: Collection[str]) -> None:
        """Refuse tags that no tool has; see `Policy`."""
        for rule in self.rules:
            for tag in rule.tags:
                if tag not in known:
                    raise AgentConfigError(
                        f"a rule is about tools with the tag {tag!r}, and no tool has it; "
                        f"tags that tools have: {', '.join(sorted(known)) or 'none'}"
                    )

    def check_names(self, known: Collection[str]) -> None:
        """Refuse a rule that matches no existing tool; see `Policy`."""
        for rule in self.rules:
            if not any(fnmatchcase(name, rule.tool) for name in known):
                raise AgentConfigError(
                    f"a rule is about {rule.tool!r}, and there is no such tool; "
                    f"tools that exist: {', '.join(sorted(known)) or 'none'}"
                )

    def people(self) -> tuple[str, ...]:
        """Return the people that the rules and the default may ask; see `Policy`."""
        return people_of(*(rule.then for rule in self.rules), self.default)


class _Absent:
    """Marks a path without a value."""


@dataclass(frozen=True, slots=True)
class _Many:
    """The values at a path with a star."""

    values: tuple[object, ...]


def _value_at(value: object, path: list[str]) -> object:
    """Return the value at a path: JSON data, `_Absent` or `_Many`."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(value, list):
        if head == "*":
            return _Many(tuple(_value_at(item, rest) for item in value))
        if head.isdecimal() and int(head) < len(value):
            return _value_at(value[int(head)], rest)
    if isinstance(value, dict) and head in value:
        return _value_at(value[head], rest)
    return _Absent()


def _number(value: object) -> Decimal | None:
    """Read a number or a text of digits; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    # No number is that long, and parsing a long text takes time.
    if isinstance(value, str) and len(value) > _DIGITS:
        return None
    try:
        number = Decimal(value if isinstance(value, int) else str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _same(value: object, wanted: Json) -> bool | None:
    """Whether a value is equal; None if it has another type or is almost equal."""
    if not _is_like(value, wanted):
        # A value is certainly not null; other types may hold the same value in another form.
        return False if wanted is None else None
    match wanted:
        case list():
            return _same_items(cast("list[object]", value), wanted)
        case dict():
            mapping = cast("dict[str, object]", value)
            items = [mapping.get(name) for name in wanted]
            return set(mapping) == set(wanted) and _same_items(items, list(wanted.values()))
        case str(text) if value != text:
            # "DELETE " may be meant as "delete", so the texts are not certainly different.
            return None if _folded(str(value)) == _folded(text) else False
        case _:
            is_number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
            return _number(value) == _number(wanted) if is_number else value == wanted


def _same_items(values: list[object], wanted: list[Json]) -> bool | None:
    if len(values) != len(wanted):
        return False
    results = {_same(value, other) for value, other in zip(values, wanted, strict=True)}
    if False in results:
        return False
    return None if None in results else True


def _is_like(value: object, wanted: Json) -> bool:
    """Whether two values have the same type; a text of digits is a number."""
    if isinstance(wanted, bool):
        return isinstance(value, bool)
    if isinstance(wanted, int | float):
        return _number(value) is not None
    return isinstance(value, type(wanted))


def _folded(text: str) -> str:
    """Return a text without differences that people overlook."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


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
