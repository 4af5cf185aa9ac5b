"""The audit in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import AUDIT, read_entries
from storage.mongo.collection import Collection
from storage.mongo.documents import to_document
from storage.records import AuditEntry


class MongoAuditStore:
    """See `storage.base.AuditStore`."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    async def append(self, entry: AuditEntry) -> None:
        await self._collection.insert(to_document(AUDIT, entry))

    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        await self._collection.insert_all([to_document(AUDIT, entry) for entry in entries])

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        order = [("at_ms", 1), ("_id", 1)]
        found = await self._collection.find({"thread_id": thread_id}, order, limit)
        return read_entries({**document, AUDIT.key: document["_id"]} for document in found)
