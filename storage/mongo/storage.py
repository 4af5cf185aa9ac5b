"""All stores of the shared database, behind one `open` and `close`."""

from __future__ import annotations

from datetime import timedelta

from storage.mongo.approvals import MongoApprovalStore
from storage.mongo.audit import MongoAuditStore
from storage.mongo.checkpoints import MongoCheckpointStore
from storage.mongo.client import INDEXES, Client, Driver
from storage.mongo.collection import Collection
from storage.mongo.inbox import MongoInboxStore
from storage.mongo.log import MongoMessageLog
from storage.mongo.posts import MongoPostStore
from storage.mongo.retention import MongoRetentionStore
from storage.mongo.threads import MongoThreadStore
from storage.mongo.whispers import MongoWhisperStore

TIMEOUT = timedelta(seconds=2)
"""Less than the three seconds that Slack waits for an answer."""


class MongoStorage:
    """A MongoDB database. Any number of these, in any number of processes, may share it.

    Args:
        uri: Names the servers: a replica set or a sharded cluster.
        driver: Which driver to use.
        database: Name of the database; None for the one in `uri`, or `countersign`.
        timeout: How long an operation may take, the search for a server included.
    """

    def __init__(
        self,
        uri: str,
        *,
        driver: Driver = "motor",
        database: str | None = None,
        timeout: timedelta = TIMEOUT,
    ) -> None:
        client = Client(uri, driver=driver, database=database, timeout=timeout)
        self._client = client
        self.threads = MongoThreadStore(Collection(client, "threads"))
        self.inbox = MongoInboxStore(Collection(client, "messages"))
        self.log = MongoMessageLog(Collection(client, "log"))
        self.checkpoints = MongoCheckpointStore(
            Collection(client, "checkpoints"), Collection(client, "journal")
        )
        self.approvals = MongoApprovalStore(Collection(client, "approvals"))
        self.posts = MongoPostStore(Collection(client, "posts"))
        self.whispers = MongoWhisperStore(Collection(client, "whispers"))
        self.audit = MongoAuditStore(Collection(client, "audit"))
        self.retention = MongoRetentionStore(
            {name: Collection(client, name) for name in (*INDEXES, "checkpoints")}
        )

    async def open(self) -> None:
        await self._client.open()

    async def open_to_read(self) -> None:
        """Connect without making indexes: a user that may only read is enough.

        Raises:
            StoreUnavailableError: The server does not answer, or refuses.
        """
        await self._client.open_to_read()

    async def ping(self) -> None:
        await self._client.ping()

    async def close(self) -> None:
        await self._client.close()
