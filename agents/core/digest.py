"""Canonical JSON, and the digest that binds a decision to what was shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import NoneType

from agents.core.errors import ToolError

__all__ = ["call_digest", "canonical_json"]

DIGEST_TAG = "countersign.call/2"
"""The rule that digests are made by: the whole ruling is in them. Stored: must stay readable."""
OLD_TAG = "countersign.call/1"
"""The rule before that: of the ruling it had the name alone. Stored: must stay readable."""

_LEAVES = frozenset({NoneType, bool, int, float, str})
"""Types of values that hold no others."""

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
"""Made once: `json.dumps` makes one for each value, which takes twice as long as its writing."""


def canonical_json(value: object) -> str:
    """Write JSON data in its one form: sorted keys, no spaces, ASCII only, no NaN.

    Args:
        value: JSON data with text keys.

    Raises:
        ToolError: The value is not JSON data.
    """
    try:
        _check_keys(value)
        return _CANONICAL.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(f"not JSON data: {error}") from error


def call_digest(
    *,
    thread: str,
    address: str,
    tool: str,
    arguments: Mapping[str, object],
    rule: str,
    ruling: str = "",
) -> str:
    """Compute what a decision is bound to: 64 hexadecimal digits.

    Any difference in any part gives another digest; the order of the arguments does not count.

    Args:
        thread: Id of the checkpoint that the call belongs to.
        address: Where in the run the call stands, as text.
        tool: Name of the tool.
        arguments: Canonical arguments, as `Tool.validate` returns them.
        rule: Name of the rule that asked for a decision.
        ruling: The whole ruling, as `Ask.to_text` writes it; empty where nobody was asked, and in
            what was asked before rulings were a part of digests.
    """
    call: dict[str, object] = {
        "schema": DIGEST_TAG if ruling else OLD_TAG,
        "thread": thread,
        "address": address,
        "tool": tool,
        "arguments": dict(arguments),
        "rule": rule,
    }
    if ruling:
        call["ruling"] = ruling
    return hashlib.sha256(canonical_json(call).encode("ascii")).hexdigest()


def rule_in(ruling: str) -> str:
    """The name of the rule in a ruling that `Ask.to_text` wrote; empty when it is damaged."""
    try:
        found = json.loads(ruling)
    except (ValueError, RecursionError):
        return ""
    name = found.get("rule") if isinstance(found, dict) else None
    return name if isinstance(name, str) else ""


def _check_keys(value: object) -> None:
    """Refuse keys that JSON would silently turn into text: 1 and "1" must not meet."""
    if isinstance(value, dict):  # any other mapping is no JSON data, says the encoder
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not text")
            if type(item) not in _LEAVES:
                _check_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            if type(item) not in _LEAVES:
                _check_keys(item)
