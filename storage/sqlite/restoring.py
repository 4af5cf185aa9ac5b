"""Tells whether a SQLite database is a restored copy."""

from __future__ import annotations

from storage.sqlite.backup import COPY_ID
from storage.sqlite.database import Database

_IS_COPY = "PRAGMA application_id"
_IS_NO_COPY = "PRAGMA application_id = 0"


class SqliteCopyMarks:
    """See `storage.base.CopyMarks`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def is_copy(self) -> bool:
        (row,) = await self._database.fetch(_IS_COPY)
        return bool(row["application_id"] == COPY_ID)

    async def end(self) -> None:
        await self._database.fetch(_IS_NO_COPY)
