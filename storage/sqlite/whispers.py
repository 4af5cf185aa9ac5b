"""Private answers in SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storage.codec import WHISPERS
from storage.records import SCHEMA_VERSION, Whisper
from storage.sqlite.database import Database, insert_sql

_INSERT = insert_sql("whispers", WHISPERS)

_DUE = """
SELECT * FROM whispers
WHERE due_ms <= :now AND leased_until_ms <= :now AND v = :v
ORDER BY due_ms LIMIT :limit
"""

_CLAIM = """
UPDATE whispers
SET leased_by = :owner, leased_until_ms = :until, due_ms = :until, fence = fence + 1
WHERE whisper_id = :id AND due_ms <= :now AND leased_until_ms <= :now AND v = :v
RETURNING *
"""

_RELEASE = """
UPDATE whispers SET leased_by = '', leased_until_ms = 0, due_ms = :due
WHERE whisper_id = :id AND fence = :fence AND leased_until_ms > 0
RETURNING 1
"""


class SqliteWhisperStore:
    """See `storage.base.WhisperStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, whisper: Whisper) -> bool:
        return await self._database.change(_INSERT, WHISPERS.encode(whisper))

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Whisper]:
        return await self._select(
            _DUE, {"now": now_ms, "limit": max(limit, 0), "v": SCHEMA_VERSION}
        )

    async def claim(
        self, whisper_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Whisper | None:
        values = {
            "id": whisper_id,
            "owner": owner,
            "now": now_ms,
            "until": until_ms,
            "v": SCHEMA_VERSION,
        }
        rows = await self._select(_CLAIM, values)
        return rows[0] if rows else None

    async def release(self, whisper_id: str, *, fence: int, due_ms: int | None) -> bool:
        values = {"id": whisper_id, "fence": fence, "due": due_ms}
        return await self._database.change(_RELEASE, values)

    async def _select(self, sql: str, values: Mapping[str, object]) -> list[Whisper]:
        return [WHISPERS.decode(row) for row in await self._database.fetch(sql, values)]
