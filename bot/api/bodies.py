"""Read bodies strictly: JSON that every parser reads alike, then the shape."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from bot.api.canonical import MOST_EXACT, canonical
from bot.api.problems import ApiFault, ApiProblemError

MAX_BODY = 256 * 1024
"""Maximum size of a body, in bytes."""
MAX_NESTING = 32
"""Maximum depth of a body."""
MAX_ARGUMENTS = 64 * 1024
"""Maximum size of arguments as canonical JSON, in bytes."""
MAX_ARGUMENTS_DEPTH = 16
"""Maximum depth of arguments."""
MAX_MEMBERS = 1_000
"""Maximum number of members of arguments, in all objects."""

M = TypeVar("M", bound=BaseModel)

# A string that does not end is read once, too: else each quotation mark in it begins another one.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?+|[\[{]|[\]}]', re.DOTALL)


def parse_json(body: bytes) -> object:
    """Parse a body.

    Raises:
        ApiProblemError: `malformed-json` or `duplicate-member`. The text is not JSON in UTF-8, is
            nested too deep, or has a member twice, an infinite number, or half a character.
    """
    try:
        text = body.decode()
        if _depth(text) > MAX_NESTING:
            _malformed(f"it is nested deeper than {MAX_NESTING} levels")
        value: object = _STRICT.decode(text)
        json.dumps(value, ensure_ascii=False).encode()  # fails for half of a surrogate pair
    except (ValueError, RecursionError) as error:
        _malformed("send one JSON value in UTF-8; no NaN, no Infinity, no lone surrogate", error)
    return value


def _malformed(detail: str, error: Exception | None = None) -> NoReturn:
    raise ApiProblemError("malformed-json", detail) from error


def _depth(text: str) -> int:
    depth = deepest = 0
    for match in _BRACKETS.finditer(text):
        if (sign := match[0]) in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ApiProblemError("duplicate-member", "parsers disagree on which of the two counts")
    return members


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refused(text)


_STRICT = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refused, parse_float=_finite)


def shaped(model: type[M], value: object) -> M:
    """Return a body in its shape.

    Raises:
        ApiProblemError: `number-out-of-range`, or `invalid` with all faults.
    """
    if far := [ApiFault(pointer, "is beyond 2^53 - 1: send a text") for pointer in _inexact(value)]:
        raise ApiProblemError("number-out-of-range", "not every parser reads it", faults=far)
    try:
        body = model.model_validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        faults = [ApiFault(_pointer(fault["loc"]), _detail(fault["msg"])) for fault in details]
        raise ApiProblemError("invalid", faults=faults) from None
    if faults := list(_too_large(getattr(body, "arguments", None))):
        raise ApiProblemError("invalid", faults=faults)
    return body


def _detail(message: str) -> str:
    if message.startswith("Input should be a valid dictionary"):  # with the name of our class
        return "Input should be an object"
    return message.removeprefix("Value error, ")


def _pointer(path: tuple[str | int, ...]) -> str:
    """Return the pointer of a fault; a fault of a name is at its member."""
    return pointer_of(path[:-1] if path[-1:] == ("[key]",) else path)


def pointer_of(path: Iterable[str | int]) -> str:
    """Return the JSON pointer (RFC 6901) of a path."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _inexact(value: object, path: tuple[str | int, ...] = ()) -> Iterator[str]:
    """Yield the pointers of integers that JavaScript would change."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MOST_EXACT:
        yield pointer_of(path)
    for name, item in _members(value):
        yield from _inexact(item, (*path, name))


def _members(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _too_large(arguments: Mapping[str, Any] | None) -> Iterator[ApiFault]:
    if arguments is None:
        return
    if len(canonical(arguments)) > MAX_ARGUMENTS:
        yield ApiFault("/arguments", f"is larger than {MAX_ARGUMENTS} bytes of canonical JSON")
    depth, members = _measure(arguments)
    if depth > MAX_ARGUMENTS_DEPTH:
        yield ApiFault("/arguments", f"is nested deeper than {MAX_ARGUMENTS_DEPTH} levels")
    if members > MAX_MEMBERS:
        yield ApiFault("/arguments", f"has more than {MAX_MEMBERS} members")


def _measure(value: object) -> tuple[int, int]:
    """Return the depth of a value, and how many members its objects have."""
    below = [_measure(item) for _, item in _members(value)]
    is_nested = isinstance(value, Mapping | list)
    depth = max((depth for depth, _ in below), default=0) + is_nested
    own = len(value) if isinstance(value, Mapping) else 0
    return depth, own + sum(members for _, members in below)
