"""Canonical JSON by RFC 8785, and the digest of a call that is made from it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

LARGEST_INTEGER = 2**53 - 1
"""Integers up to this one are the same number in each program that reads JSON."""


def canonical(value: Any) -> bytes:
    """Write JSON data in the one form that RFC 8785 allows.

    Args:
        value: JSON data: None, bool, int, float, str, and sequences and mappings of these.

    Returns:
        UTF-8 without blanks, members sorted by the UTF-16 code units of their names.

    Raises:
        ValueError: A number is not finite or is an integer that a double cannot hold, or a text has
            a lone surrogate.
        TypeError: Something is no JSON data.

    Source:
        https://www.rfc-editor.org/rfc/rfc8785
    """
    return _text(value).encode()


def strict_json(text: str) -> Any:
    """Parse JSON that each parser reads alike.

    Args:
        text: The JSON.

    Raises:
        ValueError: It is no JSON, has NaN or Infinity, or a member twice in an object.
        RecursionError: It is nested too deep.
    """
    return json.loads(text, object_pairs_hook=_members, parse_constant=_refuse)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member stands twice in an object")
    return members


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def digest(request_id: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """Work out the digest of a call, from what is about to run.

    Args:
        request_id: The request: `apr_` and 32 hexadecimal digits.
        tool: The tool's name.
        arguments: The complete arguments, JSON data.

    Returns:
        `sha256:` and 64 hexadecimal digits.

    Raises:
        ValueError: As `canonical`.
        TypeError: As `canonical`.
    """
    call = {"v": "countersign.call/3", "request": request_id, "tool": tool, "arguments": arguments}
    return "sha256:" + hashlib.sha256(canonical(call)).hexdigest()


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return _double(float(value))
    if isinstance(value, Mapping):
        names = sorted(map(_name, value), key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{_text(name)}:{_text(value[name])}" for name in names) + "}"
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return "[" + ",".join(map(_text, value)) + "]"
    raise TypeError(f"{type(value).__name__} is no JSON data")


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a member is {type(name).__name__}; JSON has text only")
    return name


def _integer(value: int) -> str:
    if abs(value) <= LARGEST_INTEGER:
        return str(value)
    if abs(value) >= 2**1024 or int(float(value)) != value:
        raise ValueError("an integer beyond 2^53 - 1 is no exact number in JSON; give it as text")
    return _double(float(value))  # a double that a reader of JSON took for an integer


def _double(value: float) -> str:
    """Write a double as JavaScript's Number.prototype.toString does."""
    if not math.isfinite(value):
        raise ValueError("NaN and infinity are no JSON data")
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    shown = "".join(map(str, digits))
    point = len(shown) + int(exponent)  # digits before the decimal point
    if len(shown) <= point <= 21:
        number = shown.ljust(point, "0")
    elif 0 < point <= 21:
        number = f"{shown[:point]}.{shown[point:]}"
    elif -6 < point <= 0:
        number = "0." + "0" * -point + shown
    else:
        fraction = f".{shown[1:]}" if shown[1:] else ""
        number = f"{shown[0]}{fraction}e{point - 1:+d}"
    return f"-{number}" if sign else number
