"""The means of people who have not voted yet: who sees to a request, and who is left in peace.

Pure: all of it is read from the record, and written for it. Nothing here decides anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

CLAIM_MS = 30 * 60_000
"""Longest time for which a person can claim a request, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardClaim:
    """“I have it” (5.9). Stored in `Approval.claim_json`: version 1, must stay readable.

    Attributes:
        by: Slack user id of who sees to it; empty when nobody does any more.
        since_ms: Since when; 0 for never.
        until_ms: When it ends, or ended.
        past: Slack user ids of all who have had it: once is all.
    """

    by: str = ""
    since_ms: int = 0
    until_ms: int = 0
    past: tuple[str, ...] = ()

    def holds(self, at_ms: int) -> bool:
        """Whether somebody sees to it at a time."""
        return bool(self.by) and self.since_ms <= at_ms < self.until_ms

    def ended(self, at_ms: int) -> CardClaim:
        """The claim once it has ended: by a vote, an edit, or as somebody let go."""
        return replace(self, by="", until_ms=min(self.until_ms, at_ms))

    def taken(self, user_id: str, at_ms: int) -> CardClaim:
        """The claim of somebody who may have it now."""
        past = (*self.past, user_id)
        return CardClaim(by=user_id, since_ms=at_ms, until_ms=at_ms + CLAIM_MS, past=past)

    def to_text(self) -> str:
        """Write it for the record; empty while nobody has ever claimed it."""
        if not self.past:
            return ""
        values = {"by": self.by, "since_ms": self.since_ms, "until_ms": self.until_ms}
        return json.dumps({**values, "past": list(self.past)}, separators=(",", ":"))


def read_claim(text: str) -> CardClaim:
    """Read the claim of a record; one that is damaged holds nobody up."""
    found = _object(text)
    by, past = found.get("by"), found.get("past")
    since_ms, until_ms = (found.get(name) for name in ("since_ms", "until_ms"))
    if not (isinstance(by, str) and isinstance(past, list)):
        return CardClaim()
    if not (type(since_ms) is int and type(until_ms) is int):
        return CardClaim()
    return CardClaim(by=by, since_ms=since_ms, until_ms=until_ms, past=tuple(map(str, past)))


def read_snoozes(text: str) -> Mapping[str, int]:
    """Read who is not mentioned, and until when (5.10); what is damaged leaves nobody out."""
    return {name: until for name, until in _object(text).items() if type(until) is int}


def write_snoozes(snoozes: Mapping[str, int]) -> str:
    """Write them for `Approval.snoozes_json`."""
    return json.dumps(dict(snoozes), separators=(",", ":"))


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
