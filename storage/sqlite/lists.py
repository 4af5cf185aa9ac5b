"""Lists that people are shown, in SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storage.codec import APPROVALS
from storage.pages import end_of, filled
from storage.ports.lists import START, Place
from storage.records import Approval
from storage.sqlite.database import Database

_WAITING = """
SELECT * FROM approvals
WHERE status = 'pending' AND expires_ms > :now AND (expires_ms, approval_id) > (:expires_ms, :id)
ORDER BY expires_ms, approval_id LIMIT :limit
"""

_ASKED_BY = """
SELECT * FROM approvals
WHERE requester_id = :user AND status = 'pending' AND expires_ms > :now
    AND (expires_ms, approval_id) > (:expires_ms, :id)
ORDER BY expires_ms, approval_id LIMIT :limit
"""

_ENDED_OF = """
SELECT * FROM approvals WHERE approval_id IN (
    SELECT approval_id FROM (
        SELECT approval_id, created_ms FROM approvals
        WHERE decision IS NOT NULL AND json_valid(decision)
            AND json_extract(decision, '$.by') = :user AND status <> 'pending'
        ORDER BY created_ms DESC LIMIT :limit)
    UNION
    SELECT approval_id FROM (
        SELECT approval_id, created_ms FROM approvals
        WHERE requester_id = :user AND status <> 'pending'
        ORDER BY created_ms DESC LIMIT :limit))
ORDER BY created_ms DESC, approval_id DESC LIMIT :limit
"""

_NAMED = """
SELECT * FROM approvals WHERE approval_id >= :prefix AND approval_id < :prefix || char(1114111)
ORDER BY approval_id LIMIT :limit
"""

_CALLS_OF = """
SELECT * FROM approvals
WHERE thread_id = :thread AND created_ms >= :since AND tool = :tool AND kind = 'approval'
ORDER BY created_ms DESC, position DESC LIMIT :limit
"""


class SqliteListStore:
    """See `storage.ports.lists.ListStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def waiting(
        self, *, now_ms: int, limit: int, after: Place = START
    ) -> tuple[Sequence[Approval], Place | None]:
        return await self._page(_WAITING, {"now": now_ms}, limit, after)

    async def asked_by(
        self, user_id: str, *, now_ms: int, limit: int, after: Place = START
    ) -> tuple[Sequence[Approval], Place | None]:
        return await self._page(_ASKED_BY, {"user": user_id, "now": now_ms}, limit, after)

    async def ended_of(self, user_id: str, *, limit: int) -> Sequence[Approval]:
        return await self._filled(_ENDED_OF, {"user": user_id}, limit)

    async def named(self, prefix: str, *, limit: int) -> Sequence[Approval]:
        return await self._filled(_NAMED, {"prefix": prefix}, limit)

    async def calls_of(
        self, thread_id: str, *, tool: str, since_ms: int, limit: int
    ) -> Sequence[Approval]:
        values = {"thread": thread_id, "tool": tool, "since": since_ms}
        return await self._filled(_CALLS_OF, values, limit)

    async def _page(
        self, sql: str, values: Mapping[str, object], limit: int, after: Place
    ) -> tuple[Sequence[Approval], Place | None]:
        expires_ms, approval_id = after
        where = {**values, "limit": limit, "expires_ms": expires_ms, "id": approval_id}
        rows = await self._database.read(sql, where)
        return APPROVALS.legible(rows), end_of(rows, APPROVALS.key, limit=limit)

    async def _filled(
        self, sql: str, values: Mapping[str, object], limit: int
    ) -> Sequence[Approval]:
        async def read(rows: int) -> tuple[Sequence[Approval], int]:
            found = await self._database.read(sql, {**values, "limit": rows})
            return APPROVALS.legible(found), len(found)

        return await filled(limit, read)
