"""Canonical JSON, and the digest that binds a decision to the call that was shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import NoneType

from agents.core.errors import ToolError

__all__ = ["call_digest", "canonical_json"]

DIGEST_TAG = "countersign.call/2"
"""Version of the digest. Stored: must stay readable."""

_LEAVES = frozenset({NoneType, bool, int, float, str})
"""Types of JSON values without nested values."""

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
"""Made once: `json.dumps` makes a new encoder per value, which doubles the time."""


def canonical_json(value: object) -> str:
    """Write JSON data in canonical form: sorted keys, no spaces, ASCII only, no NaN.

    Args:
        value: JSON data with text keys.

    Raises:
        ToolError: The value is not JSON data.
    """
    try:
        check_keys(value)
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
    """Return the digest that a decision is bound to: 64 hexadecimal digits.

    Any different part changes the digest. The order of the arguments does not matter.

    Args:
        thread: Checkpoint id of the run.
        address: Address of the call, as text.
        tool: Name of the tool.
        arguments: Validated arguments, as `Tool.validate` returns them.
        rule: Name of the rule that requires the decision.
        ruling: The complete terms, as `Ask.to_text` writes them. Empty if no approval was required.
    """
    call: dict[str, object] = {
        "schema": DIGEST_TAG,
        "thread": thread,
        "address": address,
        "tool": tool,
        "arguments": dict(arguments),
        "rule": rule,
        "ruling": ruling,
    }
    return hashlib.sha256(canonical_json(call).encode("ascii")).hexdigest()


def rule_in(ruling: str) -> str:
    """Return the rule's name from the text of `Ask.to_text`; empty if it is damaged."""
    try:
        decoded = json.loads(ruling)
    except (ValueError, RecursionError):
        return ""
    name = decoded.get("rule") if isinstance(decoded, dict) else None
    return name if isinstance(name, str) else ""


def check_keys(value: object) -> None:
    """Refuse keys that are not text: JSON would write 1 and "1" alike."""
    if isinstance(value, dict):  # the encoder refuses all other mappings
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not text")
            if type(item) not in _LEAVES:
                check_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            if type(item) not in _LEAVES:
                check_keys(item)
