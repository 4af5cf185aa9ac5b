"""The part of JSON Schema that Countersign's forms keep: made from models, and checked."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

_ASSERTIONS = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    *("oneOf", "anyOf", "$ref"),
}
_ANNOTATIONS = {
    *("title", "description", "default", "format", "$defs", "examples", "deprecated"),
    "readOnly",  # the form shows such a value, and does not let people change it
}
_KEPT = _ASSERTIONS | _ANNOTATIONS

Fault = tuple[str, str]
"""A JSON pointer and a sentence, as in `ApiError.errors`."""


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Give the JSON Schema of a model.

    Args:
        model: A model of pydantic.

    Returns:
        Its schema, where `anyOf` with null is written as a type or null.
    """
    schema: dict[str, Any] = simplified(model.model_json_schema())
    return schema


def is_kept(schema: Any, root: Any = None) -> bool:
    """Whether a form keeps all that a schema demands.

    Args:
        schema: A JSON Schema.
        root: The schema that has the `$defs`; None: the same.
    """
    root = schema if root is None else root
    if isinstance(schema, bool):
        return True
    inner = [
        *schema.get("properties", {}).values(),
        *schema.get("$defs", {}).values(),
        *schema.get("oneOf", ()),
        *schema.get("anyOf", ()),
        schema.get("items", True),
    ]
    told_apart = all(
        any("const" in member for member in _properties(branch, root).values())
        for branch in (*schema.get("oneOf", ()), *schema.get("anyOf", ()))
    )
    rest = schema.get("additionalProperties", True)
    known = not set(schema) - _KEPT and isinstance(rest, bool)
    return known and told_apart and all(is_kept(part, root) for part in inner)


def model_faults(error: ValidationError) -> tuple[Fault, ...]:
    """Give the faults that pydantic found.

    Args:
        error: The error.

    Returns:
        Pointers and sentences; no value of an argument is in them.
    """
    return tuple(
        ("".join(f"/{part}" for part in fault["loc"]), str(fault["msg"]))
        for fault in error.errors(include_input=False, include_context=False, include_url=False)
    )


def faults(value: Any, schema: Any, root: Any = None, at: str = "") -> Iterator[Fault]:
    """Give what is wrong in a value by a schema of the part that Countersign keeps.

    Args:
        value: JSON data.
        schema: A JSON Schema, 2020-12.
        root: The schema that has the `$defs`; None: the same.
        at: JSON pointer to the value.

    Returns:
        Pointers and sentences; none if the value fits.
    """
    root = schema if root is None else root
    if isinstance(schema, bool):
        yield from () if schema else [(at, "is not allowed")]
        return
    if "$ref" in schema:
        yield from faults(value, _resolved(schema["$ref"], root), root, at)
    for keyword, fits in _RULES.items():
        if keyword in schema and not fits(value, schema[keyword]):
            yield at, f"does not fit {keyword} {schema[keyword]!r}"
    yield from _branch_faults(value, schema, root, at)
    if isinstance(value, Mapping):
        yield from _member_faults(value, schema, root, at)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from faults(item, schema.get("items", True), root, f"{at}/{number}")


def _branch_faults(value: Any, schema: Mapping[str, Any], root: Any, at: str) -> Iterator[Fault]:
    for keyword, wanted in (("oneOf", {1}), ("anyOf", range(1, sys.maxsize))):
        branches = schema.get(keyword)
        fitting = [not any(faults(value, branch, root, at)) for branch in branches or ()]
        if branches and sum(fitting) not in wanted:
            yield at, f"does not fit {keyword}"


def _member_faults(
    value: Mapping[str, Any], schema: Mapping[str, Any], root: Any, at: str
) -> Iterator[Fault]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{at}/{name}", "is missing"
    known = schema.get("properties", {})
    for name, member in value.items():
        inner = known.get(name, schema.get("additionalProperties", True))
        yield from faults(member, inner, root, f"{at}/{name}")


def _resolved(pointer: str, root: Any) -> Any:
    for part in pointer.removeprefix("#").strip("/").split("/"):
        root = root[part.replace("~1", "/").replace("~0", "~")]
    return root


def _properties(branch: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(branch, Mapping) and "$ref" in branch and "$defs" in root:
        branch = _resolved(branch["$ref"], root)
    return branch.get("properties", {}) if isinstance(branch, Mapping) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == int(value),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}


def _has_type(value: Any, types: str | list[str]) -> bool:
    return any(_TYPES[name](value) for name in ([types] if isinstance(types, str) else types))


def _is_same(value: Any, other: Any) -> bool:
    """Compare as JSON does, where 1 is 1.0, and true is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


_RULES: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": _has_type,
    "enum": lambda value, options: any(_is_same(value, option) for option in options),
    "const": _is_same,
    "minimum": lambda value, least: not _is_number(value) or value >= least,
    "maximum": lambda value, most: not _is_number(value) or value <= most,
    "exclusiveMinimum": lambda value, least: not _is_number(value) or value > least,
    "exclusiveMaximum": lambda value, most: not _is_number(value) or value < most,
    "multipleOf": lambda value, step: not _is_number(value) or (value / step) % 1 == 0,
    "minLength": lambda value, least: not isinstance(value, str) or len(value) >= least,
    "maxLength": lambda value, most: not isinstance(value, str) or len(value) <= most,
    "pattern": lambda value, form: not isinstance(value, str) or bool(re.search(form, value)),
    "minItems": lambda value, least: not isinstance(value, list) or len(value) >= least,
    "maxItems": lambda value, most: not isinstance(value, list) or len(value) <= most,
    "uniqueItems": lambda value, wanted: (
        not wanted
        or not isinstance(value, list)
        or not any(_is_same(item, other) for n, item in enumerate(value) for other in value[:n])
    ),
}


def simplified(schema: Any) -> Any:
    """Write `anyOf: [{type: T}, {type: null}]` as `type: [T, null]`, everywhere.

    Args:
        schema: A JSON Schema, or a part of one.
    """
    if isinstance(schema, list):
        return [simplified(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: simplified(part) for name, part in schema.items()}
    branches = schema.get("anyOf")
    if not isinstance(branches, list) or len(branches) != 2 or {"type": "null"} not in branches:
        return schema
    other = branches[branches.index({"type": "null"}) - 1]  # the other one of two
    if not isinstance(other.get("type"), str) or "enum" in other or "const" in other:
        return schema
    del schema["anyOf"]
    return {**other, **schema, "type": [other["type"], "null"]}
