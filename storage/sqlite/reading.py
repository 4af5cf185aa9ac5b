"""Reads records one by one, so that one that cannot be read never keeps others from being read."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Generic

from storage.aside import reason
from storage.codec import READER, Codec, Record, Row
from storage.errors import RecordFormatError
from storage.records import Unreadable
from storage.sqlite.database import Database

logger = logging.getLogger(__name__)


class Reading(Generic[Record]):
    """Turns rows of one table into records; sets aside what is none.

    Args:
        database: Where the table is.
        table: Its name.
        codec: Of its records.
    """

    def __init__(self, database: Database, table: str, codec: Codec[Record]) -> None:
        key = codec.key
        self._database = database
        self._codec = codec
        self._mark = f"UPDATE {table} SET aside_by = :reader, aside_why = :why WHERE {key} = :id"  # noqa: S608
        self._marked = f"SELECT * FROM {table} WHERE aside_by <> '' ORDER BY {key} LIMIT :limit"  # noqa: S608

    async def each(self, rows: Iterable[Row]) -> list[Record]:
        """Read each row; mark those that cannot be read, and leave them out."""
        records: list[Record] = []
        for row in rows:
            try:
                records.append(self._codec.decode(row))
            except RecordFormatError as error:
                if row.get("aside_by") != READER:
                    await self._database.fetch(self._mark, self._mark_values(row, error))
        return records

    async def marked(self, *, limit: int) -> list[Unreadable]:
        """Name those that are marked, and still cannot be read."""
        return self.named(await self._database.fetch(self._marked, {"limit": limit}))

    def named(self, rows: Iterable[Row]) -> list[Unreadable]:
        """Name those that cannot be read; and threads of which something else cannot be."""
        return [one for row in rows if (one := self._named(row)) is not None]

    def _named(self, row: Row) -> Unreadable | None:
        try:
            self._codec.decode(row)
        except RecordFormatError as error:
            why = str(error)
        else:
            is_marked = self._codec.kind == "thread" and bool(row["aside_by"])
            why = str(row["aside_why"]) if is_marked else ""
        key = str(row.get(self._codec.key))
        return Unreadable(kind=self._codec.kind, record_id=key, why=why) if why else None

    def _mark_values(self, row: Row, fault: RecordFormatError) -> dict[str, object]:
        return {"id": row.get(self._codec.key), "reader": READER, "why": reason(fault)}
