"""Private answers in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import WHISPERS
from storage.records import Whisper
from storage.sqlite.database import Database, insert_sql
from storage.sqlite.leases import HELD, Leases

_INSERT = insert_sql("whispers", WHISPERS)

_RELEASE = f"""
UPDATE whispers SET leased_by = '', leased_until_ms = 0, due_ms = :due
WHERE whisper_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608


class SqliteWhisperStore:
    """See `storage.ports.messages.WhisperStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.leases = Leases(database, "whispers", WHISPERS)

    async def add(self, whisper: Whisper) -> bool:
        return await self._database.change(_INSERT, WHISPERS.encode(whisper))

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Whisper]:
        return await self.leases.due(now_ms=now_ms, limit=limit)

    async def claim(
        self, whisper_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Whisper | None:
        return await self.leases.claim(whisper_id, owner=owner, now_ms=now_ms, until_ms=until_ms)

    async def release(self, whisper_id: str, *, fence: int, due_ms: int | None) -> bool:
        values = {"id": whisper_id, "fence": fence, "due": due_ms}
        return await self._database.change(_RELEASE, values)
