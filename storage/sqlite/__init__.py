"""The embedded database: one file, one process; or in memory, for tests."""

from __future__ import annotations

from storage.sqlite.approvals.store import SqliteApprovalStore
from storage.sqlite.audit.store import SqliteAuditStore
from storage.sqlite.backup import back_up
from storage.sqlite.checkpoints import SqliteCheckpointStore
from storage.sqlite.inbox import SqliteInboxStore
from storage.sqlite.log import SqliteMessageLog
from storage.sqlite.posts import SqlitePostStore
from storage.sqlite.storage import SqliteStorage
from storage.sqlite.threads import SqliteThreadStore

__all__ = [
    "SqliteApprovalStore",
    "SqliteAuditStore",
    "SqliteCheckpointStore",
    "SqliteInboxStore",
    "SqliteMessageLog",
    "SqlitePostStore",
    "SqliteStorage",
    "SqliteThreadStore",
    "back_up",
]
