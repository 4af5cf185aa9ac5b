"""Checks of conditions on arguments: paths, operators, values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agents.core.patterns import Pattern, PatternError
from bot.policy.evaluation.context import ToolFacts
from bot.policy.parser.problems import PolicyProblem, nearest
from bot.policy.parser.shapes import EACH, Shape, names_near, shape_of, types_of
from bot.policy.parser.source import SourceNode
from bot.policy.values import kind

MAX_PATTERN = 200
"""Maximum length of a pattern in a policy file, in characters."""

_ORDERS = {"gt", "ge", "lt", "le"}
_LISTS = {"in", "not_in"}
_BARE = {"exists", "missing"}
_SAME = {"eq", "ne", *_LISTS}
_NUMBERS = frozenset({"number", "integer"})
_SCALARS = frozenset({"string", "boolean", "null", *_NUMBERS})


def condition_problems(arg: SourceNode, tools: Sequence[ToolFacts]) -> Iterator[PolicyProblem]:
    """Check one condition.

    Args:
        arg: Its map. Values of a wrong type are reported elsewhere.
        tools: All tools that its rule can match.
    """
    path, op = arg.get("path"), arg.get("op")
    if path is None or not isinstance(path.scalar, str) or not path.scalar:
        return
    shapes = []
    for tool in tools:
        shape = shape_of(tool.schema, path.scalar)
        if shape is None:
            yield _unknown_path(path, path.scalar, tool)
            return
        shapes.append((tool, shape))
    yield from _each(arg, path, path.scalar)
    if op is not None and isinstance(op.scalar, str):
        yield from _value(arg, op, op.scalar, shapes)


def _unknown_path(node: SourceNode, path: str, tool: ToolFacts) -> PolicyProblem:
    near = names_near(tool.schema, path)
    otherwise = f"write one of {', '.join(sorted(near))}" if near else "name an argument of it"
    return node.problem(
        "unknown_path",
        f"the tool {tool.name} has no argument {path!r}",
        nearest(path, near, otherwise),
    )


def _each(arg: SourceNode, path: SourceNode, text: str) -> Iterator[PolicyProblem]:
    has_star = EACH in text.split(".")
    each = arg.get("each")
    if has_star and each is None:
        yield path.problem(
            "each_required", "it means every item of a list", "add each: any, or each: all"
        )
    if each is not None and not has_star:
        yield each.problem("bad_value", "the path has no *", "remove each, or write a * in path")


def _value(
    arg: SourceNode, op: SourceNode, name: str, shapes: Sequence[tuple[ToolFacts, Shape]]
) -> Iterator[PolicyProblem]:
    value, as_ = arg.get("value"), arg.get("as")
    if as_ is not None and name not in _ORDERS:
        yield as_.problem("bad_value", f"{name} doesn't compare numbers", "remove as")
    if name in _BARE:
        if value is not None:
            yield value.problem("bad_value", f"{name} takes no value", "remove it")
        return
    if value is None:
        yield PolicyProblem(
            code="missing_key",
            key=arg.below("value"),
            line=arg.line,
            column=arg.column,
            fault=f"{name} needs it",
            remedy="add value",
        )
        return
    problem = _form(name, value)
    for tool, shape in shapes if problem is None else ():
        problem = _fit(op, name, tool, shape, is_number=as_ is not None) or _fitting(
            name, value, tool, shape
        )
        if problem is not None:
            break
    if problem is not None:
        yield problem


def _form(name: str, value: SourceNode) -> PolicyProblem | None:
    """Return the fault of a value that is invalid for every argument."""
    if name in _LISTS and not value.items:
        return value.problem("wrong_type", f"{name} needs a list with something in it", "write one")
    if name not in _LISTS and (value.items is not None or value.entries is not None):
        remedy = "write a single value" if name != "eq" else "write a single value, or op: in"
        return value.problem("wrong_type", f"found {kind(value.plain())}", remedy)
    if name in _ORDERS and "number" not in types_of(value.scalar):
        return value.problem("wrong_type", f"found {kind(value.scalar)}", "write a number")
    if name == "matches":
        if not isinstance(value.scalar, str):
            return value.problem("wrong_type", f"found {kind(value.scalar)}", "write a text")
        return _pattern(value, value.scalar)
    return None


def _pattern(node: SourceNode, pattern: str) -> PolicyProblem | None:
    if len(pattern) > MAX_PATTERN:
        fault = f"longer than {MAX_PATTERN} characters"
        return node.problem("bad_pattern", fault, "write several conditions or rules")
    try:
        Pattern(pattern, dot_is_all=True)
    except PatternError as error:
        remedy = "write RE2 syntax: it has no look-around and no back-references"
        return node.problem("bad_pattern", f"not a valid pattern: {error}", remedy)
    return None


def _fit(
    op: SourceNode, name: str, tool: ToolFacts, shape: Shape, *, is_number: bool
) -> PolicyProblem | None:
    """Return the fault of an operator that does not fit the argument's types."""
    wanted = _SCALARS
    if name in _ORDERS:
        wanted = _NUMBERS | ({"string"} if is_number else set())
    elif name == "matches":
        wanted = frozenset({"string"})
    elif name == "contains":
        wanted = frozenset({"string", "array"})
    if shape.types & wanted:
        return None
    remedy = f"use it where it is {' or '.join(sorted(wanted))}"
    if name in _ORDERS and "string" in shape.types:
        remedy = "add as: number, if the text is a number"
    expected = " or ".join(sorted(shape.types))
    return op.problem(
        "bad_operator", f"{name} doesn't work here: {tool.name} has {expected}", remedy
    )


def _fitting(name: str, value: SourceNode, tool: ToolFacts, shape: Shape) -> PolicyProblem | None:
    """Return the fault of a value that the argument can never have."""
    if name in _SAME:
        for node in value.items if value.items is not None else (value,):
            if problem := _same(node, tool, shape):
                return problem
    if name == "contains":
        possible = {"string"} & shape.types
        possible |= shape.items.types if shape.items is not None else set()
        if not types_of(value.scalar) & possible:
            return _never(value, tool, possible)
    return None


def _same(node: SourceNode, tool: ToolFacts, shape: Shape) -> PolicyProblem | None:
    value = node.plain()
    if not types_of(value) & shape.types & _SCALARS:
        return _never(node, tool, shape.types)
    if value is None or shape.enum is None or any(_equal(value, choice) for choice in shape.enum):
        return None
    known = [str(choice) for choice in shape.enum]
    remedy = nearest(str(value), known, f"write one of {', '.join(known)}")
    return node.problem("bad_value", f"{tool.name} never has {value!r} there", remedy)


def _equal(value: object, other: object) -> bool:
    return types_of(value) & types_of(other) != frozenset() and value == other


def _never(node: SourceNode, tool: ToolFacts, types: set[str] | frozenset[str]) -> PolicyProblem:
    expected = " or ".join(sorted(types))
    fault = f"found {kind(node.plain())}, and {tool.name} has {expected} there"
    return node.problem("wrong_type", fault, f"write {expected}")
