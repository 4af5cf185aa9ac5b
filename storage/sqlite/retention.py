"""Deletes the rows of a thread that are no documents, a few at a time, in SQLite."""

from __future__ import annotations

from collections.abc import Mapping

from storage.retention import key_ranges
from storage.sqlite.database import Database

_HERE = "thread_id = :thread_id"
_RANGES = len(key_ranges(""))


def _keyed(column: str) -> str:
    """Rows whose key begins with the thread's id."""
    return " OR ".join(f"({column} >= :first{n} AND {column} < :end{n})" for n in range(_RANGES))


_OF_THREAD = {
    "log": _keyed("log_id"),
    "checkpoints": _keyed("checkpoint_id"),
    "journal": _keyed("checkpoint_id"),
}
_ERASE = {
    table: f"DELETE FROM {table} WHERE rowid IN "  # noqa: S608 - names are our own
    f"(SELECT rowid FROM {table} WHERE {where} LIMIT :limit) RETURNING 1"
    for table, where in _OF_THREAD.items()
}
_COUNT = {
    table: f"SELECT count(*) AS found FROM {table} WHERE {where}"  # noqa: S608
    for table, where in (_OF_THREAD | {"audit": _HERE}).items()
}

_FULL = """
SELECT * FROM audit WHERE thread_id = :thread_id AND erased = 0 ORDER BY at_ms LIMIT :limit
"""

_STRIP = "UPDATE audit SET content = :content, salt = :salt, erased = 1 WHERE entry_id = :id"


class SqliteLedgers:
    """See `storage.base.Ledgers`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def counts(self, thread_id: str) -> Mapping[str, int]:
        values = _values(thread_id)
        return {name: await self._database.count(sql, values) for name, sql in _COUNT.items()}

    async def erase(self, thread_id: str, *, limit: int) -> int:
        values = {**_values(thread_id), "limit": limit}
        return sum([len(await self._database.fetch(sql, values)) for sql in _ERASE.values()])

    async def strip(self, thread_id: str, *, limit: int) -> int:
        rows = await self._database.fetch(_FULL, {"thread_id": thread_id, "limit": limit})
        for row in rows:
            gone = {"id": row["entry_id"], "content": "", "salt": ""}
            await self._database.fetch(_STRIP, gone)
        return len(rows)

    async def clear_log(self) -> bool:
        return await self._database.clear_log()


def _values(thread_id: str) -> dict[str, object]:
    values: dict[str, object] = {"thread_id": thread_id}
    for number, (first, end) in enumerate(key_ranges(thread_id)):
        values[f"first{number}"], values[f"end{number}"] = first, end
    return values
