"""All stores of the shared database, behind one `open` and `close`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import ClassVar

from agents.core.checkpoint import StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from storage.base import CheckResult, Ledgers
from storage.chain import NO_KEY, Seal
from storage.checkpoints import IS_OPEN, Checkpoints, stored_checkpoint
from storage.documents import Collection, D, Document, Row
from storage.errors import RecordFormatError, StoreBrokenError
from storage.log import SCHEMA_VERSION, MessageHistory
from storage.mongo.client import HEALTH, Client, Driver
from storage.mongo.collection import MongoCollection, MongoLog, indexes
from storage.mongo.commands import Commands, Document as StoredDocument
from storage.mongo.selftest import check_kind, hello_of, self_test
from storage.mongo.trail import MongoTrail

TIMEOUT = timedelta(seconds=2)
"""Default timeout of an operation: less than the three seconds that Slack waits for an answer."""

_LAST_MS = 253_402_300_800_000
"""The end of the year 9999: a later time is none."""

_LOGS = ("log", "checkpoints")
"""Collections whose keys begin with the id of a thread."""


class MongoStorage:
    """A MongoDB database. Any number of these, in any number of processes, may share it.

    Args:
        uri: The address of a replica set or a sharded cluster.
        kinds: The document classes of the storage.
        driver: The driver to use.
        database: Name of the database; None for the one in `uri`, or `countersign`.
        timeout: Maximum duration of an operation, including the selection of a server.
        seal: Seals audit entries.
    """

    def __init__(
        self,
        uri: str,
        kinds: Sequence[type[Document]],
        *,
        driver: Driver = "motor",
        database: str | None = None,
        timeout: timedelta = TIMEOUT,
        seal: Seal = NO_KEY,
    ) -> None:
        more = {kind.spec.name: indexes(kind) for kind in kinds}
        client = Client(uri, driver=driver, database=database, timeout=timeout, indexes=more)
        self._client = client
        audit, chains, probe = (
            Commands(client, name) for name in ("audit", "chains", "index_check")
        )
        self.trail = MongoTrail(audit, chains, probe, seal)
        identity = partial(client.identity, "approvals")
        records = [Commands(client, name) for name in ("approvals", "threads")]
        self.marks = MongoCopyMarks(Commands(client, HEALTH), identity, records)
        logs = {name: MongoLog(Commands(client, name), "id") for name in _LOGS}
        self.ledgers = Ledgers(logs, self.trail)
        self.log = MessageHistory(logs["log"])
        self.checkpoints = MongoCheckpoints(logs["checkpoints"])

    def collection(self, kind: type[D]) -> Collection[D]:
        return MongoCollection(Commands(self._client, kind.spec.name), kind)

    async def open(self) -> None:
        await self._client.open()
        try:
            await check_kind(self._client)
            await self.trail.guard_numbers()
            await self.trail.check_key()
        except BaseException:
            await self._client.close()
            raise

    async def open_beside(self) -> None:
        await self.open()  # also creates indexes, which may not exist yet

    async def open_to_read(self) -> None:
        await self._client.open_to_read()

    async def clear_log(self) -> bool:
        return True

    async def ping(self) -> None:
        await self._client.ping()
        await self._client.write()

    async def server_ms(self) -> int | None:
        try:
            return _milliseconds((await hello_of(self._client)).get("localTime"))
        except StoreBrokenError:
            return None  # a compatible server without the commands

    async def examine(self) -> Sequence[CheckResult]:
        return await self_test(self._client)

    async def close(self) -> None:
        await self._client.close()


def _milliseconds(local: object) -> int | None:
    """Return the time that a server gives; None if it gives no usable one.

    MongoDB sends a date. Some compatible servers send milliseconds as a number, or nothing.
    """
    match local:
        case datetime():
            return int(local.replace(tzinfo=UTC).timestamp() * 1_000)
        case int() | float() if not isinstance(local, bool) and 0 < local < _LAST_MS:
            return int(local)
        case _:
            return None


_NOTE = "collection"
"""The key of the document with the UUID of the original collection."""


class MongoCopyMarks:
    """See `storage.base.CopyMarks`.

    Args:
        notes: The collection of the document with the UUID.
        identity: Returns the server's UUID of the approvals' collection; empty if unknown. A
            restore creates the collection again, with another UUID.
        records: The collections that are empty until the first start has noted the UUID.
    """

    def __init__(
        self,
        notes: Commands,
        identity: Callable[[], Awaitable[str]],
        records: Sequence[Commands],
    ) -> None:
        self._notes = notes
        self._identity = identity
        self._records = records

    async def is_copy(self) -> bool:
        present = await self._identity()
        if not present:
            return False
        noted = await self._noted()
        if not noted:
            # Records without a note come from a restore that left out the collection of the note.
            original = "" if await self._has_records() else present
            await self._notes.insert({"_id": _NOTE, "collection": original})
            noted = await self._noted()  # another process may have been first
        return any(note.get("collection") != present for note in noted)

    async def end(self) -> None:
        present = await self._identity()
        if present and not await self._notes.insert({"_id": _NOTE, "collection": present}):
            await self._notes.update({"_id": _NOTE}, {"$set": {"collection": present}})

    async def _noted(self) -> list[StoredDocument]:
        return await self._notes.find({"_id": _NOTE}, [("_id", 1)], 1)

    async def _has_records(self) -> bool:
        return any([await records.keys({}, 1) for records in self._records])


class MongoCheckpoints(Checkpoints):
    """See `storage.checkpoints.Checkpoints`."""

    no_journal: ClassVar[Row] = {"journal": [], "entries": 0}
    no_changes: ClassVar[Row] = {"changes": None}
    no_content: ClassVar[Row] = dict.fromkeys(("data", "claim", "changes", "journal", "entries"))

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        rows = await self._heads.read({self._heads.key: checkpoint_id}, [], limit=1)
        return _stored(checkpoint_id, rows[0]) if rows else None

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        where = {self._heads.key: checkpoint_id, "base": base, "v": SCHEMA_VERSION, **IS_OPEN}
        is_next = {**where, "entries": index}
        if not await self._heads.change(is_next, {"entries": index + 1}, push=("journal", entry)):
            raise CheckpointConflictError(checkpoint_id)


def _stored(checkpoint_id: str, head: Row) -> StoredCheckpoint:
    entries = head.get("journal", [])
    if not isinstance(entries, list) or head.get("entries", 0) != len(entries):
        fault = "its journal is damaged"
        raise RecordFormatError("checkpoint", SCHEMA_VERSION, fault, record_id=checkpoint_id)
    return stored_checkpoint(checkpoint_id, head, entries)
