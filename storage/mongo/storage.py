"""All stores of the shared database, behind one `open` and `close`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from functools import partial

from storage.chain import NO_KEY, Seal
from storage.errors import StoreBrokenError
from storage.mongo.approvals.store import MongoApprovalStore
from storage.mongo.audit.store import MongoAuditStore
from storage.mongo.audit.trail import MongoTrailStore
from storage.mongo.checkpoints import MongoCheckpointStore
from storage.mongo.client import INDEXES, Client, Driver
from storage.mongo.collection import Collection
from storage.mongo.inbox import MongoInboxStore
from storage.mongo.log import MongoMessageLog
from storage.mongo.people.lists import MongoListStore
from storage.mongo.people.rights import MongoDelegationStore, MongoGrantStore
from storage.mongo.people.wishes import MongoPeopleStore
from storage.mongo.posts import MongoPostStore
from storage.mongo.restoring import MongoRestoreStore
from storage.mongo.retention import MongoRetentionStore
from storage.mongo.selftest import check_kind, self_test
from storage.mongo.threads import MongoThreadStore
from storage.mongo.whispers import MongoWhisperStore
from storage.records import Remark, Unreadable

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
    """

    def __init__(
        self,
        uri: str,
        *,
        driver: Driver = "motor",
        database: str | None = None,
        timeout: timedelta = TIMEOUT,
        seal: Seal = NO_KEY,
    ) -> None:
        client = Client(uri, driver=driver, database=database, timeout=timeout)
        self._client = client
        self.threads = MongoThreadStore(Collection(client, "threads"))
        self.inbox = MongoInboxStore(Collection(client, "messages"))
        self.log = MongoMessageLog(Collection(client, "log"))
        self.checkpoints = MongoCheckpointStore(Collection(client, "checkpoints"))
        self.approvals = MongoApprovalStore(
            Collection(client, "approvals"), Collection(client, "audit"), seal
        )
        self.posts = MongoPostStore(Collection(client, "posts"))
        self.whispers = MongoWhisperStore(Collection(client, "whispers"))
        self.delegations = MongoDelegationStore(Collection(client, "delegations"))
        self.people = MongoPeopleStore(Collection(client, "people"))
        self.grants = MongoGrantStore(Collection(client, "grants"))
        self.lists = MongoListStore(Collection(client, "approvals"), Collection(client, "grants"))
        self.audit = MongoAuditStore(Collection(client, "audit"), seal)
        self.trail = MongoTrailStore(
            Collection(client, "audit"),
            Collection(client, "chains"),
            Collection(client, "approvals"),
            seal,
        )
        collections = {name: Collection(client, name) for name in (*INDEXES, "checkpoints")}
        self.retention = MongoRetentionStore(collections, seal)
        self.restoring = MongoRestoreStore(
            {**collections, "eras": Collection(client, "eras")},
            partial(client.identity, "approvals"),
        )

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
        return sum([await store.count_unreadable(now_ms=now_ms) for store in stores])

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        found: list[Unreadable] = []
        for store in (self.threads, self.approvals, self.whispers, self.posts):
            found += await store.unreadable(limit=limit)
        return found[:limit]

    async def close(self) -> None:
        await self._client.close()
