"""All stores of the shared database, behind one `open` and `close`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from functools import partial

from storage.base import CheckResult, Ledgers
from storage.chain import NO_KEY, Seal
from storage.documents import Collection, D, Document
from storage.errors import StoreBrokenError
from storage.log import MessageHistory
from storage.mongo.checkpoints import MongoCheckpoints
from storage.mongo.client import HEALTH, Client, Driver
from storage.mongo.collection import MongoCollection, indexes
from storage.mongo.commands import Commands
from storage.mongo.log import MongoLog
from storage.mongo.restoring import MongoCopyMarks
from storage.mongo.selftest import check_kind, self_test
from storage.mongo.trail import MongoTrail

TIMEOUT = timedelta(seconds=2)
"""Default timeout of an operation: less than the three seconds that Slack waits for an answer."""

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
        self.trail = MongoTrail(Commands(client, "audit"), Commands(client, "chains"), seal)
        identity = partial(client.identity, "approvals")
        self.marks = MongoCopyMarks(Commands(client, HEALTH), identity)
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
            found = (await self._client.command("hello")).get("localTime")
        except StoreBrokenError:
            return None  # a compatible server without the command
        return None if found is None else int(found.replace(tzinfo=UTC).timestamp() * 1_000)

    async def examine(self) -> Sequence[CheckResult]:
        return await self_test(self._client)

    async def close(self) -> None:
        await self._client.close()
