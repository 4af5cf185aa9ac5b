"""One database: its collections, and how it is opened, checked and closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agents.core.checkpoint import MessageLog
from storage.checkpoints import Checkpoints
from storage.documents import Collection, D, Where
from storage.log import RowLog
from storage.retention import key_ranges
from storage.trail import Trail


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """A finding about a database when it was tried out.

    Attributes:
        text: How it is.
        remedy: What to do; empty when it works, and is only good to know.
    """

    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Ledgers:
    """The data of a thread beside its documents.

    Attributes:
        logs: Rows whose keys begin with the id of the thread, by kind.
        trail: The audit.
    """

    logs: Mapping[str, RowLog]
    trail: Trail

    async def counts(self, thread_id: str) -> Mapping[str, int]:
        """Count what there is of a thread, by kind."""
        found = {
            name: sum([await log.count(where) for where in _keys(log, thread_id)])
            for name, log in self.logs.items()
        }
        return {**found, "audit": await self.trail.count(thread_id)}

    async def erase(self, thread_id: str, *, limit: int) -> int:
        """Delete up to `limit` of each kind, but nothing of the audit; return how many."""
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
    """The state of a database that is a restored copy."""

    async def is_copy(self) -> bool:
        """Whether this is a copy that was put in place, and not made ready yet; see `end`.

        The embedded database knows a file that `countersign backup` made. MongoDB knows collections
        that were made anew, as `mongorestore --drop` does, where the server has ids of them.
        """
        ...

    async def end(self) -> None:
        """Note that all of the copy is marked: from now on it is the database."""
        ...


class DocumentDatabase(Protocol):
    """A database of documents. Every method may raise `StoreUnavailableError`."""

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
        """The data of threads that is no document."""
        ...

    @property
    def marks(self) -> CopyMarks:
        """Tells whether it is a copy."""
        ...

    def collection(self, kind: type[D]) -> Collection[D]:
        """Return the collection of a kind that the database was made for."""
        ...

    async def open(self) -> None:
        """Connect, and create tables or indexes where they are missing; may be repeated.

        Raises:
            StoreUnavailableError: The server does not answer, or the file cannot be used.
            StoreBusyError: The data directory belongs to another process.
        """
        ...

    async def open_beside(self) -> None:
        """Open it beside those who have it, to change it.

        Raises:
            StoreUnavailableError: There is no database, or it cannot be used.
            RecordFormatError: It was written by another release.
        """
        ...

    async def open_to_read(self) -> None:
        """Open it beside those who have it, and change nothing: no table, no index, no lease.

        Raises:
            StoreUnavailableError: There is no database, or it cannot be read.
            RecordFormatError: It was written by another release.
        """
        ...

    async def clear_log(self) -> bool:
        """Take deleted content out of the log that the database keeps beside its file, too.

        Returns:
            Whether that was done: not while somebody reads older data, such as for a copy. A
            database server looks after its log itself.
        """
        ...

    async def ping(self) -> None:
        """Ask for a sign of life, and make a small write."""
        ...

    async def server_ms(self) -> int | None:
        """Read the clock of the database's server; None where it is the clock of this machine."""
        ...

    async def examine(self) -> Sequence[CheckResult]:
        """Try out what decisions rest on; for people, and slow. Leaves nothing behind."""
        ...

    async def close(self) -> None:
        """Close connections and locks; may be repeated."""
        ...
