"""Rights that people hand on, in SQLite: delegations, absences, standing grants."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import DELEGATIONS, GRANTS
from storage.errors import RecordNotFoundError
from storage.records import DelegationRecord, Grant
from storage.sqlite.database import Database, insert_sql
from storage.uses import used

_DELEGATION_INSERT = insert_sql("delegations", DELEGATIONS)

_DELEGATION_CURRENT = """
SELECT * FROM delegations WHERE team_id = :team AND until_ms > :now AND ended_ms IS NULL
ORDER BY created_ms, delegation_id
"""

_DELEGATION_END = """
UPDATE delegations SET ended_ms = :now WHERE delegation_id = :id AND ended_ms IS NULL RETURNING 1
"""

_DELEGATION_END_ALL = "UPDATE delegations SET ended_ms = :now WHERE ended_ms IS NULL RETURNING 1"

_DELEGATION_ERASE = """
DELETE FROM delegations WHERE delegation_id IN (
    SELECT delegation_id FROM delegations WHERE until_ms < :before LIMIT :limit)
RETURNING 1
"""


class SqliteDelegationStore:
    """See `storage.ports.rights.DelegationStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, delegation: DelegationRecord) -> bool:
        return await self._database.change(_DELEGATION_INSERT, DELEGATIONS.encode(delegation))

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        rows = await self._database.read(_DELEGATION_CURRENT, {"team": team_id, "now": now_ms})
        return DELEGATIONS.legible(rows)

    async def end(self, delegation_id: str, *, now_ms: int) -> bool:
        return await self._database.change(_DELEGATION_END, {"id": delegation_id, "now": now_ms})

    async def end_all(self, *, now_ms: int) -> int:
        return len(await self._database.fetch(_DELEGATION_END_ALL, {"now": now_ms}))

    async def erase(self, *, before_ms: int, limit: int) -> int:
        values = {"before": before_ms, "limit": limit}
        return len(await self._database.fetch(_DELEGATION_ERASE, values))


_INSERT = insert_sql("grants", GRANTS)

_SELECT = "SELECT * FROM grants WHERE grant_id = :id"

_CURRENT = """
SELECT * FROM grants WHERE thread_id = :thread AND until_ms > :now AND ended_ms IS NULL
ORDER BY created_ms, grant_id
"""

_USE = """
UPDATE grants SET used_ms = CASE WHEN uses_json = :uses THEN used_ms ELSE :now END,
    uses_json = :uses, due_ms = coalesce(:due, due_ms)
WHERE grant_id = :id AND uses_json = :before AND ended_ms IS NULL AND until_ms > :now
RETURNING *
"""

_END = """
UPDATE grants SET ended_ms = :now, ended_by = :by, due_ms = coalesce(:due, due_ms)
WHERE grant_id = :id AND ended_ms IS NULL RETURNING *
"""

_END_ALL = """
UPDATE grants SET ended_ms = :now, due_ms = :now WHERE ended_ms IS NULL RETURNING 1
"""

_MARK = """
UPDATE grants SET card_ts = :ts,
    due_ms = CASE WHEN uses_json = :uses AND ended_ms IS :ended THEN :due ELSE due_ms END
WHERE grant_id = :id
"""

_DUE = "SELECT * FROM grants WHERE due_ms <= :now ORDER BY due_ms LIMIT :limit"

_TAKE = "UPDATE grants SET due_ms = :until WHERE grant_id = :id AND due_ms = :was RETURNING 1"


class SqliteGrantStore:
    """See `storage.ports.rights.GrantStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, grant: Grant) -> bool:
        return await self._database.change(_INSERT, GRANTS.encode(grant))

    async def get(self, grant_id: str) -> Grant:
        rows = await self._database.read(_SELECT, {"id": grant_id})
        if not rows:
            raise RecordNotFoundError("grant", grant_id)
        return GRANTS.decode(rows[0])

    async def current(self, thread_id: str, *, now_ms: int) -> Sequence[Grant]:
        rows = await self._database.read(_CURRENT, {"thread": thread_id, "now": now_ms})
        return GRANTS.legible(rows)

    async def use(
        self, grant: Grant, *, call: str, now_ms: int, due_ms: int | None = None
    ) -> Grant | None:
        uses = used(grant, call)
        if uses is None:
            return None
        values = {
            "id": grant.grant_id,
            "uses": uses,
            "before": grant.uses_json,
            "now": now_ms,
            "due": due_ms,
        }
        rows = await self._database.fetch(_USE, values)
        return GRANTS.decode(rows[0]) if rows else None

    async def end(
        self, grant_id: str, *, by: str, now_ms: int, due_ms: int | None = None
    ) -> Grant | None:
        values = {"id": grant_id, "by": by, "now": now_ms, "due": due_ms}
        rows = await self._database.fetch(_END, values)
        return GRANTS.decode(rows[0]) if rows else None

    async def end_all(self, *, now_ms: int) -> int:
        return len(await self._database.fetch(_END_ALL, {"now": now_ms}))

    async def mark_card(self, drawn: Grant, *, due_ms: int | None) -> None:
        values = {
            "id": drawn.grant_id,
            "ts": drawn.card_ts,
            "uses": drawn.uses_json,
            "ended": drawn.ended_ms,
            "due": due_ms,
        }
        await self._database.fetch(_MARK, values)

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Grant]:
        return GRANTS.legible(await self._database.read(_DUE, {"now": now_ms, "limit": limit}))

    async def take(self, grant: Grant, *, until_ms: int) -> bool:
        values = {"id": grant.grant_id, "was": grant.due_ms, "until": until_ms}
        return await self._database.change(_TAKE, values)
