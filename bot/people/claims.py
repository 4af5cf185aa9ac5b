"""Claims and snoozes of a pending approval. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

CLAIM_MS = 30 * 60_000
"""Longest time for which a person can claim a request, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardClaim:
    """A claim (5.9). Stored in `Approval.claim_json`: version 1, must stay readable.

    Attributes:
        by: Slack user id of the claimant; empty without a claim.
        since_ms: Start of the claim; 0 for never.
        until_ms: End of the claim.
        past: Slack user ids of all claimants so far. Each person can claim once.
    """

    by: str = ""
    since_ms: int = 0
    until_ms: int = 0
    past: tuple[str, ...] = ()

    def holds(self, at_ms: int) -> bool:
        """Whether the claim is valid at a time."""
        return bool(self.by) and self.since_ms <= at_ms < self.until_ms

    def ended(self, at_ms: int) -> CardClaim:
        """Return the claim, ended: by a vote, an edit, or a release."""
        return replace(self, by="", until_ms=min(self.until_ms, at_ms))

    def taken(self, user_id: str, at_ms: int) -> CardClaim:
        """Return a new claim of this person."""
        past = (*self.past, user_id)
        return CardClaim(by=user_id, since_ms=at_ms, until_ms=at_ms + CLAIM_MS, past=past)

    def to_text(self) -> str:
        """Serialize the claim; empty if there never was one."""
        if not self.past:
            return ""
        values = {"by": self.by, "since_ms": self.since_ms, "until_ms": self.until_ms}
        return json.dumps({**values, "past": list(self.past)}, separators=(",", ":"))


def read_claim(text: str) -> CardClaim:
    """Read a stored claim. A damaged one counts as no claim."""
    found = _object(text)
    by, past = found.get("by"), found.get("past")
    since_ms, until_ms = (found.get(name) for name in ("since_ms", "until_ms"))
    if not (isinstance(by, str) and isinstance(past, list)):
        return CardClaim()
    if not (type(since_ms) is int and type(until_ms) is int):
        return CardClaim()
    return CardClaim(by=by, since_ms=since_ms, until_ms=until_ms, past=tuple(map(str, past)))


def read_snoozes(text: str) -> Mapping[str, int]:
    """Read stored snoozes: end times by user id (5.10). Damaged ones count as none."""
    return {name: until for name, until in _object(text).items() if type(until) is int}


def write_snoozes(snoozes: Mapping[str, int]) -> str:
    """Serialize snoozes for `Approval.snoozes_json`."""
    return json.dumps(dict(snoozes), separators=(",", ":"))


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
