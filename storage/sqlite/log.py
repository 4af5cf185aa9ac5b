"""Logs in SQLite: one table each."""

from __future__ import annotations

from collections.abc import Sequence

from storage.documents import Where
from storage.log import Row
from storage.sqlite.collection import conditions
from storage.sqlite.database import Database


class SqliteLog:
    """See `storage.log.RowLog`.

    Args:
        database: The file.
        table: Name of the table.
        key: Name of the primary key column.
    """

    def __init__(self, database: Database, table: str, key: str) -> None:
        self._database, self._table, self.key = database, table, key

    async def append(self, rows: Sequence[Row]) -> bool:
        names = tuple(rows[0])
        places = f"({', '.join('?' * len(names))})"
        sql = (
            f"INSERT INTO {self._table} ({', '.join(names)}) "  # noqa: S608 - names are our own
            f"VALUES {', '.join([places] * len(rows))} ON CONFLICT DO NOTHING RETURNING 1"
        )
        values = [row[name] for row in rows for name in names]
        return bool(await self._database.fetch(sql, values))

    async def read(
        self,
        where: Where,
        sort: Sequence[str],
        *,
        limit: int | None = None,
        names: Sequence[str] | None = None,
    ) -> Sequence[Row]:
        condition, values = _where(where)
        size = -1 if limit is None else max(limit, 0)
        chosen = ", ".join(names or "*")
        sql = f"SELECT {chosen} FROM {self._table} WHERE {condition}{_order(sort)} LIMIT :limit"  # noqa: S608
        return await self._database.fetch(sql, {**values, "limit": size})

    async def count(self, where: Where) -> int:
        condition, values = _where(where)
        sql = f"SELECT count(*) AS found FROM {self._table} WHERE {condition}"  # noqa: S608
        return await self._database.count(sql, values)

    async def change(
        self, where: Where, changes: Row, *, push: tuple[str, str] | None = None
    ) -> bool:
        condition, values = _where(where)
        changed = [f"{name} = :{name}" for name in changes]
        if push is not None:  # one line per entry: JSON text contains no line breaks
            name, values["pushed"] = push
            changed.append(f"{name} = {name} || :pushed || char(10)")
        sql = f"UPDATE {self._table} SET {', '.join(changed)} WHERE {condition} RETURNING 1"  # noqa: S608
        return await self._database.change(sql, {**values, **changes})

    async def delete(self, where: Where, *, sort: Sequence[str] = (), limit: int) -> int:
        condition, values = _where(where)
        chosen = f"SELECT rowid FROM {self._table} WHERE {condition}{_order(sort)} LIMIT :limit"  # noqa: S608
        sql = f"DELETE FROM {self._table} WHERE rowid IN ({chosen}) RETURNING 1"  # noqa: S608
        return len(await self._database.fetch(sql, {**values, "limit": max(limit, 0)}))


def _where(where: Where) -> tuple[str, dict[str, object]]:
    return conditions(where, {name: name for name in where})


def _order(sort: Sequence[str]) -> str:
    names = [f"{one[1:]} DESC" if one.startswith("-") else one for one in sort]
    return f" ORDER BY {', '.join(names)}" if names else ""
