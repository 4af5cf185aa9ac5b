"""Times as plain text, for readers whose time zone is unknown."""

from __future__ import annotations

from datetime import UTC, datetime

LAST_MS = 253_402_300_799_000
"""The end of the year 9999, in milliseconds."""


def utc(at_ms: int) -> str:
    """Format a time in UTC, to the minute."""
    moment = datetime.fromtimestamp(min(max(at_ms, 0), LAST_MS) // 1_000, tz=UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"
