"""Going back to a copy, in SQLite."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from storage.codec import APPROVALS, THREADS
from storage.ports.restoring import era_step
from storage.records import Approval, Thread
from storage.sqlite.backup import COPY_ID
from storage.sqlite.database import Database

logger = logging.getLogger(__name__)

_NEWEST = """
SELECT max(
    coalesce((SELECT max(at_ms) FROM audit WHERE action <> 'restored'), 0),
    coalesce((SELECT max(received_ms) FROM messages), 0),
    coalesce((SELECT max(active_ms) FROM threads), 0)) AS found
"""

_BEGIN_ERA = """
INSERT INTO era (name, number) VALUES ('era', :step)
ON CONFLICT (name) DO UPDATE SET number = number + :step
RETURNING number AS found
"""

_ERA = "SELECT coalesce(max(number), 0) AS found FROM era"

# Of the copy is all that stands in the file now: no clock is asked.
_STAMP = """
UPDATE approvals SET restored_era = :era WHERE open = 1 OR due_ms IS NOT NULL
"""

_IS_COPY = "PRAGMA application_id"
_IS_NO_COPY = "PRAGMA application_id = 0"

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
UPDATE threads SET restored_era = :era, restored_to_ms = :to, due_ms = :now,
    leased_by = '', leased_until_ms = 0, fence = fence + 1
WHERE thread_id = :id
"""

_TAKE_OLD = """
UPDATE messages SET status = 'taken', turn = -:era
WHERE thread_id = :id AND turn = 0 AND status = 'new'
"""

_SETTLE = """
UPDATE threads SET restored_era = 0, restored_turn = :turn
WHERE thread_id = :id AND fence = :fence AND leased_until_ms > 0 RETURNING 1
"""


class SqliteRestoreStore:
    """See `storage.ports.restoring.RestoreStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin_era(self) -> int:
        era = await self._database.count(_BEGIN_ERA, {"step": era_step()})
        await self._database.fetch(_STAMP, {"era": era})
        return era

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

    async def mark(self, thread_id: str, *, era: int, now_ms: int, to_ms: int) -> None:
        values = {"id": thread_id, "era": era}
        marking = (_MARK, {**values, "now": now_ms, "to": to_ms})
        await self._database.fetch_together([(_TAKE_OLD, values), marking])

    async def settle(self, thread_id: str, *, fence: int, turn: int) -> bool:
        values = {"id": thread_id, "fence": fence, "turn": turn}
        return await self._database.change(_SETTLE, values)

    async def is_copy(self) -> bool:
        (row,) = await self._database.fetch(_IS_COPY)
        return row["application_id"] == COPY_ID

    async def end(self) -> None:
        await self._database.fetch(_IS_NO_COPY)


def _last(key: str, rows: Sequence[Mapping[str, object]]) -> str:
    return str(rows[-1][key]) if rows else ""
