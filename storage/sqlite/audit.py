"""The audit in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import AUDIT, read_entries
from storage.records import AuditEntry
from storage.sqlite.database import Database, insert_sql, inserts

_INSERT = insert_sql("audit", AUDIT)

_OF_THREAD = """
SELECT * FROM audit WHERE thread_id = :thread_id ORDER BY at_ms, entry_id LIMIT :limit
"""


class SqliteAuditStore:
    """See `storage.base.AuditStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, entry: AuditEntry) -> None:
        await self._database.fetch(_INSERT, AUDIT.encode(entry))

    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        await self._database.fetch_together(inserts("audit", AUDIT, entries))

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        values = {"thread_id": thread_id, "limit": max(limit, 0)}
        return read_entries(await self._database.fetch(_OF_THREAD, values))
