"""The leaves of nested arguments: the values with an input of their own.

An object whose fields are in the schema has an input for each field; every other value has one
input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bot.layout.forms.schema import Schema, resolve

Path = tuple[str, ...]
"""Names of an argument and of the nested fields, outermost first."""

_DEPTH = 4
_WHOLE = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "enum", "const", "readOnly"})


class Missing(Enum):
    """Marks an argument that was not given. Never equal to a text."""

    MISSING = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A value with an input of its own.

    Attributes:
        node: The schema of values other than null.
        nullable: Whether null is allowed.
        required: Whether it is required, if all enclosing objects are present.
        value: The current value, or `Missing.MISSING`.
        groups: Titles of the enclosing objects, outermost first.
    """

    path: Path
    node: Mapping[str, Any]
    nullable: bool
    required: bool
    value: object
    groups: tuple[str, ...] = ()


def leaves_of(schema: Schema, current: Mapping[str, Any]) -> Iterator[Leaf]:
    """Yield the leaves of arguments, in order of the schema, then of the arguments.

    Args:
        schema: JSON schema of an object.
        current: The requested arguments.
    """
    yield from _Walk(schema).inside(_Around(), schema, current)


def rebuilt(current: Mapping[str, Any], values: Mapping[Path, object]) -> dict[str, Any]:
    """Return the arguments with new values of leaves.

    Args:
        current: The requested arguments.
        values: New values by path; `Missing.MISSING` deletes a value.

    Returns:
        The new arguments. An object that was absent stays absent if it is empty, and an object that
        becomes empty is deleted.
    """
    made = dict(current)
    for name in dict.fromkeys(path[0] for path in values):
        inner = {path[1:]: value for path, value in values.items() if path[0] == name}
        value = inner[()] if () in inner else _object(current.get(name, Missing.MISSING), inner)
        if value is Missing.MISSING:
            made.pop(name, None)
        else:
            made[name] = value
    return made


def _object(before: object, values: Mapping[Path, object]) -> object:
    made = rebuilt(before if isinstance(before, Mapping) else {}, values)
    if made or before == {}:
        return made
    return before if not isinstance(before, Mapping) else Missing.MISSING


@dataclass(frozen=True, slots=True)
class _Around:
    path: Path = ()
    groups: tuple[str, ...] = ()
    is_needed: bool = True

    def inner(self, name: str, title: str, *, is_needed: bool) -> _Around:
        return _Around((*self.path, name), (*self.groups, title), self.is_needed and is_needed)


@dataclass(frozen=True, slots=True)
class _Walk:
    root: Schema

    def inside(self, place: _Around, node: Schema, current: Mapping[str, Any]) -> Iterator[Leaf]:
        properties = node.get("properties", {})
        needed: Sequence[object] = node.get("required", ())
        for name in dict.fromkeys((*properties, *current)):
            inner, nullable = resolve(properties.get(name), self.root)
            value = current.get(name, Missing.MISSING)
            is_needed = name in needed
            if len(place.path) + 1 < _DEPTH and _has_fields(inner, value):
                known = value if isinstance(value, Mapping) else {}
                given = (is_needed and not nullable) or bool(known)
                title = inner.get("title")
                words = title if isinstance(title, str) and title.strip() else name
                yield from self.inside(place.inner(name, words, is_needed=given), inner, known)
                continue
            yield Leaf(
                path=(*place.path, name),
                node=inner,
                nullable=nullable,
                required=is_needed and place.is_needed,
                value=value,
                groups=place.groups,
            )


def _has_fields(node: Schema, value: object) -> bool:
    """Whether a value is an object with all fields in the schema."""
    properties = node.get("properties")
    if node.get("type") != "object" or not isinstance(properties, Mapping) or not properties:
        return False
    if node.get("additionalProperties") or node.get("patternProperties") or _WHOLE & node.keys():
        return False
    if isinstance(value, Mapping):
        return value.keys() <= properties.keys()
    return value is Missing.MISSING or value is None
