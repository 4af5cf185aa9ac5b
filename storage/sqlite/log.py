"""The agents' message histories in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import stored_text
from storage.records import SCHEMA_VERSION
from storage.sqlite.database import Database

_INSERT = """
INSERT INTO log (log_id, turn, v, data) VALUES (:log_id, :turn, :v, :data) ON CONFLICT DO NOTHING
"""

_SELECT = "SELECT v, data FROM log WHERE log_id = :log_id AND turn < :before ORDER BY turn"


class SqliteMessageLog:
    """See `agents.core.checkpoint.MessageLog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, log_id: str, turn: int, data: str) -> None:
        values = {"log_id": log_id, "turn": turn, "v": SCHEMA_VERSION, "data": data}
        await self._database.fetch(_INSERT, values)

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        rows = await self._database.fetch(_SELECT, {"log_id": log_id, "before": before_turn})
        return [stored_text("log entry", log_id, row) for row in rows]
