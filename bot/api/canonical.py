"""Digests over canonical JSON (RFC 8785), which programs in other languages can make again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import rfc8785

MOST_EXACT = 2**53 - 1
"""Largest integer that every JSON parser reads exactly."""

CALL_VERSION = "countersign.call/3"


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of JSON data, by RFC 8785: the same bytes in every language.

    Raises:
        ValueError: An integer is not exact in every parser, a number is not finite, a text has a
            lone surrogate, or the value is not JSON data.
    """
    return rfc8785.dumps(value)


def call_digest(request_id: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the digest of a decided call, as the program makes it of what it is about to run.

    Raises:
        ValueError: The arguments have no canonical JSON.
    """
    call = {"v": CALL_VERSION, "request": request_id, "tool": tool, "arguments": dict(arguments)}
    return f"sha256:{hashlib.sha256(canonical(call)).hexdigest()}"
