"""The shared database: a MongoDB replica set or sharded cluster, for any number of processes."""

from __future__ import annotations

from storage.mongo.approvals.store import MongoApprovalStore
from storage.mongo.audit.store import MongoAuditStore
from storage.mongo.checkpoints import MongoCheckpointStore
from storage.mongo.client import Driver
from storage.mongo.inbox import MongoInboxStore
from storage.mongo.log import MongoMessageLog
from storage.mongo.posts import MongoPostStore
from storage.mongo.storage import MongoStorage
from storage.mongo.threads import MongoThreadStore

__all__ = [
    "Driver",
    "MongoApprovalStore",
    "MongoAuditStore",
    "MongoCheckpointStore",
    "MongoInboxStore",
    "MongoMessageLog",
    "MongoPostStore",
    "MongoStorage",
    "MongoThreadStore",
]
