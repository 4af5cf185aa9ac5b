"""The records that must survive a restart and are no documents, as frozen dataclasses.

All times are integers: milliseconds since the epoch, UTC, and end in `_ms`. Records know nothing of
a driver and nothing of Slack's API: Slack ids are plain strings.
"""

from __future__ import annotations

from storage.records.audit import AuditEntry

__all__ = [
    "SCHEMA_VERSION",
    "AuditEntry",
]

SCHEMA_VERSION = 1
