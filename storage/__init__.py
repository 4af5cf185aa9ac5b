"""Records that survive a restart, their ports, and their errors.

The adapters are `storage.sqlite.SqliteStorage` and `storage.mongo.MongoStorage`. They are not
imported here, so that nobody loads a driver that they do not use.
"""

from __future__ import annotations

from storage.base import Storage
from storage.errors import (
    RecordConflictError,
    RecordFormatError,
    RecordNotFoundError,
    RecordRefusedError,
    StorageError,
    StoreBusyError,
    StoreUnavailableError,
)
from storage.ports.approvals import ApprovalStore
from storage.ports.audit import AuditStore
from storage.ports.messages import InboxStore, PostStore, WhisperStore
from storage.ports.threads import ThreadStore
from storage.records import (
    SCHEMA_VERSION,
    Approval,
    ApprovalHead,
    AuditEntry,
    Decision,
    DrawnCard,
    Kind,
    Message,
    MessageStatus,
    Post,
    Status,
    Thread,
    Whisper,
)

__all__ = [
    "SCHEMA_VERSION",
    "Approval",
    "ApprovalHead",
    "ApprovalStore",
    "AuditEntry",
    "AuditStore",
    "Decision",
    "DrawnCard",
    "InboxStore",
    "Kind",
    "Message",
    "MessageStatus",
    "Post",
    "PostStore",
    "RecordConflictError",
    "RecordFormatError",
    "RecordNotFoundError",
    "RecordRefusedError",
    "Status",
    "Storage",
    "StorageError",
    "StoreBusyError",
    "StoreUnavailableError",
    "Thread",
    "ThreadStore",
    "Whisper",
    "WhisperStore",
]
