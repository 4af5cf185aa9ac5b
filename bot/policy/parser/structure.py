"""Faults that the models report, with positions, similar names and remedies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import isclass
from typing import get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from bot.policy.entries import Entry
from bot.policy.model import PolicyFile
from bot.policy.parser.problems import CODES, Code, PolicyProblem, nearest
from bot.policy.parser.source import SourceNode
from bot.policy.values import FROM_SETTINGS, invalid, kind

_WANTED = {
    "string_type": "a text (in quotes, if it looks like something else)",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "yes or no",
    "tuple_type": "a list",
    "dict_type": "a map",
}
_LIMITS = {
    "greater_than_equal": ("too small", "write at least {ge}"),
    "less_than_equal": ("too large", "write at most {le}"),
    "string_too_short": ("empty", "write a text"),
    "string_too_long": ("too long", "write at most {max_length} characters"),
    "too_long": ("too many", "write at most {max_length}"),
}
"""Fault and remedy of a value beyond a limit, by the type of the error."""
_PEOPLE = {"users", "usergroups", "channels", "people", "from", "by", "add"}
_LITERALS: Mapping[str | int, Code] = {"op": "bad_operator", "version": "bad_version"}


def read_structure(
    root: SourceNode, *, is_settings: bool = False
) -> tuple[PolicyFile | None, list[PolicyProblem]]:
    """Build the model of a file.

    Args:
        root: The whole file.
        is_settings: Whether it was built from the settings, which permit times below a minute.

    Returns:
        The model, or None if there are faults; and the faults.
    """
    try:
        context = FROM_SETTINGS if is_settings else None
        return PolicyFile.model_validate(root.plain(), context=context), []
    except ValidationError as error:
        return None, refused(PolicyFile, root, error)


def refused(model: type[Entry], root: SourceNode, error: ValidationError) -> list[PolicyProblem]:
    """Convert a validation error to faults with positions; at least one."""
    problems = [
        problem for details in error.errors() for problem in _problems(model, root, details)
    ]
    fault = f"can't be used: {error.errors()[0]['msg']}"
    return problems or [root.problem("bad_value", fault, "fix it")]


def _problems(
    model: type[Entry], root: SourceNode, details: ErrorDetails
) -> Iterator[PolicyProblem]:
    place = tuple(step for step in details["loc"] if step != "[key]")
    node, rest = root.at(place)
    if details["type"] == "missing":
        yield _missing(node, place, rest)
    elif details["type"] == "extra_forbidden":
        known = _known(model, place[:-1])
        remedy = nearest(str(place[-1]), known, f"write one of {', '.join(sorted(known))}")
        yield node.problem("unknown_key", "unknown key", remedy)
    elif details["type"] in CODES:
        yield _own(node, details)
    elif details["type"] == "too_short":
        # Otherwise the list is too short only because invalid items were removed.
        if len(node.items or ()) < details["ctx"]["min_length"]:
            yield _empty(node, place)
    else:
        yield _other(node, place, details)


def _missing(
    node: SourceNode, place: Sequence[str | int], rest: Sequence[str | int]
) -> PolicyProblem:
    name = str(place[-1]) if rest else ""
    return PolicyProblem(
        code="missing_key",
        key=node.below(name),
        line=node.line,
        column=node.column,
        fault="required",
        remedy=f"add {name}",
    )


def _own(node: SourceNode, details: ErrorDetails) -> PolicyProblem:
    words = details["ctx"]
    code: Code = next(code for code in get_args(Code) if code == details["type"])
    return node.problem(code, words["fault"], words["remedy"])


def _empty(node: SourceNode, place: Sequence[str | int]) -> PolicyProblem:
    last = place[-1]
    if last in _PEOPLE:
        return node.problem("empty_group", "the group is empty", "name at least one")
    if last == "approve":
        return node.problem("no_approvers", "no one is asked", "write {from: [group]}")
    return node.problem("bad_value", "too short", "write more of them, or leave the key out")


def _other(node: SourceNode, place: Sequence[str | int], details: ErrorDetails) -> PolicyProblem:
    last = next((step for step in reversed(place) if isinstance(step, str)), "")
    value, words = node.plain(), details.get("ctx", {})
    if details["type"] == "literal_error":
        code = _LITERALS.get(last, "bad_value" if isinstance(value, str) else "wrong_type")
        remedy = f"write {words['expected']}"
        known = [word.strip("'") for word in words["expected"].replace(" or ", ", ").split(", ")]
        if isinstance(value, str):
            remedy = nearest(value, known, remedy)
        return node.problem(code, invalid(value), remedy)
    if details["type"] in _WANTED:
        wanted = _WANTED[details["type"]]
        return node.problem("wrong_type", f"found {kind(value)}", f"write {wanted}")
    if details["type"] in _LIMITS:
        fault, remedy = _LIMITS[details["type"]]
        return node.problem("bad_value", fault, remedy.format(**words))
    remedy = details["msg"].replace("Input should", "it should", 1)
    return node.problem("bad_value", "can't be used", remedy[:1].lower() + remedy[1:])


def _known(model: type[Entry], place: Sequence[str | int]) -> set[str]:
    entry = model
    for step in place:
        for name, field in entry.model_fields.items():
            if step in (name, field.alias):
                entry = _entry(field.annotation) or entry
    return {field.alias or name for name, field in entry.model_fields.items()}


def _entry(annotation: object) -> type[Entry] | None:
    if isclass(annotation) and issubclass(annotation, Entry):
        return annotation
    entries = (_entry(argument) for argument in get_args(annotation))
    return next((entry for entry in entries if entry is not None), None)
