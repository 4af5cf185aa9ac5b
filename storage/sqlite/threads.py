"""Threads in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import MAX_WHY, READER, THREADS
from storage.errors import RecordNotFoundError
from storage.records import SCHEMA_VERSION, Thread
from storage.sqlite.database import Database, insert_sql
from storage.sqlite.reading import IS_DUE, Reading

_INSERT = insert_sql("threads", THREADS, returning="*")

_SELECT = "SELECT * FROM threads WHERE thread_id = :id"

_WAKE = """
UPDATE threads SET due_ms = :now, active_ms = :now, wakes = wakes + 1
WHERE thread_id = :id RETURNING 1
"""

_DUE = f"SELECT * FROM threads WHERE {IS_DUE} ORDER BY due_ms LIMIT :limit"  # noqa: S608

_COUNT_DUE = f"SELECT count(*) AS found FROM threads WHERE {IS_DUE}"  # noqa: S608

_CLAIM = f"""
UPDATE threads
SET leased_by = :owner, leased_until_ms = :until, due_ms = :until, fence = fence + 1,
    aside_by = '', aside_why = ''
WHERE thread_id = :id AND {IS_DUE}
RETURNING *
"""  # noqa: S608

_SET_ASIDE = """
UPDATE threads SET aside_by = :reader, aside_why = :why, leased_by = '', leased_until_ms = 0
WHERE thread_id = :id AND fence = :fence AND leased_until_ms > 0
RETURNING 1
"""

_EXTEND = """
UPDATE threads SET leased_until_ms = :until, due_ms = :until
WHERE thread_id = :id AND fence = :fence AND leased_until_ms > 0
RETURNING 1
"""

_SET_TURN = """
UPDATE threads
SET turn = :turn, turn_open = :turn_open,
    requesters_json = coalesce(:requesters, requesters_json)
WHERE thread_id = :id AND fence = :fence AND leased_until_ms > 0
RETURNING 1
"""

_SET_REQUESTERS = """
UPDATE threads SET requesters_json = :requesters
WHERE thread_id = :id AND fence = :fence AND leased_until_ms > 0
RETURNING 1
"""

_RELEASE = """
UPDATE threads
SET leased_by = '', leased_until_ms = 0,
    due_ms = CASE WHEN wakes = :wakes THEN :retry ELSE :now END,
    attempts = CASE WHEN :retry IS NULL THEN 0 ELSE attempts + 1 END
WHERE thread_id = :id AND fence = :fence AND leased_until_ms > 0
RETURNING due_ms
"""


class SqliteThreadStore:
    """See `storage.base.ThreadStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.reading = Reading(database, "threads", THREADS)

    async def ensure(self, thread: Thread) -> Thread:
        # Most are there already, and to read costs less than to try to write.
        key = {"id": thread.thread_id}
        found = await self._database.fetch(_SELECT, key) or await self._database.fetch(
            _INSERT, THREADS.encode(thread)
        )
        return THREADS.decode(found[0]) if found else await self.get(thread.thread_id)

    async def get(self, thread_id: str) -> Thread:
        rows = await self._database.fetch(_SELECT, {"id": thread_id})
        if not rows:
            raise RecordNotFoundError("thread", thread_id)
        return THREADS.decode(rows[0])

    async def wake(self, thread_id: str, *, now_ms: int) -> None:
        if not await self._database.change(_WAKE, {"id": thread_id, "now": now_ms}):
            raise RecordNotFoundError("thread", thread_id)

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Thread]:
        values = {**_due_values(now_ms), "limit": max(limit, 0)}
        return await self.reading.each(await self._database.fetch(_DUE, values))

    async def count_due(self, *, now_ms: int) -> int:
        return await self._database.count(_COUNT_DUE, _due_values(now_ms))

    async def claim(
        self, thread_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Thread | None:
        values = {
            "id": thread_id,
            "owner": owner,
            "now": now_ms,
            "until": until_ms,
            "v": SCHEMA_VERSION,
            "reader": READER,
        }
        rows = await self._database.fetch(_CLAIM, values)
        return await self.reading.claimed(rows, owner=owner)

    async def set_aside(self, thread_id: str, *, fence: int, why: str) -> bool:
        values = {"id": thread_id, "fence": fence, "reader": READER, "why": why[:MAX_WHY]}
        return await self._database.change(_SET_ASIDE, values)

    async def extend(self, thread_id: str, *, fence: int, until_ms: int) -> bool:
        values = {"id": thread_id, "fence": fence, "until": until_ms}
        return await self._database.change(_EXTEND, values)

    async def set_turn(
        self,
        thread_id: str,
        *,
        fence: int,
        turn: int,
        turn_open: bool,
        requesters_json: str | None = None,
    ) -> bool:
        values = {
            "id": thread_id,
            "fence": fence,
            "turn": turn,
            "turn_open": turn_open,
            "requesters": requesters_json,
        }
        return await self._database.change(_SET_TURN, values)

    async def set_requesters(self, thread_id: str, *, fence: int, requesters_json: str) -> bool:
        values = {"id": thread_id, "fence": fence, "requesters": requesters_json}
        return await self._database.change(_SET_REQUESTERS, values)

    async def release(
        self, thread_id: str, *, fence: int, wakes: int, now_ms: int, retry_ms: int | None = None
    ) -> bool:
        values = {
            "id": thread_id,
            "fence": fence,
            "wakes": wakes,
            "now": now_ms,
            "retry": retry_ms,
        }
        rows = await self._database.fetch(_RELEASE, values)
        if not rows:
            return False
        due_ms = rows[0]["due_ms"]
        return not isinstance(due_ms, int) or due_ms > now_ms


def _due_values(now_ms: int) -> dict[str, object]:
    return {"now": now_ms, "v": SCHEMA_VERSION, "reader": READER}
