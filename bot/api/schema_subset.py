"""The JSON Schema that programs may send: a form keeps each of its constraints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator

from agents.core.patterns import Pattern
from bot.api.bodies import pointer_of
from bot.api.canonical import canonical
from bot.api.problems import ApiFault
from bot.layout.forms.schema import check_arguments, foreign

MAX_SCHEMA = 32 * 1024
"""Maximum size of a schema as canonical JSON, in bytes."""
MAX_SCHEMA_DEPTH = 16
"""Maximum depth of a schema."""
MAX_SCHEMAS = 500
"""Maximum number of schemas in a schema."""
MAX_PATTERN = 200
"""Maximum length of a pattern of a schema, in characters."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_SIZES = ("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "pattern", "format")
_SHAPES = ("type", "properties", "required", "additionalProperties", "items", "enum", "const")
_ALTERNATIVES = ("oneOf", "anyOf", "$ref", "$defs", "$schema")
_WORDS = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
_MEDIA = ("$comment", "contentEncoding", "contentMediaType")
_KEPT = frozenset((*_NUMBERS, *_SIZES, *_SHAPES, *_ALTERNATIVES, *_WORDS, *_MEDIA))
_FORMATS = ("date", "date-time", "email", "uri")
_NULL = {"type": "null"}

Path: TypeAlias = tuple[str | int, ...]


def schema_faults(schema: Mapping[str, Any]) -> list[ApiFault]:
    """Return what a form would not keep of a schema; empty if it keeps all.

    Args:
        schema: JSON data: the schema of an object.

    Returns:
        Faults with pointers into the schema.
    """
    if len(canonical(schema)) > MAX_SCHEMA:
        return [ApiFault("", f"is larger than {MAX_SCHEMA} bytes")]
    faults = list(SchemaWalk(schema).faults(schema, ()))
    if faults:
        return faults
    if _has_cycle(schema.get("$defs", {})):
        return [ApiFault("/$defs", "has a schema that leads to itself")]
    if schema.get("type") != "object":
        return [ApiFault("/type", "must be `object`")]
    validator = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    wrong = validator.iter_errors(schema)
    return [
        ApiFault(pointer_of(error.absolute_path), "is no JSON Schema 2020-12") for error in wrong
    ]


def misfits(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[ApiFault]:
    """Return where arguments do not fit the schema of a program; empty if they fit.

    Args:
        schema: A schema without `schema_faults`.
        arguments: JSON data.

    Returns:
        Faults with pointers into the arguments.
    """
    faults = check_arguments(foreign(schema), arguments)
    return [ApiFault(pointer, detail) for pointer, detail in faults.items()]


@dataclass
class SchemaWalk:
    """One walk over all schemas in a schema."""

    root: Mapping[str, Any]
    count: int = 0

    def faults(self, node: object, path: Path, depth: int = 0) -> Iterator[ApiFault]:
        """Yield the faults of a schema and of those in it."""
        self.count += 1
        if not isinstance(node, Mapping):
            yield _fault(path, "is no object")
        elif depth >= MAX_SCHEMA_DEPTH or self.count > MAX_SCHEMAS:
            yield _fault(path, "makes the schema too deep or too large")
        else:
            yield from self._keywords(node, path)
            for name, value in node.items():
                yield from self._value(name, value, (*path, name))
            for below, inner in _inner(node):
                yield from self.faults(inner, (*path, *below), depth + 1)

    def _keywords(self, node: Mapping[str, Any], path: Path) -> Iterator[ApiFault]:
        for name in node:
            if name not in _KEPT and not name.startswith("x-"):
                yield _fault((*path, name), "is a keyword that forms do not keep")
            elif name in ("$defs", "$schema") and path:
                yield _fault((*path, name), "stands only at the top")

    def _value(self, name: str, value: Any, path: Path) -> Iterator[ApiFault]:
        match name:
            case "type" if not _is_type(value):
                yield _fault(path, "is one type, or one and null")
            case "additionalProperties" if not isinstance(value, bool):
                yield _fault(path, "is true or false")
            case "pattern" if not _is_pattern(value):
                yield _fault(path, f"is an RE2 pattern of at most {MAX_PATTERN} characters")
            case "format" if value not in _FORMATS:
                yield _fault(path, f"is one of {', '.join(_FORMATS)}")
            case "$schema" if value != DIALECT:
                yield _fault(path, f"is {DIALECT}")
            case "oneOf" | "anyOf" if not self._is_told_apart(value):
                yield _fault(
                    path, "is one schema and null, or objects that one `const` tells apart"
                )
            case "$ref" if self._target(value) is None:
                yield _fault(path, "leads to no `#/$defs/…` of this schema")
            case _:
                pass

    def _target(self, value: object) -> Mapping[str, Any] | None:
        start, _, name = value.rpartition("/") if isinstance(value, str) else ("", "", "")
        defs = self.root.get("$defs")
        target = defs.get(name) if start == "#/$defs" and isinstance(defs, Mapping) else None
        return target if isinstance(target, Mapping) else None

    def _is_told_apart(self, value: object) -> bool:
        branches = value if isinstance(value, list) else []
        others = [branch for branch in branches if branch != _NULL]
        if len(others) == 1 and len(branches) == 2:
            return True
        objects = [self._resolved(branch) for branch in others]
        constants = [_constants(item) for item in objects]
        names = set.intersection(*map(set, constants)) if len(constants) > 1 else set()
        return any(
            len({canonical(each[name]) for each in constants}) == len(others) for name in names
        )

    def _resolved(self, branch: Any) -> Mapping[str, Any]:
        if isinstance(branch, Mapping) and "$ref" in branch:
            return self._target(branch["$ref"]) or {}
        return branch if isinstance(branch, Mapping) else {}


def _has_cycle(defs: Mapping[str, Any]) -> bool:
    leads = {f"#/$defs/{name}": set(_refs(node)) for name, node in defs.items()}
    try:
        TopologicalSorter(leads).prepare()
    except CycleError:
        return True
    return False


def _constants(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constants of an object's required properties."""
    properties, required = node.get("properties"), node.get("required")
    if node.get("type") != "object" or not isinstance(properties, Mapping):
        return {}
    return {
        name: part["const"]
        for name, part in properties.items()
        if isinstance(part, Mapping)
        and "const" in part
        and isinstance(required, Sequence)
        and name in required
    }


def _inner(node: Mapping[str, Any]) -> Iterator[tuple[Path, object]]:
    """Yield the schemas directly in a schema, with their paths."""
    for name in ("properties", "$defs"):
        if isinstance(below := node.get(name), Mapping):
            yield from (((name, key), inner) for key, inner in below.items())
    if "items" in node:
        yield ("items",), node["items"]
    for name in ("oneOf", "anyOf"):
        if isinstance(branches := node.get(name), list):
            yield from (((name, place), inner) for place, inner in enumerate(branches))


def _refs(node: object) -> Iterator[object]:
    if isinstance(node, Mapping):
        if "$ref" in node:
            yield node["$ref"]
        for _, inner in _inner(node):
            yield from _refs(inner)


def _is_type(value: object) -> bool:
    kinds = value if isinstance(value, list) else [value]
    others = [kind for kind in kinds if kind != "null"]
    return len(others) <= 1 and len(kinds) <= 2


def _is_pattern(value: object) -> bool:
    if not isinstance(value, str) or len(value) > MAX_PATTERN:
        return False
    try:
        Pattern(value)
    except ValueError:
        return False
    return True


def _fault(path: Path, detail: str) -> ApiFault:
    return ApiFault(pointer_of(path), detail)
