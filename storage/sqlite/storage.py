"""All stores of the embedded database, behind one `open` and `close`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from storage.chain import NO_KEY, Seal
from storage.codec import READER
from storage.documents import Collection, D, Document
from storage.errors import Fault, StoreBrokenError
from storage.records import Remark, Unreadable
from storage.sqlite.approvals.store import SqliteApprovalStore
from storage.sqlite.audit.store import SqliteAuditStore, add_seal
from storage.sqlite.audit.trail import SqliteTrailStore
from storage.sqlite.checkpoints import SqliteCheckpointStore
from storage.sqlite.collection import SqliteCollection, break_leases, tables
from storage.sqlite.database import TIMEOUT, Database
from storage.sqlite.inbox import SqliteInboxStore
from storage.sqlite.leases import break_sql, forget_sql
from storage.sqlite.lists import SqliteListStore
from storage.sqlite.log import SqliteMessageLog
from storage.sqlite.posts import SqlitePostStore
from storage.sqlite.restoring import SqliteRestoreStore
from storage.sqlite.retention import SqliteRetentionStore
from storage.sqlite.threads import SqliteThreadStore
from storage.sqlite.whispers import SqliteWhisperStore
from storage.stores import KINDS, Stores

_WORK = ("threads", "approvals", "whispers")
_WRITE = """
INSERT INTO health (name, writes) VALUES ('ready', 1)
ON CONFLICT (name) DO UPDATE SET writes = writes + 1
"""


class SqliteStorage:
    """The file `countersign.db` in a data directory, for one process.

    Args:
        path: The data directory, made (for its owner alone) when it is missing; None keeps all in
            memory.
        seal: How entries of the audit are sealed.
        timeout: How long a statement may take.
        kinds: The kinds of documents that it holds.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        seal: Seal = NO_KEY,
        timeout: timedelta = TIMEOUT,
        kinds: Sequence[type[Document]] = KINDS,
    ) -> None:
        prepare = partial(add_seal, seal=seal)
        self._kinds = kinds
        self._database = Database(path, prepare, timeout=timeout, tables=tables(kinds))
        stores = Stores(self, kinds)
        self._stores = stores
        self.threads = SqliteThreadStore(self._database)
        self.inbox = SqliteInboxStore(self._database)
        self.log = SqliteMessageLog(self._database)
        self.checkpoints = SqliteCheckpointStore(self._database)
        self.approvals = SqliteApprovalStore(self._database)
        self.posts = SqlitePostStore(self._database)
        self.whispers = SqliteWhisperStore(self._database)
        self.delegations = stores.delegations
        self.people = stores.people
        self.grants = stores.grants
        self.lists = SqliteListStore(self._database)
        self.audit = SqliteAuditStore(self._database)
        self.trail = SqliteTrailStore(self._database, seal)
        self.retention = SqliteRetentionStore(self._database)
        self._work = (self.threads.leases, self.approvals.leases, self.whispers.leases)
        self.restoring = SqliteRestoreStore(self._database)

    def collection(self, kind: type[D]) -> Collection[D]:
        return SqliteCollection(self._database, kind)

    async def open(self) -> None:
        if await self._database.open():
            # We hold the lock of the directory: whoever left a lease here is dead, and what it
            # did not finish is due now.
            await self._database.fetch_together([(break_sql(table), {}) for table in _WORK])
            await self._database.fetch_together([(sql, {}) for sql in break_leases(self._kinds)])
            try:
                await self.trail.check_key()
                await self.trail.seal()  # what an earlier release has appended
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

    async def reconsider(self) -> None:
        for table in _WORK:
            await self._database.fetch(forget_sql(table), {"reader": READER})
        await self._stores.recheck()

    async def ping(self) -> None:
        await self._database.fetch(_WRITE)

    async def server_ms(self) -> int | None:
        return None

    async def examine(self) -> Sequence[Remark]:
        rows = await self._database.fetch_unlimited("PRAGMA quick_check(3)")
        faults = "; ".join(str(row["quick_check"]) for row in rows)
        if faults != "ok":
            raise StoreBrokenError(f"the database file is damaged: {faults}", Fault.DAMAGED)
        return []

    async def count_unreadable(self, *, now_ms: int) -> int:
        found = [await leases.count_unreadable(now_ms=now_ms) for leases in self._work]
        return sum(found) + await self._stores.count_quarantined()

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        found: list[Unreadable] = []
        for leases in self._work:
            found += await leases.unreadable(limit=limit)
        found += await self.posts.reading.marked(limit=limit)
        found += await self._stores.quarantined(limit=limit)
        return found[:limit]

    async def close(self) -> None:
        await self._database.close()
