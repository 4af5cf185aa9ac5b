"""Due work and leases: the same statements for threads, approvals and whispers.

Each row is read alone. One that cannot be read is marked, so that this release looks at it no more;
another release, and this one when it is started again, does.
"""

from __future__ import annotations

from storage.codec import READER, Codec, Record, Row
from storage.errors import RecordFormatError
from storage.records import SCHEMA_VERSION, Unreadable
from storage.sqlite.database import Database
from storage.sqlite.reading import Reading

PAGE = 200

IS_DUE = "due_ms <= :now AND leased_until_ms <= :now AND v = :v AND aside_by <> :reader"
"""The condition of work that is due, and was not set aside by this release."""

HELD = "fence = :fence AND leased_until_ms > 0"
"""The condition, beside the key, of everything that only the holder of the lease may do."""


def break_sql(table: str) -> str:
    """Make the statement that ends all leases; what they were for is due now."""
    return (
        f"UPDATE {table} SET leased_by = '', leased_until_ms = 0, due_ms = 0 "  # noqa: S608 - ours
        "WHERE leased_until_ms > 0"
    )


def forget_sql(table: str) -> str:
    """Make the statement that has this release look again at what it could not read."""
    return (
        f"UPDATE {table} SET aside_by = '', aside_why = '' "  # noqa: S608 - ours
        "WHERE aside_by <> '' AND aside_by = :reader"  # the first part is that of an index
    )


class Leases(Reading[Record]):
    """The due rows of one table, and the right to work on them.

    Args:
        database: Where the table is.
        table: Its name.
        codec: Of its records.
    """

    def __init__(self, database: Database, table: str, codec: Codec[Record]) -> None:
        super().__init__(database, table, codec)
        key = codec.key
        # The names are our own.
        self._due = f"SELECT * FROM {table} WHERE {IS_DUE} ORDER BY due_ms LIMIT :limit"  # noqa: S608
        self._count_due = f"SELECT count(*) AS found FROM {table} WHERE {IS_DUE}"  # noqa: S608
        self._claim = (
            f"UPDATE {table} SET leased_by = :owner, leased_until_ms = :until, "  # noqa: S608
            "due_ms = :until, fence = fence + 1, aside_by = '', aside_why = '' "
            f"WHERE {key} = :id AND {IS_DUE} RETURNING *"
        )
        self._give_back = (
            f"UPDATE {table} SET aside_by = :reader, aside_why = :why, leased_by = '', "  # noqa: S608
            f"leased_until_ms = 0 WHERE {key} = :id AND leased_by = :owner RETURNING 1"
        )
        self._page = (
            f"SELECT * FROM {table} WHERE due_ms IS NOT NULL AND {key} > :last "  # noqa: S608
            f"ORDER BY {key} LIMIT {PAGE}"
        )
        self._count_unreadable = (
            f"SELECT count(*) AS found FROM {table} WHERE due_ms <= :now "  # noqa: S608
            "AND (aside_by = :reader OR v <> :v)"
        )

    async def due(self, *, now_ms: int, limit: int) -> list[Record]:
        """Read what is due and not leased, earliest first."""
        values = {**_now(now_ms), "limit": max(limit, 0)}
        return await self.each(await self._database.fetch(self._due, values))

    async def count_due(self, *, now_ms: int) -> int:
        """Count the rows that are due and not leased."""
        return await self._database.count(self._count_due, _now(now_ms))

    async def claim(self, key: str, *, owner: str, now_ms: int, until_ms: int) -> Record | None:
        """Take the lease by one conditional update; None when it cannot be had, or not be read."""
        values = {**_now(now_ms), "id": key, "owner": owner, "until": until_ms}
        rows = await self._database.fetch(self._claim, values)
        return await self.claimed(rows[0], owner=owner) if rows else None

    async def claimed(self, row: Row, *, owner: str) -> Record | None:
        """Read what was claimed; None when that cannot be done, and the lease is given back."""
        try:
            return self._codec.decode(row)
        except RecordFormatError as error:
            mark = {**self._mark_values(row, error), "owner": owner}
            await self._database.fetch(self._give_back, mark)
            return None

    async def count_unreadable(self, *, now_ms: int) -> int:
        """Count the due rows that this release cannot read."""
        return await self._database.count(self._count_unreadable, _now(now_ms))

    async def unreadable(self, *, limit: int) -> list[Unreadable]:
        """Name what has something to be done and cannot be read, or is marked."""
        found: list[Unreadable] = []
        last = ""
        while len(found) < limit:
            rows = await self._database.fetch(self._page, {"last": last})
            found += self.named(rows)
            if len(rows) < PAGE:
                break
            last = str(rows[-1][self._codec.key])
        return found[:limit]


def _now(now_ms: int) -> dict[str, object]:
    return {"now": now_ms, "v": SCHEMA_VERSION, "reader": READER}
