"""Reads records one by one, so that one that cannot be read never keeps others from being read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic

from storage.aside import reason
from storage.codec import READER, Codec, Record, Row
from storage.errors import RecordFormatError
from storage.records import Unreadable
from storage.sqlite.database import Database

PAGE = 200

IS_DUE = """due_ms <= :now AND leased_until_ms <= :now AND v = :v AND aside_by <> :reader"""
"""The condition of work that is due, and was not set aside by this release."""


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
        self._give_back = (
            f"UPDATE {table} SET aside_by = :reader, aside_why = :why, leased_by = '', "  # noqa: S608
            f"leased_until_ms = 0 WHERE {key} = :id AND leased_by = :owner RETURNING 1"
        )
        self._page = (
            f"SELECT * FROM {table} WHERE due_ms IS NOT NULL AND {key} > :last "  # noqa: S608
            f"ORDER BY {key} LIMIT {PAGE}"
        )
        self._count = (
            f"SELECT count(*) AS found FROM {table} WHERE due_ms <= :now "  # noqa: S608
            "AND (aside_by = :reader OR v <> :v)"
        )
        self._marked = f"SELECT * FROM {table} WHERE aside_by <> '' ORDER BY {key} LIMIT :limit"  # noqa: S608

    async def each(self, rows: Iterable[Row]) -> list[Record]:
        """Read each row; mark those that cannot be read, and leave them out."""
        records: list[Record] = []
        for row in rows:
            try:
                records.append(self._codec.decode(row))
            except RecordFormatError as error:
                if row.get("aside_by") != READER:
                    await self._database.fetch(self._mark, self._values(row, error))
        return records

    async def claimed(self, rows: Sequence[Row], *, owner: str) -> Record | None:
        """Read the row that a claim gave; when it cannot be read, give it back and mark it."""
        if not rows:
            return None
        try:
            return self._codec.decode(rows[0])
        except RecordFormatError as error:
            values = {**self._values(rows[0], error), "owner": owner}
            await self._database.fetch(self._give_back, values)
            return None

    async def count(self, *, now_ms: int, version: int) -> int:
        """How many are due that this release cannot read."""
        values = {"now": now_ms, "reader": READER, "v": version}
        return await self._database.count(self._count, values)

    async def unreadable(self, *, limit: int) -> list[Unreadable]:
        """Name those of them that have something to be done and cannot be read, or are marked."""
        found: list[Unreadable] = []
        last = ""
        while len(found) < limit:
            rows = await self._database.fetch(self._page, {"last": last})
            found += [one for row in rows if (one := self._fault_of(row)) is not None]
            if len(rows) < PAGE:
                break
            last = str(rows[-1][self._codec.key])
        return found[:limit]

    async def marked(self, *, limit: int) -> list[Unreadable]:
        """Name those that are marked, and still cannot be read."""
        rows = await self._database.fetch(self._marked, {"limit": limit})
        return [one for row in rows if (one := self._fault_of(row)) is not None]

    def _fault_of(self, row: Row) -> Unreadable | None:
        try:
            self._codec.decode(row)
        except RecordFormatError as error:
            why = str(error)
        else:
            is_marked = self._codec.kind == "thread" and bool(row["aside_by"])
            why = str(row["aside_why"]) if is_marked else ""
        key = str(row.get(self._codec.key))
        return Unreadable(kind=self._codec.kind, record_id=key, why=why) if why else None

    def _values(self, row: Row, error: RecordFormatError) -> dict[str, object]:
        return {"id": row.get(self._codec.key), "reader": READER, "why": reason(error)}
