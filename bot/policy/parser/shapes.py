"""Paths and types of a tool's arguments, from its JSON schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EACH = "*"
"""Path segment for every item of a list."""
TYPES = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
_COMBINED = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The values that a path can have in the calls of one tool.

    Attributes:
        types: JSON types.
        enum: All values, if the schema lists them; else None.
        items: The values of items, if the value can be a list.
    """

    types: frozenset[str]
    enum: tuple[object, ...] | None = None
    items: Shape | None = None


def shape_of(schema: Mapping[str, Any], path: str) -> Shape | None:
    """Return the values that a path can have; None if the path is not in the schema."""
    parts = [schema]
    for step in path.split("."):
        parts = [below for part in parts for below in _below(schema, part, step)]
    shape = _shape(schema, parts)
    return shape if shape.types else None


def names_near(schema: Mapping[str, Any], path: str) -> list[str]:
    """Return existing paths that are similar to an unknown one."""
    steps = path.split(".")
    parts, done = [schema], 0
    for step in steps:
        below = [child for part in parts for child in _below(schema, part, step)]
        if not below:
            break
        parts, done = below, done + 1
    names = [
        str(name)
        for part in parts
        for variant in _variants(schema, part)
        for name in variant.get("properties", {})
    ]
    return [".".join((*steps[:done], name)) for name in names]


def _shape(root: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> Shape:
    variants = [variant for part in parts for variant in _variants(root, part)]
    enums = [_enum(variant) for variant in variants if variant.get("type") != "null"]
    listed = [value for enum in enums for value in enum or ()]
    items = [below for part in parts for below in _below(root, part, EACH)]
    types = frozenset(name for variant in variants for name in _types(variant))
    return Shape(
        types=types,
        enum=None if None in enums or not enums else tuple(listed),
        # For nested lists, only the types of the outer one are checked.
        items=_flat(root, items) if items and "array" in types else None,
    )


def _flat(root: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> Shape:
    variants = [variant for part in parts for variant in _variants(root, part)]
    return Shape(types=frozenset(name for variant in variants for name in _types(variant)))


def _variants(root: Mapping[str, Any], part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return all alternatives of a schema, with references resolved."""
    variants: list[Mapping[str, Any]] = []
    waiting, seen = [part], set()
    while waiting:
        variant = waiting.pop()
        if id(variant) in seen:
            continue
        seen.add(id(variant))
        more = [below for key in _COMBINED for below in variant.get(key, ())]
        if "$ref" in variant:
            more.append(_referred(root, str(variant["$ref"])))
        waiting += [below for below in more if isinstance(below, Mapping)]
        if not more or "type" in variant or "properties" in variant:
            variants.append(variant)
    return variants


def _referred(root: Mapping[str, Any], reference: str) -> object:
    node: object = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, Mapping) and name else node
    return node


def _below(
    root: Mapping[str, Any], part: Mapping[str, Any], step: str
) -> Iterator[Mapping[str, Any]]:
    for variant in _variants(root, part):
        if "array" in _types(variant) and (step == EACH or step.isdecimal()):
            yield from _items(variant, step)
        elif "object" in _types(variant):
            child = variant.get("properties", {}).get(step)
            if child is None and "type" not in variant and "properties" not in variant:
                child = {}
            yield from _open(variant.get("additionalProperties") if child is None else child)


def _items(part: Mapping[str, Any], step: str) -> Iterator[Mapping[str, Any]]:
    first = part.get("prefixItems", ())
    if step.isdecimal() and int(step) < len(first):
        yield from _open(first[int(step)])
    else:
        if step == EACH:
            for child in first:
                yield from _open(child)
        yield from _open(part.get("items", not first))


def _open(part: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(part, Mapping):
        yield part
    elif part is True:
        yield {}


def _types(part: Mapping[str, Any]) -> frozenset[str]:
    named = part.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, Sequence):
        return frozenset(str(name) for name in named)
    enum = _enum(part)
    if enum is not None:
        return frozenset(name for value in enum for name in types_of(value))
    return frozenset({"object"}) if "properties" in part else TYPES


def _enum(part: Mapping[str, Any]) -> tuple[object, ...] | None:
    if "const" in part:
        return (part["const"],)
    enum = part.get("enum")
    return tuple(enum) if isinstance(enum, Sequence) else None


def types_of(value: object) -> frozenset[str]:
    """Return the JSON types of a plain value."""
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int | float):
        whole = {"integer"} if value == int(value) else set()
        return frozenset({"number", *whole})
    if value is None:
        return frozenset({"null"})
    if isinstance(value, str):
        return frozenset({"string"})
    return frozenset({"array" if isinstance(value, list | tuple) else "object"})
