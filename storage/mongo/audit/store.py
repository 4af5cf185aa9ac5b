"""The audit in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence

from storage.chain import Seal
from storage.codec import AUDIT
from storage.ledger import entry_of_row, row_of
from storage.mongo.commands import Commands
from storage.mongo.documents import Document
from storage.records import AuditEntry


class MongoAuditStore:
    """See `storage.ports.audit.AuditStore`.

    Args:
        collection: The entries.
        seal: Marks what is appended, where there is a key.
    """

    def __init__(self, collection: Commands, seal: Seal) -> None:
        self._collection, self._seal = collection, seal

    async def append(self, entry: AuditEntry) -> None:
        await self._collection.insert(open_document(entry, self._seal))

    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        await self._collection.insert_all([open_document(entry, self._seal) for entry in entries])

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        order = [("at_ms", 1), ("_id", 1)]
        found = await self._collection.find({"thread_id": thread_id}, order, limit)
        return [entry_of_row({**document, AUDIT.key: document["_id"]}) for document in found]


def open_document(entry: AuditEntry, seal: Seal) -> Document:
    """Make the document of an entry that is not sealed yet.

    Raises:
        RecordRefusedError: A value is not JSON data.
    """
    row = row_of(entry, seal)
    key = row.pop(AUDIT.key)
    return {"_id": key, **row}
