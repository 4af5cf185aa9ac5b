"""Finds rules that can never match, because a wider rule before them matches first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from bot.policy.evaluation.matching import is_named, names_programs
from bot.policy.model import ArgEntry, RequesterEntry, RuleEntry, When

_WILD = ("*", "?")
_STARTERS = frozenset({"api", "trigger", "schedule"})
"""Origins of threads that no person started."""
_COMPARED = 300
"""Maximum number of rules that are compared with each other. All pairs of them take 0.3 seconds."""


def shadowed(rules: Sequence[RuleEntry]) -> Iterator[tuple[int, int]]:
    """Yield the places of rules that can never match, each with the place of the rule before it.

    Only what the two rules prove is told: every call for which the later rule is true makes the
    earlier rule true.
    """
    for place, rule in enumerate(rules[:_COMPARED]):
        for before in range(place):
            if _covers(rules[before].when, rule.when) and not _may_doubt(rules[before], rule):
                yield place, before
                break


def _may_doubt(wide: RuleEntry, narrow: RuleEntry) -> bool:
    """Whether the first rule can be undecided for calls of programs that the second is about."""
    needs_origin = wide.then.allow and wide.when.origin is None
    is_doubted = needs_origin and (wide.when.program is None or _may_be_thread(narrow.when))
    return names_programs(narrow.when) and bool(
        is_doubted or wide.when.tags or wide.when.risk or wide.when.requester
    )


def _may_be_thread(when: When) -> bool:
    """Whether the conditions can hold in a thread that no person started."""
    return when.origin is None or not _STARTERS.isdisjoint(when.origin)


def _covers(wide: When, narrow: When) -> bool:
    """Whether the first rule's conditions hold wherever the second rule's hold."""
    return (
        (wide.limit is None) == (narrow.limit is None)
        and _within(narrow.limit, wide.limit)
        and _names(wide.tool, narrow.tool)
        and set(wide.tags or ()) <= set(narrow.tags or ())
        and _within(narrow.risk, wide.risk)
        and wide.gated in {None, narrow.gated}
        and _within(narrow.channel, wide.channel)
        and _within(narrow.agent, wide.agent)
        and _within(narrow.origin, wide.origin)
        and _names(wide.program, narrow.program)
        and _requested(wide.requester, narrow.requester)
        and all(any(_implies(own, arg) for own in narrow.args) for arg in wide.args)
    )


def _names(wide: tuple[str, ...] | None, narrow: tuple[str, ...] | None) -> bool:
    if wide is None:
        return True
    return narrow is not None and all(
        any(_name(pattern, name) for pattern in wide) for name in narrow
    )


def _name(wide: str, narrow: str) -> bool:
    """Whether a name or pattern covers another. Two different patterns are not compared."""
    if wide == narrow or wide.strip("*") == "":
        return True
    return not any(wildcard in narrow for wildcard in _WILD) and is_named(narrow, wide)


def _within(narrow: tuple[str, ...] | None, wide: tuple[str, ...] | None) -> bool:
    return wide is None or (narrow is not None and set(narrow) <= set(wide))


def _requested(wide: RequesterEntry | None, narrow: RequesterEntry | None) -> bool:
    if wide is None:
        return True
    if narrow is None:
        return False
    if wide.in_:
        return bool(narrow.in_) and set(narrow.in_) <= set(wide.in_)
    return bool(narrow.not_in) and set(wide.not_in) <= set(narrow.not_in)


def _implies(narrow: ArgEntry, wide: ArgEntry) -> bool:
    """Whether a condition on an argument holds wherever another one holds."""
    if (narrow.path, narrow.each, narrow.as_) != (wide.path, wide.each, wide.as_):
        return False
    own, other = _values(narrow), _values(wide)
    if narrow.op == wide.op and own == other:
        return True
    if {narrow.op, wide.op} <= {"eq", "in"}:
        return own <= other
    for strict, loose in (("gt", "ge"), ("lt", "le")):
        if {narrow.op, wide.op} <= {strict, loose}:
            return _is_beyond(narrow.value, wide.value, is_less=strict == "lt") or (
                own == other and strict == narrow.op
            )
    return False


def _is_beyond(value: object, limit: object, *, is_less: bool) -> bool:
    """Whether a number is on the far side of a limit."""
    numbers = [
        Decimal(str(number))
        for number in (value, limit)
        if isinstance(number, int | float) and not isinstance(number, bool)
    ]
    return len(numbers) == 2 and (numbers[0] < numbers[1] if is_less else numbers[0] > numbers[1])


def _values(entry: ArgEntry) -> frozenset[tuple[str, object]]:
    """Return the values with their types, because `True` equals 1 in Python."""
    values = entry.value if isinstance(entry.value, tuple) else (entry.value,)
    return frozenset((type(value).__name__, value) for value in values)
