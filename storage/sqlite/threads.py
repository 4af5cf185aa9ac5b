"""Threads in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import MAX_WHY, READER, THREADS
from storage.errors import RecordNotFoundError
from storage.records import Thread
from storage.sqlite.database import Database, insert_sql
from storage.sqlite.leases import HELD, Leases

_INSERT = insert_sql("threads", THREADS, returning="*")

_SELECT = "SELECT * FROM threads WHERE thread_id = :id"

_WAKE = """
UPDATE threads SET due_ms = :now, active_ms = :now, wakes = wakes + 1
WHERE thread_id = :id RETURNING 1
"""

_RUNNING = """
SELECT * FROM threads
WHERE leased_until_ms > 0 AND leased_until_ms > :now AND turn_open = 1
  AND team_id = :team AND requester_id = :requester
ORDER BY created_ms DESC, thread_id LIMIT :limit
"""

_SET_ASIDE = f"""
UPDATE threads
SET aside_by = :reader, aside_why = :why, leased_by = '', leased_until_ms = 0, clean_fence = fence
WHERE thread_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608

_EXTEND = f"""
UPDATE threads SET leased_until_ms = :until, due_ms = :until
WHERE thread_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608

_COUNT_CRASH = f"""
UPDATE threads SET crashes = crashes + 1
WHERE thread_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608

_SET_TURN = f"""
UPDATE threads
SET turn = :turn, turn_open = :turn_open,
    requesters_json = coalesce(:requesters, requesters_json)
WHERE thread_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608

_SET_REQUESTERS = f"""
UPDATE threads SET requesters_json = :requesters
WHERE thread_id = :id AND {HELD}
RETURNING 1
"""  # noqa: S608

_RELEASE = f"""
UPDATE threads
SET leased_by = '', leased_until_ms = 0, clean_fence = fence, crashes = 0,
    due_ms = CASE WHEN wakes = :wakes THEN :retry ELSE :now END,
    attempts = CASE WHEN :retry IS NULL THEN 0 ELSE attempts + 1 END,
    turn_open = CASE WHEN :ends_turn THEN 0 ELSE turn_open END
WHERE thread_id = :id AND {HELD}
RETURNING due_ms
"""  # noqa: S608


class SqliteThreadStore:
    """See `storage.ports.threads.ThreadStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.leases = Leases(database, "threads", THREADS)

    async def add(self, thread: Thread) -> bool:
        return await self._database.change(_INSERT, THREADS.encode(thread))

    async def ensure(self, thread: Thread) -> Thread:
        found = await self._database.fetch(_INSERT, THREADS.encode(thread))
        return THREADS.decode(found[0]) if found else await self.get(thread.thread_id)

    async def get(self, thread_id: str) -> Thread:
        rows = await self._database.read(_SELECT, {"id": thread_id})
        if not rows:
            raise RecordNotFoundError("thread", thread_id)
        return THREADS.decode(rows[0])

    async def wake(self, thread_id: str, *, now_ms: int) -> None:
        if not await self._database.fetch(_WAKE, {"id": thread_id, "now": now_ms}):
            raise RecordNotFoundError("thread", thread_id)

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Thread]:
        return await self.leases.due(now_ms=now_ms, limit=limit)

    async def count_due(self, *, now_ms: int) -> int:
        return await self.leases.count_due(now_ms=now_ms)

    async def running(
        self, team_id: str, requester_id: str, *, now_ms: int, limit: int
    ) -> Sequence[Thread]:
        who = {"team": team_id, "requester": requester_id}
        rows = await self._database.read(_RUNNING, {**who, "now": now_ms, "limit": max(limit, 0)})
        return THREADS.legible(rows)

    async def claim(
        self, thread_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Thread | None:
        return await self.leases.claim(thread_id, owner=owner, now_ms=now_ms, until_ms=until_ms)

    async def set_aside(self, thread_id: str, *, fence: int, why: str) -> bool:
        values = {"id": thread_id, "fence": fence, "reader": READER, "why": why[:MAX_WHY]}
        return await self._database.change(_SET_ASIDE, values)

    async def extend(self, thread_id: str, *, fence: int, until_ms: int) -> bool:
        values = {"id": thread_id, "fence": fence, "until": until_ms}
        return await self._database.change(_EXTEND, values)

    async def count_crash(self, thread_id: str, *, fence: int) -> bool:
        return await self._database.change(_COUNT_CRASH, {"id": thread_id, "fence": fence})

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
        self,
        thread_id: str,
        *,
        fence: int,
        wakes: int,
        now_ms: int,
        retry_ms: int | None = None,
        ends_turn: bool = False,
    ) -> bool:
        values = {
            "id": thread_id,
            "fence": fence,
            "wakes": wakes,
            "now": now_ms,
            "retry": retry_ms,
            "ends_turn": ends_turn,
        }
        rows = await self._database.fetch(_RELEASE, values)
        if not rows:
            return False
        due_ms = rows[0]["due_ms"]
        return not isinstance(due_ms, int) or due_ms > now_ms
