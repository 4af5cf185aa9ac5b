"""Lists that people are shown, in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import APPROVALS, GRANTS
from storage.records import Approval, Grant
from storage.sqlite.database import Database
from storage.uses import is_used_up

_WAITING = """
SELECT * FROM approvals
WHERE status = 'pending' AND expires_ms > :now AND (expires_ms, approval_id) > (:expires_ms, :id)
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

_GRANTS = """
SELECT * FROM grants WHERE team_id = :team AND until_ms > :now AND ended_ms IS NULL
ORDER BY until_ms LIMIT :limit
"""


class SqliteListStore:
    """See `storage.ports.lists.ListStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def waiting(
        self, *, now_ms: int, limit: int, after: tuple[int, str] = (0, "")
    ) -> Sequence[Approval]:
        expires_ms, approval_id = after
        values = {"now": now_ms, "limit": limit, "expires_ms": expires_ms, "id": approval_id}
        return APPROVALS.legible(await self._database.read(_WAITING, values))

    async def ended_of(self, user_id: str, *, limit: int) -> Sequence[Approval]:
        values = {"user": user_id, "limit": limit}
        return APPROVALS.legible(await self._database.read(_ENDED_OF, values))

    async def named(self, prefix: str, *, limit: int) -> Sequence[Approval]:
        values = {"prefix": prefix, "limit": limit}
        return APPROVALS.legible(await self._database.read(_NAMED, values))

    async def calls_of(
        self, thread_id: str, *, tool: str, since_ms: int, limit: int
    ) -> Sequence[Approval]:
        values = {"thread": thread_id, "tool": tool, "since": since_ms, "limit": limit}
        return APPROVALS.legible(await self._database.read(_CALLS_OF, values))

    async def grants(self, team_id: str, *, now_ms: int, limit: int) -> Sequence[Grant]:
        values = {"team": team_id, "now": now_ms, "limit": limit}
        found = GRANTS.legible(await self._database.read(_GRANTS, values))
        lasting = [one for one in found if not is_used_up(one)]
        return sorted(lasting, key=lambda one: (one.created_ms, one.grant_id))
