"""The port of a database: its collections and logs, and how to open and close it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agents.core.checkpoint import MessageLog
from storage.checkpoints import Checkpoints
from storage.documents import Collection, D, Where
from storage.log import RowLog
from storage.thread_ids import key_ranges
from storage.trail import Trail


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """A finding of a database check.

    Attributes:
        text: What was found.
        remedy: What the operator has to do; empty if the check passed or the finding is only
            information.
    """

    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Ledgers:
    """The data of a thread in logs, which no document contains.

    Attributes:
        logs: Logs whose keys begin with the id of the thread, by kind.
        trail: The audit.
    """

    logs: Mapping[str, RowLog]
    trail: Trail

    async def counts(self, thread_id: str) -> Mapping[str, int]:
        """Count the rows of a thread, by kind."""
        row_counts = {
            name: sum([await log.count(where) for where in _keys(log, thread_id)])
            for name, log in self.logs.items()
        }
        return {**row_counts, "audit": await self.trail.count(thread_id)}

    async def erase(self, thread_id: str, *, limit: int) -> int:
        """Delete up to `limit` rows of each log; return how many. The audit stays."""
        return sum(
            [
                await log.delete(where, limit=limit)
                for log in self.logs.values()
                for where in _keys(log, thread_id)
            ]
        )


def _keys(log: RowLog, thread_id: str) -> list[Where]:
    return [{log.key: {"$gte": first, "$lt": end}} for first, end in key_ranges(thread_id)]


class CopyMarks(Protocol):
    """Tells whether the database is a restored backup."""

    async def is_copy(self) -> bool:
        """Return whether this is a restored backup that is not ready for use; see `end`.

        SQLite knows this from the mark that `countersign backup` sets in the file. MongoDB knows it
        from the id of a collection, which changes when `mongorestore --drop` creates the collection
        anew. Some servers give collections no id.
        """
        ...

    async def end(self) -> None:
        """Record that the restored backup is ready for use."""
        ...


class DocumentDatabase(Protocol):
    """A database of documents and logs. Every method may raise `StoreUnavailableError`."""

    @property
    def trail(self) -> Trail:
        """The audit."""
        ...

    @property
    def log(self) -> MessageLog:
        """The agents' message histories."""
        ...

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints and their journals."""
        ...

    @property
    def ledgers(self) -> Ledgers:
        """The rows of a thread that are in logs."""
        ...

    @property
    def marks(self) -> CopyMarks:
        """Tells whether the database is a restored backup."""
        ...

    def collection(self, kind: type[D]) -> Collection[D]:
        """Return the collection of a kind.

        The database must have been created with this kind.
        """
        ...

    async def open(self) -> None:
        """Connect, and create missing tables and indexes. May be called again.

        Raises:
            StoreUnavailableError: The server does not answer, or the file cannot be used.
            StoreBusyError: The data directory belongs to another process.
        """
        ...

    async def open_beside(self) -> None:
        """Open a database that other processes may have open, to change it.

        Raises:
            StoreUnavailableError: The database does not exist, or cannot be used.
            RecordFormatError: Another release wrote the database.
        """
        ...

    async def open_to_read(self) -> None:
        """Open a database that other processes may have open, only to read it.

        Raises:
            StoreUnavailableError: The database does not exist, or cannot be read.
            RecordFormatError: Another release wrote the database.
        """
        ...

    async def clear_log(self) -> bool:
        """Remove deleted content from the write-ahead log, too.

        Returns:
            Whether the log was cleared. It cannot be cleared while a reader, such as a backup, uses
            an older state. Always true for a database server, which maintains its own log.
        """
        ...

    async def ping(self) -> None:
        """Check that the database answers and accepts a small write."""
        ...

    async def server_ms(self) -> int | None:
        """Return the clock of the database server, or None if the database runs on this machine."""
        ...

    async def examine(self) -> Sequence[CheckResult]:
        """Test the guarantees that decisions depend on, for `countersign doctor`.

        Slow; leaves no data behind.
        """
        ...

    async def close(self) -> None:
        """Close connections and locks. May be called again."""
        ...
