"""The leaves of arguments: what a form asks for by itself, where arguments are objects in objects.

An object whose fields a schema names has an input for each of them; every other value has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bot.layout.forms.schema import Schema, resolve

Path = tuple[str, ...]
"""Names of an argument and of the fields in it, from the outside."""

_DEPTH = 4
_UNIONS = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "enum", "const"})


class Missing(Enum):
    """Stands for an argument that was not given; never taken for a text."""

    MISSING = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A value that has an input of its own.

    Attributes:
        path: Where it is.
        node: What its schema says of values other than null.
        nullable: Whether null is allowed.
        required: Whether it must be given, as far as nothing around it may be left out.
        value: The current value, or `Missing.MISSING`.
        groups: The titles of the objects around it, from the outside.
    """

    path: Path
    node: Mapping[str, Any]
    nullable: bool
    required: bool
    value: object
    groups: tuple[str, ...] = ()


def leaves_of(schema: Schema, current: Mapping[str, Any]) -> Iterator[Leaf]:
    """Yield the leaves of arguments, in the order of the schema, then of the arguments.

    Args:
        schema: JSON schema of an object.
        current: The arguments as asked for.
    """
    yield from _Walk(schema).inside(_Around(), schema, current)


def rebuilt(current: Mapping[str, Any], values: Mapping[Path, object]) -> dict[str, Any]:
    """Put values back to their places.

    Args:
        current: The arguments as asked for.
        values: The new values of leaves, by path; `Missing.MISSING` takes one away.

    Returns:
        The arguments with them. An object that was not there stays so where it has nothing in it,
        and one that has nothing left in it goes.
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
    """Whether a value is an object all of whose fields the schema names."""
    properties = node.get("properties")
    if node.get("type") != "object" or not isinstance(properties, Mapping) or not properties:
        return False
    if node.get("additionalProperties") or node.get("patternProperties") or _UNIONS & node.keys():
        return False
    if isinstance(value, Mapping):
        return value.keys() <= properties.keys()
    return value is Missing.MISSING or value is None
