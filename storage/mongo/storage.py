"""All stores of the shared database, behind one `open` and `close`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from functools import partial

from storage.chain import NO_KEY, Seal
from storage.documents import Collection, D, Document
from storage.errors import StoreBrokenError
from storage.mongo.approvals.store import MongoApprovalStore
from storage.mongo.audit.store import MongoAuditStore
from storage.mongo.audit.trail import MongoTrailStore
from storage.mongo.checkpoints import MongoCheckpointStore
from storage.mongo.client import INDEXES, Client, Driver
from storage.mongo.collection import MongoCollection, indexes
from storage.mongo.commands import Commands
from storage.mongo.inbox import MongoInboxStore
from storage.mongo.lists import MongoListStore
from storage.mongo.log import MongoMessageLog
from storage.mongo.posts import MongoPostStore
from storage.mongo.restoring import MongoRestoreStore
from storage.mongo.retention import MongoRetentionStore
from storage.mongo.selftest import check_kind, self_test
from storage.mongo.threads import MongoThreadStore
from storage.mongo.whispers import MongoWhisperStore
from storage.records import Remark, Unreadable
from storage.stores import KINDS, Stores

TIMEOUT = timedelta(seconds=2)
"""Less than the three seconds that Slack waits for an answer."""


class MongoStorage:
    """A MongoDB database. Any number of these, in any number of processes, may share it.

    Args:
        uri: Names the servers: a replica set or a sharded cluster.
        driver: Which driver to use.
        database: Name of the database; None for the one in `uri`, or `countersign`.
        timeout: How long an operation may take, the search for a server included.
        seal: How entries of the audit are sealed.
        kinds: The kinds of documents that it holds.
    """

    def __init__(
        self,
        uri: str,
        *,
        driver: Driver = "motor",
        database: str | None = None,
        timeout: timedelta = TIMEOUT,
        seal: Seal = NO_KEY,
        kinds: Sequence[type[Document]] = KINDS,
    ) -> None:
        more = {kind.spec.name: indexes(kind) for kind in kinds}
        client = Client(uri, driver=driver, database=database, timeout=timeout, indexes=more)
        self._client = client
        stores = Stores(self, kinds)
        self._stores = stores
        self.threads = MongoThreadStore(Commands(client, "threads"))
        self.inbox = MongoInboxStore(Commands(client, "messages"))
        self.log = MongoMessageLog(Commands(client, "log"))
        self.checkpoints = MongoCheckpointStore(Commands(client, "checkpoints"))
        self.approvals = MongoApprovalStore(
            Commands(client, "approvals"), Commands(client, "audit"), seal
        )
        self.posts = MongoPostStore(Commands(client, "posts"))
        self.whispers = MongoWhisperStore(Commands(client, "whispers"))
        self.delegations = stores.delegations
        self.people = stores.people
        self.grants = stores.grants
        self.lists = MongoListStore(Commands(client, "approvals"))
        self.audit = MongoAuditStore(Commands(client, "audit"), seal)
        self.trail = MongoTrailStore(
            Commands(client, "audit"),
            Commands(client, "chains"),
            Commands(client, "approvals"),
            seal,
        )
        names = (*INDEXES, *more, "checkpoints")
        collections = {name: Commands(client, name) for name in names}
        self.retention = MongoRetentionStore(collections, seal)
        self.restoring = MongoRestoreStore(
            {**collections, "eras": Commands(client, "eras")},
            partial(client.identity, "approvals"),
        )

    def collection(self, kind: type[D]) -> Collection[D]:
        return MongoCollection(Commands(self._client, kind.spec.name), kind)

    async def open(self) -> None:
        await self._client.open()
        try:
            await check_kind(self._client)
            await self.trail.check_key()
        except BaseException:
            await self._client.close()
            raise

    async def open_beside(self) -> None:
        await self.open()  # the indexes may be missing yet

    async def open_to_read(self) -> None:
        await self._client.open_to_read()

    async def reconsider(self) -> None:
        for store in (self.threads, self.approvals, self.whispers):
            await store.forget_marks()
        await self._stores.recheck()

    async def ping(self) -> None:
        await self._client.ping()
        await self._client.write()

    async def server_ms(self) -> int | None:
        try:
            found = (await self._client.command("hello")).get("localTime")
        except StoreBrokenError:
            return None  # a compatible server that does not know the command
        return None if found is None else int(found.replace(tzinfo=UTC).timestamp() * 1_000)

    async def examine(self) -> Sequence[Remark]:
        return await self_test(self._client)

    async def count_unreadable(self, *, now_ms: int) -> int:
        stores = (self.threads, self.approvals, self.whispers)
        found = [await store.count_unreadable(now_ms=now_ms) for store in stores]
        return sum(found) + await self._stores.count_quarantined()

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        found: list[Unreadable] = []
        for store in (self.threads, self.approvals, self.whispers, self.posts):
            found += await store.unreadable(limit=limit)
        found += await self._stores.quarantined(limit=limit)
        return found[:limit]

    async def close(self) -> None:
        await self._client.close()
