"""The records that must survive a restart, as frozen dataclasses.

All times are integers: milliseconds since the epoch, UTC, and end in `_ms`. Texts that end in
`_json` hold JSON data. Records know nothing of a driver and nothing of Slack's API: Slack ids are
plain strings.

A record with `due_ms` is work: somebody has to handle it at that time. It is claimed with a lease
(`leased_by`, `leased_until_ms`) and a fencing number (`fence`, one higher with each claim). A claim
moves `due_ms` to the end of the lease, so that a lease that nobody released is due again by itself.
"""

from __future__ import annotations

from storage.records.approvals import (
    UNKNOWN_TS,
    Approval,
    ApprovalHead,
    Decision,
    DrawnCard,
    Kind,
    Status,
)
from storage.records.audit import AuditEntry

__all__ = [
    "SCHEMA_VERSION",
    "UNKNOWN_TS",
    "Approval",
    "ApprovalHead",
    "AuditEntry",
    "Decision",
    "DrawnCard",
    "Kind",
    "Status",
]

SCHEMA_VERSION = 1
