"""The removal of old records from SQLite: found by indexes, deleted a few rows at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storage.codec import THREADS
from storage.records import SCHEMA_VERSION, Thread
from storage.retention import key_ranges, place_of
from storage.sqlite.database import Database

_HERE = "thread_id = :thread_id"
_PLACE = "channel_id = :channel_id AND thread_ts = :thread_ts"
_RANGES = len(key_ranges(""))


def _keyed(column: str) -> str:
    """Rows whose key begins with the thread's id."""
    return " OR ".join(f"({column} >= :first{n} AND {column} < :end{n})" for n in range(_RANGES))


_OF_THREAD = {
    "approvals": _HERE,
    "messages": f"{_HERE} AND status = 'taken'",
    "whispers": _PLACE,
    "grants": _HERE,
    "posts": _keyed("post_id"),
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
_LEFT = {
    "requests": "SELECT count(*) AS found FROM approvals "
    "WHERE thread_id = :thread_id AND (open = 1 OR due_ms IS NOT NULL)",
    "messages": "SELECT count(*) AS found FROM messages "
    "WHERE thread_id = :thread_id AND turn = 0 AND status = 'new'",
    "texts": "SELECT count(*) AS found FROM posts "
    "WHERE thread_id = :thread_id AND posted = 0 AND failure = ''",
    "answers": f"SELECT count(*) AS found FROM whispers "  # noqa: S608
    f"WHERE {_PLACE} AND due_ms IS NOT NULL",
}

_NEXT_TEAM = "SELECT thread_id FROM threads WHERE thread_id >= :from ORDER BY thread_id LIMIT 1"
_EXISTS = "SELECT 1 FROM threads WHERE thread_id = :id"

_RESTING = """
SELECT active_ms, thread_id FROM threads
WHERE (active_ms, thread_id) > (:active, :id) AND active_ms < :before
    AND turn_open = 0 AND due_ms IS NULL AND v = :v
ORDER BY active_ms, thread_id LIMIT :limit
"""

_SEAL = """
UPDATE threads SET leased_by = :owner, leased_until_ms = :until, fence = fence + 1
WHERE thread_id = :id AND turn_open = 0 AND due_ms IS NULL AND leased_until_ms <= :now AND v = :v
RETURNING *
"""

_FULL = """
SELECT * FROM audit WHERE thread_id = :thread_id AND erased = 0 ORDER BY at_ms LIMIT :limit
"""

_STRIP = "UPDATE audit SET content = :content, salt = :salt, erased = 1 WHERE entry_id = :id"

_DROP = """
DELETE FROM threads
WHERE thread_id = :id AND fence = :fence AND leased_until_ms > 0 AND wakes = :wakes RETURNING 1
"""

_ERASE_WHISPERS = """
DELETE FROM whispers WHERE whisper_id IN (
    SELECT whisper_id FROM whispers WHERE created_ms < :before AND due_ms IS NULL LIMIT :limit)
RETURNING 1
"""


class SqliteRetentionStore:
    """See `storage.ports.retention.RetentionStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def named(self, channel_id: str, thread_ts: str) -> Sequence[str]:
        found: list[str] = []
        start = ""
        while rows := await self._database.fetch(_NEXT_TEAM, {"from": start}):
            team = str(rows[0]["thread_id"]).partition(":")[0]
            thread_id = f"{team}:{channel_id}:{thread_ts}"
            if await self._database.fetch(_EXISTS, {"id": thread_id}):
                found.append(thread_id)
            start = f"{team};"  # all ids of a workspace are skipped at once: ; comes after :
        return found

    async def resting(
        self, *, before_ms: int, limit: int, after: tuple[int, str] = (-1, "")
    ) -> Sequence[tuple[int, str]]:
        values = {
            "active": after[0],
            "id": after[1],
            "before": before_ms,
            "limit": max(limit, 0),
            "v": SCHEMA_VERSION,
        }
        rows = await self._database.fetch(_RESTING, values)
        return [(int(str(row["active_ms"])), str(row["thread_id"])) for row in rows]

    async def left(self, thread_id: str) -> Mapping[str, int]:
        return await self._counted(_LEFT, thread_id)

    async def counts(self, thread_id: str) -> Mapping[str, int]:
        return await self._counted(_COUNT, thread_id)

    async def seal(
        self, thread_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Thread | None:
        values = {
            "id": thread_id,
            "owner": owner,
            "now": now_ms,
            "until": until_ms,
            "v": SCHEMA_VERSION,
        }
        rows = await self._database.fetch(_SEAL, values)
        return THREADS.decode(rows[0]) if rows else None

    async def erase(self, thread_id: str, *, limit: int) -> int:
        values = {**_values(thread_id), "limit": limit}
        return sum([len(await self._database.fetch(sql, values)) for sql in _ERASE.values()])

    async def strip(self, thread_id: str, *, limit: int) -> int:
        rows = await self._database.fetch(_FULL, {"thread_id": thread_id, "limit": limit})
        for row in rows:
            gone = {"id": row["entry_id"], "content": "", "salt": ""}
            await self._database.fetch(_STRIP, gone)
        return len(rows)

    async def drop(self, thread: Thread) -> bool:
        values = {"id": thread.thread_id, "fence": thread.fence, "wakes": thread.wakes}
        return await self._database.change(_DROP, values)

    async def erase_whispers(self, *, before_ms: int, limit: int) -> int:
        values = {"before": before_ms, "limit": limit}
        return len(await self._database.fetch(_ERASE_WHISPERS, values))

    async def clear_log(self) -> bool:
        return await self._database.clear_log()

    async def _counted(self, statements: Mapping[str, str], thread_id: str) -> Mapping[str, int]:
        values = _values(thread_id)
        found = {name: await self._database.count(sql, values) for name, sql in statements.items()}
        return {name: number for name, number in found.items() if number}


def _values(thread_id: str) -> dict[str, object]:
    values: dict[str, object] = {"thread_id": thread_id, **place_of(thread_id)}
    for number, (first, end) in enumerate(key_ranges(thread_id)):
        values[f"first{number}"], values[f"end{number}"] = first, end
    return values
