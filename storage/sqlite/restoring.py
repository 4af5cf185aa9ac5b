"""Going back to a copy, in SQLite."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from storage.codec import APPROVALS, THREADS
from storage.records import Approval, Thread
from storage.sqlite.database import Database

logger = logging.getLogger(__name__)

_NEWEST = """
SELECT max(
    coalesce((SELECT max(at_ms) FROM audit WHERE action <> 'restored'), 0),
    coalesce((SELECT max(received_ms) FROM messages), 0),
    coalesce((SELECT max(active_ms) FROM threads), 0)) AS found
"""

_BEGIN_ERA = """
INSERT INTO era (name, began_ms) VALUES ('era', :now)
ON CONFLICT (name) DO UPDATE SET began_ms = max(began_ms + 1, excluded.began_ms)
"""

_ERA = "SELECT coalesce(max(began_ms), 0) AS found FROM era"

_LEASED = """
SELECT (SELECT count(*) FROM threads WHERE leased_until_ms > :now)
    + (SELECT count(*) FROM approvals WHERE leased_until_ms > :now) AS found
"""

_PENDING = """
SELECT * FROM approvals WHERE approval_id > :after AND open = 1 AND status = 'pending'
ORDER BY approval_id LIMIT :limit
"""

_UNFINISHED = """
SELECT * FROM threads WHERE thread_id > :after AND (turn_open = 1 OR due_ms IS NOT NULL)
ORDER BY thread_id LIMIT :limit
"""

_COLUMNS = ", ".join(f"{name} = :{name}" for name in APPROVALS.names if name != APPROVALS.key)

_REWRITE = f"""
UPDATE approvals SET {_COLUMNS}
WHERE approval_id = :approval_id AND revision = :revision - 1 RETURNING 1
"""  # noqa: S608 - names are our own

_MARK = """
UPDATE threads SET restored_ms = :now, restored_to_ms = :to, due_ms = :now,
    leased_by = '', leased_until_ms = 0, fence = fence + 1
WHERE thread_id = :id
"""

_SETTLE = """
UPDATE threads SET restored_ms = 0, restored_turn = :turn
WHERE thread_id = :id AND fence = :fence AND leased_until_ms > 0 RETURNING 1
"""


class SqliteRestoreStore:
    """See `storage.ports.restoring.RestoreStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin_era(self, *, now_ms: int) -> None:
        await self._database.fetch(_BEGIN_ERA, {"now": now_ms})

    async def era(self) -> int:
        return await self._database.count(_ERA, {})

    async def newest_ms(self) -> int:
        return await self._database.count(_NEWEST, {})

    async def leased(self, *, now_ms: int) -> int:
        return await self._database.count(_LEASED, {"now": now_ms})

    async def pending(self, *, limit: int, after: str = "") -> tuple[Sequence[Approval], str]:
        rows = await self._database.fetch(_PENDING, {"limit": limit, "after": after})
        return APPROVALS.legible(rows), _last(APPROVALS.key, rows)

    async def unfinished(self, *, limit: int, after: str = "") -> tuple[Sequence[Thread], str]:
        rows = await self._database.fetch(_UNFINISHED, {"limit": limit, "after": after})
        return THREADS.legible(rows), _last(THREADS.key, rows)

    async def rewrite(self, approval: Approval) -> bool:
        return await self._database.change(_REWRITE, APPROVALS.encode(approval))

    async def mark(self, thread_id: str, *, now_ms: int, to_ms: int) -> None:
        await self._database.fetch(_MARK, {"id": thread_id, "now": now_ms, "to": to_ms})

    async def settle(self, thread_id: str, *, fence: int, turn: int) -> bool:
        values = {"id": thread_id, "fence": fence, "turn": turn}
        return await self._database.change(_SETTLE, values)


def _last(key: str, rows: Sequence[Mapping[str, object]]) -> str:
    return str(rows[-1][key]) if rows else ""
