"""Private answers in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import READER, WHISPERS
from storage.records import SCHEMA_VERSION, Whisper
from storage.sqlite.database import Database, insert_sql
from storage.sqlite.reading import IS_DUE, Reading

_INSERT = insert_sql("whispers", WHISPERS)

_DUE = f"SELECT * FROM whispers WHERE {IS_DUE} ORDER BY due_ms LIMIT :limit"  # noqa: S608

_CLAIM = f"""
UPDATE whispers
SET leased_by = :owner, leased_until_ms = :until, due_ms = :until, fence = fence + 1,
    aside_by = '', aside_why = ''
WHERE whisper_id = :id AND {IS_DUE}
RETURNING *
"""  # noqa: S608

_RELEASE = """
UPDATE whispers SET leased_by = '', leased_until_ms = 0, due_ms = :due
WHERE whisper_id = :id AND fence = :fence AND leased_until_ms > 0
RETURNING 1
"""


class SqliteWhisperStore:
    """See `storage.base.WhisperStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.reading = Reading(database, "whispers", WHISPERS)

    async def add(self, whisper: Whisper) -> bool:
        return await self._database.change(_INSERT, WHISPERS.encode(whisper))

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Whisper]:
        values = {**_due_values(now_ms), "limit": max(limit, 0)}
        return await self.reading.each(await self._database.fetch(_DUE, values))

    async def claim(
        self, whisper_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Whisper | None:
        values = {
            "id": whisper_id,
            "owner": owner,
            "now": now_ms,
            "until": until_ms,
            "v": SCHEMA_VERSION,
            "reader": READER,
        }
        rows = await self._database.fetch(_CLAIM, values)
        return await self.reading.claimed(rows, owner=owner)

    async def release(self, whisper_id: str, *, fence: int, due_ms: int | None) -> bool:
        values = {"id": whisper_id, "fence": fence, "due": due_ms}
        return await self._database.change(_RELEASE, values)


def _due_values(now_ms: int) -> dict[str, object]:
    return {"now": now_ms, "v": SCHEMA_VERSION, "reader": READER}
