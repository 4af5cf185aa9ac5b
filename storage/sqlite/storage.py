"""All stores of the embedded database, behind one `open` and `close`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar

from agents.core.checkpoint import StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from storage.base import CheckResult, Ledgers
from storage.chain import NO_KEY, Seal
from storage.checkpoints import Checkpoints, stored_checkpoint
from storage.documents import Collection, D, Document, Row
from storage.errors import Fault, StoreBrokenError
from storage.log import SCHEMA_VERSION, MessageHistory, check_version
from storage.sqlite.backup import COPY_ID
from storage.sqlite.collection import SqliteCollection, SqliteLog, break_leases, tables
from storage.sqlite.database import TIMEOUT, Database
from storage.sqlite.trail import SqliteTrail, add_seal

_WRITE = """
INSERT INTO health (name, writes) VALUES ('ready', 1)
ON CONFLICT (name) DO UPDATE SET writes = writes + 1
"""

_LOGS = {"log": "id", "journal": "checkpoint_id", "checkpoints": "checkpoint_id"}
"""Tables whose keys begin with a thread id, and their key columns."""


class SqliteStorage:
    """The file `countersign.db` in a data directory, for one process.

    Args:
        path: The data directory, created with mode 0700 if missing; None for a database in memory.
        kinds: The document classes of the storage.
        seal: Seals audit entries.
        timeout: Maximum duration of a statement.
    """

    def __init__(
        self,
        path: Path | None,
        kinds: Sequence[type[Document]],
        *,
        seal: Seal = NO_KEY,
        timeout: timedelta = TIMEOUT,
    ) -> None:
        prepare = partial(add_seal, seal=seal)
        self._kinds = kinds
        self._database = Database(path, prepare, timeout=timeout, tables=tables(kinds))
        self.trail = SqliteTrail(self._database, seal)
        self.marks = SqliteCopyMarks(self._database)
        logs = {name: SqliteLog(self._database, name, key) for name, key in _LOGS.items()}
        self.ledgers = Ledgers(logs, self.trail)
        self.log = MessageHistory(logs["log"])
        self.checkpoints = SqliteCheckpoints(self._database)

    def collection(self, kind: type[D]) -> Collection[D]:
        return SqliteCollection(self._database, kind)

    async def open(self) -> None:
        if await self._database.open():
            # This process has the lock of the directory, so the processes of all stored leases have
            # ended. Their unfinished work is due now.
            await self._database.fetch_together([(sql, {}) for sql in break_leases(self._kinds)])
            try:
                await self.trail.check_key()
                await self.trail.seal()
                await self.trail.tell_key()
            except BaseException:
                await self.close()
                raise

    async def open_to_read(self) -> None:
        await self._database.open_to_read()

    async def open_beside(self) -> None:
        await self._database.open_beside()
        try:
            await self.trail.check_key()
        except BaseException:
            await self.close()
            raise

    async def clear_log(self) -> bool:
        return await self._database.clear_log()

    async def ping(self) -> None:
        await self._database.fetch(_WRITE)

    async def server_ms(self) -> int | None:
        return None

    async def examine(self) -> Sequence[CheckResult]:
        rows = await self._database.fetch_unlimited("PRAGMA quick_check(3)")
        faults = "; ".join(str(row["quick_check"]) for row in rows)
        if faults != "ok":
            raise StoreBrokenError(f"the database file is damaged: {faults}", Fault.DAMAGED)
        return []

    async def close(self) -> None:
        await self._database.close()


_IS_COPY = "PRAGMA application_id"
_IS_NO_COPY = "PRAGMA application_id = 0"


class SqliteCopyMarks:
    """See `storage.base.CopyMarks`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def is_copy(self) -> bool:
        (row,) = await self._database.fetch(_IS_COPY)
        return bool(row["application_id"] == COPY_ID)

    async def end(self) -> None:
        await self._database.fetch(_IS_NO_COPY)


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
