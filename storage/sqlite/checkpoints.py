"""Checkpoints and their journals in SQLite: a journal has a table of its own."""

from __future__ import annotations

from typing import ClassVar

from agents.core.checkpoint import StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from storage.checkpoints import Checkpoints, stored_checkpoint
from storage.log import SCHEMA_VERSION, Row, check_version
from storage.sqlite.database import Database
from storage.sqlite.log import SqliteLog

# One statement reads the head and its journal, so both are of one moment.
_LOAD = """
SELECT -1 AS position, v, data, claim, status, version, base, changes
FROM checkpoints WHERE checkpoint_id = :id
UNION ALL
SELECT journal.position, journal.v, journal.entry, '', '', 0, 0, ''
FROM checkpoints JOIN journal USING (checkpoint_id, base) WHERE checkpoint_id = :id
ORDER BY position
"""

# The condition refuses a process that was suspended while another process saved or finished the
# run: the journal is empty by then, so the primary key alone would accept the entry.
_APPEND = """
INSERT INTO journal (checkpoint_id, base, position, v, entry)
SELECT checkpoint_id, base, :position, :v, :entry FROM checkpoints
WHERE checkpoint_id = :id AND base = :base AND status <> 'closed'
ON CONFLICT DO NOTHING RETURNING 1
"""


class SqliteCheckpoints(Checkpoints):
    """See `storage.checkpoints.Checkpoints`.

    Triggers delete the journal of a run that is closed or deleted.

    Args:
        database: The file.
    """

    no_journal: ClassVar[Row] = {}
    no_changes: ClassVar[Row] = {"changes": ""}
    no_content: ClassVar[Row] = {"data": "", "claim": "", "changes": ""}

    def __init__(self, database: Database) -> None:
        super().__init__(SqliteLog(database, "checkpoints", "checkpoint_id"))
        self._database = database

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        rows = await self._database.read(_LOAD, {"id": checkpoint_id})
        for row in rows[1:]:
            check_version("journal entry", row["v"], checkpoint_id)
        entries = [row["data"] for row in rows[1:]]
        return stored_checkpoint(checkpoint_id, rows[0], entries) if rows else None

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        place = {"id": checkpoint_id, "base": base, "position": index}
        values = {**place, "v": SCHEMA_VERSION, "entry": entry}
        if not await self._database.change(_APPEND, values):
            raise CheckpointConflictError(checkpoint_id)
