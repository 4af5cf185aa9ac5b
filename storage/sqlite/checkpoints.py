"""Checkpoints and their journals in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from agents.core.checkpoint import LAST, CheckpointStatus, StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from storage.codec import SCHEMA_VERSION, stored_checkpoint
from storage.sqlite.database import Database

# The head, and after it the entries of its journal: both as they were at one moment.
_LOAD = """
SELECT -1 AS position, v, data, claim, status, version, base, changes
FROM checkpoints WHERE checkpoint_id = :id
UNION ALL
SELECT journal.position, journal.v, journal.entry, '', '', 0, 0, ''
FROM checkpoints JOIN journal USING (checkpoint_id, base) WHERE checkpoint_id = :id
ORDER BY position
"""

_INSERT = """
INSERT INTO checkpoints (checkpoint_id, v, data, claim, status, version, base)
VALUES (:id, :v, :data, '', :status, 1, 1)
ON CONFLICT DO NOTHING RETURNING 1
"""

_SAVE = """
UPDATE checkpoints
SET data = :data, claim = '', changes = '', status = :status,
    version = :version + 1, base = :version + 1
WHERE checkpoint_id = :id AND version = :version AND status <> 'closed' AND v = :v
RETURNING 1
"""

_CLAIM = """
UPDATE checkpoints SET claim = :claim, status = 'running', version = :version + 1
WHERE checkpoint_id = :id AND version = :version AND status = 'pending' AND v = :v
RETURNING 1
"""

# A line for each: JSON text has no line breaks of its own.
_AMEND = """
UPDATE checkpoints
SET changes = changes || :change || char(10), claim = '', status = 'pending',
    version = :version + 1, base = :version + 1
WHERE checkpoint_id = :id AND version = :version AND status = 'running' AND v = :v
RETURNING 1
"""

_IDS = """
SELECT checkpoint_id FROM checkpoints
WHERE checkpoint_id > :after AND checkpoint_id >= :prefix AND checkpoint_id < :end
ORDER BY checkpoint_id LIMIT :limit
"""

_DELETE = """
DELETE FROM checkpoints WHERE checkpoint_id = :id AND version = :version RETURNING 1
"""

# The condition keeps out a process that slept while another one saved or finished the run: the
# journal is empty by then, so that the key alone would let it in.
_APPEND = """
INSERT INTO journal (checkpoint_id, base, position, v, entry)
SELECT checkpoint_id, base, :position, :v, :entry FROM checkpoints
WHERE checkpoint_id = :id AND base = :base AND status <> 'closed'
ON CONFLICT DO NOTHING RETURNING 1
"""

# What was said meanwhile goes in the same write: a trigger drops the journal.
_CLOSE = """
UPDATE checkpoints
SET data = '', claim = '', changes = '', status = 'closed', version = version + 1
WHERE checkpoint_id = :id AND version = :version AND status <> 'closed' AND v = :v
RETURNING 1
"""

_STATUS = "SELECT status FROM checkpoints WHERE checkpoint_id = :id"

# In one transaction with the delete of the run: the journal of one that is still there stays.
_DROP_ORPHANS = """
DELETE FROM journal WHERE checkpoint_id = :id
    AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE checkpoint_id = :id)
"""


class SqliteCheckpointStore:
    """See `agents.core.checkpoint.CheckpointStore`, `AmendingStore` and `ThreadStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        rows = await self._database.read(_LOAD, {"id": checkpoint_id})
        if not rows:
            return None
        entries = [{"v": row["v"], "entry": row["data"]} for row in rows[1:]]
        return stored_checkpoint(checkpoint_id, rows[0], entries)

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        values = {
            "id": checkpoint_id,
            "v": SCHEMA_VERSION,
            "data": data,
            "status": status.value,
            "version": expected_version,
        }
        statement = _SAVE if expected_version else _INSERT
        if not await self._database.change(statement, values):
            raise CheckpointConflictError(checkpoint_id)
        return expected_version + 1

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        values = {
            "id": checkpoint_id,
            "v": SCHEMA_VERSION,
            "claim": claim,
            "version": expected_version,
        }
        if not await self._database.change(_CLAIM, values):
            raise CheckpointConflictError(checkpoint_id)
        return expected_version + 1

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        values = {
            "id": checkpoint_id,
            "v": SCHEMA_VERSION,
            "change": change,
            "version": expected_version,
        }
        if not await self._database.change(_AMEND, values):
            raise CheckpointConflictError(checkpoint_id)
        return expected_version + 1

    async def ids(self, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        values = {"prefix": prefix, "end": f"{prefix}{LAST}", "after": after, "limit": limit}
        rows = await self._database.fetch(_IDS, values)
        return tuple(str(row["checkpoint_id"]) for row in rows)

    async def delete(self, checkpoint_id: str, *, expected_version: int) -> None:
        values = {"id": checkpoint_id, "version": expected_version}
        _, left, _ = await self._database.fetch_together(
            [(_DELETE, values), (_STATUS, values), (_DROP_ORPHANS, values)]
        )
        if left:
            raise CheckpointConflictError(checkpoint_id)

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        values = {
            "id": checkpoint_id,
            "base": base,
            "position": index,
            "v": SCHEMA_VERSION,
            "entry": entry,
        }
        if not await self._database.change(_APPEND, values):
            raise CheckpointConflictError(checkpoint_id)

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        values = {"id": checkpoint_id, "v": SCHEMA_VERSION, "version": expected_version}
        if await self._database.change(_CLOSE, values):
            return
        head = await self._database.fetch(_STATUS, values)
        if not head or head[0]["status"] != CheckpointStatus.CLOSED.value:
            raise CheckpointConflictError(checkpoint_id)
