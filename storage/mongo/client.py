"""The connection: opens either driver, creates the indexes, and translates errors.

The drivers' own types are used only in this package. Both drivers have the same methods for
collections, so only opening and closing differ.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import pymongo
from bson.codec_options import CodecOptions, DatetimeConversion
from pymongo import AsyncMongoClient, IndexModel, ReadPreference, WriteConcern
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import AutoReconnect, DuplicateKeyError, PyMongoError
from pymongo.read_concern import ReadConcern

from storage.errors import Fault, StoreBrokenError, StoreUnavailableError
from storage.mongo.address import ServerAddress
from storage.mongo.faults import TRANSLATED, plain, store_error

logger = logging.getLogger(__name__)

Driver = Literal["motor", "pymongo"]
T = TypeVar("T")

DEFAULT_DATABASE = "countersign"

INDEXES: Mapping[str, Sequence[Sequence[str]]] = {
    "audit": [
        ["thread_id", "at_ms", "_id"],
        ["seq", "at_ms", "_id"],
        ["team_id", "seq"],
        ["at_ms"],
    ],
}
"""The fields of each index by collection, ascending.

Unique values are in `_id`, so that a cluster can be sharded by it. Ids that belong to a thread
begin with the thread's id.
"""

_MAX_DETAIL = 300

_LENIENT: CodecOptions[dict[str, Any]] = CodecOptions(
    unicode_decode_error_handler="surrogateescape",
    datetime_conversion=DatetimeConversion.DATETIME_AUTO,
)
"""Decodes invalid texts and dates leniently, so that other documents can be read. The codec refuses
the damaged document.
"""

PATIENCE = 3
"""PyMongo enforces the limit by itself. An abandoned operation that has not ended after this
multiple of the limit never ends: the connections are stuck.
"""

HEALTH = "health"
"""The collection of the health check's write."""

GOODBYE_S = 0.5
"""Timeout for ending the server sessions on close, in seconds. Otherwise the server ends them."""

MOTOR_THREADS = 64
"""Minimum number of Motor's threads. Motor runs each operation in a thread. With fewer threads,
operations on a slow server would exceed their timeout in the queue.
"""


class Apart(Protocol):
    """Awaits an operation of the driver that must not be cancelled with its caller."""

    def __call__(self, work: Awaitable[T]) -> Awaitable[T]:
        """Wait for an operation."""
        ...


class Client:
    """One pool of connections to one database.

    Args:
        uri: The address of the servers, which may name the database.
        driver: The driver to use.
        database: Name of the database; None for the one in `uri`, or `countersign`.
        timeout: Maximum duration of an operation with its retry. `timeoutMS` in the address takes
            precedence.
        indexes: The fields of additional indexes, by collection.

    Attributes:
        indexes: The fields of all indexes, by collection.
    """

    def __init__(
        self,
        uri: str,
        *,
        driver: Driver,
        database: str | None,
        timeout: timedelta,
        indexes: Mapping[str, Sequence[Sequence[str]]] | None = None,
    ) -> None:
        self._uri = uri
        self.indexes = {**INDEXES, **(indexes or {})}
        self._driver = driver
        self._name = database
        # The driver gets nine tenths, so that the caller has its result within `timeout`.
        self._address = ServerAddress(
            uri, timeout_ms=int(timeout / timedelta(milliseconds=1) * 0.9)
        )
        self._database: AsyncDatabase[dict[str, Any]] | None = None
        self._collections: dict[str, Any] = {}
        self._close: Callable[[], Awaitable[None]] | None = None
        self._left: dict[asyncio.Future[Any], float] = {}
        self._closing: set[asyncio.Future[Any]] = set()

    async def open_to_read(self) -> None:
        """Connect and ping the server.

        Raises:
            StoreUnavailableError: The server does not respond, or refuses.
        """
        try:
            if self._database is None:
                self._database = self._connect()
            with pymongo.timeout(self._address.open_ms / 1_000):
                await self.ping(limit_s=self._address.open_ms / 900)
        except BaseException:
            await self.close()
            raise

    async def open(self) -> None:
        """Connect, ping the server, and create the indexes. Idempotent.

        Raises:
            StoreUnavailableError: The server does not respond, or refuses.
        """
        await self.open_to_read()
        try:
            await self.make_all_indexes()
        except BaseException:
            await self.close()
            raise

    async def make_all_indexes(self) -> None:
        """Create the indexes of all collections. Idempotent.

        Raises:
            StoreUnavailableError: The server does not respond, or refuses.
        """
        for name, indexes in self.indexes.items():
            models = [IndexModel([(field, 1) for field in fields]) for fields in indexes]
            await self.create_indexes(name, models)

    async def create_indexes(self, name: str, models: Sequence[IndexModel]) -> None:
        """Create indexes of a collection, however long it takes. Idempotent.

        A time limit would abort the build on a large collection, again at each start.

        Raises:
            StoreUnavailableError: The server does not respond, or refuses.
        """
        with pymongo.timeout(0):
            async with self.call(math.inf) as apart:
                await apart(self.collection(name).create_indexes(models))

    async def ping(self, *, limit_s: float | None = None) -> None:
        """Ping the server.

        Args:
            limit_s: Timeout in seconds; None for the timeout of operations.

        Raises:
            StoreUnavailableError: The server does not respond.
        """
        await self._twice(lambda: self.command("ping", limit_s=limit_s))

    async def write(self) -> None:
        """Check that writes work, by a small write.

        Raises:
            StoreUnavailableError: Writes do not work.
        """

        async def count() -> None:
            async with self.call() as apart:
                with suppress(DuplicateKeyError):  # a concurrent upsert created the document
                    await apart(
                        self.collection(HEALTH).update_one(
                            {"_id": "ready"}, {"$inc": {"writes": 1}}, upsert=True
                        )
                    )

        await self._twice(count)

    async def command(
        self, name: str, *, limit_s: float | None = None, **values: Any
    ) -> dict[str, Any]:
        """Run a database command and return its response.

        Raises:
            StoreUnavailableError: The server does not respond, or refuses.
        """
        if self._database is None:
            raise StoreUnavailableError("it is not open")
        async with self.call(limit_s) as apart:
            answer: dict[str, Any] = await apart(
                self._database.command(name, codec_options=_LENIENT, **values)
            )
        return answer

    @property
    def retries_writes(self) -> bool:
        """Whether the driver sends a write again after a lost reply."""
        return self._address.retries_writes

    async def session(self) -> Any:
        """Start a session of the driver.

        Raises:
            StoreUnavailableError: The client is not open.
        """
        if self._database is None:
            raise StoreUnavailableError("it is not open")
        session: Any = self._database.client.start_session()
        return await session if inspect.isawaitable(session) else session

    async def identity(self, name: str) -> str:
        """Return the UUID that the server gave a collection; empty if unknown.

        Raises:
            StoreUnavailableError: The server does not respond.
        """
        try:
            answer = await self.command("listCollections", filter={"name": name})
        except StoreBrokenError:
            return ""  # the server lacks the command, or the user lacks the permission
        listed = answer.get("cursor", {}).get("firstBatch") or [{}]
        text = str(listed[0].get("info", {}).get("uuid") or "")
        return text if text.strip("0-") else ""

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        close, self._close, self._database = self._close, None, None
        if close is not None:
            self._close_apart(close)
        if ends := [*self._closing, *self._left]:
            # Closing the pool ends abandoned operations. A stuck one never ends, so the wait is
            # limited.
            await asyncio.wait(ends, timeout=self._address.timeout_ms / 900)

    def collection(self, name: str) -> Any:
        """Return the driver's collection.

        Raises:
            StoreUnavailableError: The client is not open.
        """
        if self._database is None:
            raise StoreUnavailableError("it is not open")
        if name not in self._collections:
            self._collections[name] = self._database[name]
        return self._collections[name]

    @asynccontextmanager
    async def call(self, limit_s: float | None = None) -> AsyncIterator[Apart]:
        """Limit the duration of one operation, and translate the driver's errors.

        The time includes every wait: for a thread of Motor, a connection, and the server. An
        operation that is still queued at the timeout is dropped.

        Args:
            limit_s: Timeout in seconds; None for the timeout of operations.

        Yields:
            The function that awaits the operation.
        """
        seconds = self._address.timeout_ms / 900 if limit_s is None else limit_s
        self._renew_if_stuck()

        async def apart(work: Awaitable[T]) -> T:
            return await (work if self._driver == "motor" else self._apart(work, seconds))

        try:
            async with asyncio.timeout(seconds):
                with self.translating():
                    yield apart
        except TimeoutError as error:
            raise StoreUnavailableError(f"no answer within {seconds:.1f} s") from error

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Convert the driver's errors to storage errors without credentials."""
        try:
            yield
        except TRANSLATED as error:
            raise store_error(error, self._clean) from error

    async def _apart(self, work: Awaitable[T], limit_s: float) -> T:
        """Run an operation of PyMongo in a task that is never cancelled with its caller.

        PyMongo waits for its pool in a task of its own. Before Python 3.12, a caller can leave that
        task behind if the caller is cancelled twice, or if it is cancelled as the wait ends. The
        task then acquires the lock of the pool and never releases it. Motor runs operations in
        threads and does not have this fault.
        """
        task, database = asyncio.ensure_future(work), self._database
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._forget)
            if self._database is None or self._database is database:
                self._left[task] = asyncio.get_running_loop().time() + limit_s * PATIENCE
            else:
                task.cancel()  # its pool is closed already, so this task is no sign of a stuck pool
            raise

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._left.pop(task, None)
        self._closing.discard(task)
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved: no caller awaits this task

    def _renew_if_stuck(self) -> None:
        """Replace the connections if an abandoned operation is overdue: the pool is stuck."""
        if not self._left or self._database is None:
            return
        now = asyncio.get_running_loop().time()
        if all(now < until for until in self._left.values()):
            return
        left, close = [*self._left], self._close
        self._left.clear()
        try:
            self._database = self._connect()
        except StoreBrokenError:
            return  # the address worked before; a file in it may be missing for a moment
        logger.warning(
            "database connections were stuck, reconnected",
            extra={"action": "reconnecting"},
        )
        for task in left:
            task.cancel()
        if close is not None:
            self._close_apart(close)

    def _close_apart(self, close: Callable[[], Awaitable[None]]) -> None:
        closing = asyncio.ensure_future(close())
        self._closing.add(closing)
        closing.add_done_callback(self._forget)

    async def _twice(self, work: Callable[[], Awaitable[object]]) -> None:
        try:
            await work()
        except StoreUnavailableError as error:
            cause = error.__cause__
            if not isinstance(cause, AutoReconnect) or cause.timeout:
                raise
            # The pool had a connection from before a restart of the server, and the driver does not
            # retry every operation.
            await work()

    def _clean(self, text: str) -> str:
        text = self._address.clean(text)
        return text if len(text) <= _MAX_DETAIL else text[:_MAX_DETAIL] + "…"

    def _connect(self) -> AsyncDatabase[dict[str, Any]]:
        self._address.check()
        self._collections = {}
        try:
            client = self._client(self._address.options())
            name = self._name or client.get_default_database(DEFAULT_DATABASE).name
            database: AsyncDatabase[dict[str, Any]] = client.get_database(
                name,
                codec_options=_LENIENT,
                read_preference=ReadPreference.PRIMARY,
                write_concern=WriteConcern("majority"),
                read_concern=ReadConcern("majority"),
            )
        except (PyMongoError, ValueError, OSError) as error:
            detail = f"its address cannot be used: {self._clean(plain(str(error)))}"
            # The cause may quote the password.
            raise StoreBrokenError(detail, Fault.ADDRESS) from None
        return database

    def _client(self, options: Mapping[str, Any]) -> Any:
        if self._driver == "motor":
            from motor.frameworks import (  # noqa: PLC0415 - only the chosen driver is loaded
                asyncio as framework,
            )
            from motor.motor_asyncio import AsyncIOMotorClient  # noqa: PLC0415 - as above

            if framework.max_workers < MOTOR_THREADS:
                framework.max_workers = MOTOR_THREADS
                # Motor has no other setting than an environment variable that is read on import.
                framework._reset_global_executor()  # type: ignore[no-untyped-call] # noqa: SLF001
            motor = AsyncIOMotorClient(self._uri, **options)

            # Closing ends the server sessions first, and waits for an unreachable server. A thread
            # keeps this wait out of the event loop.
            self._close = partial(asyncio.to_thread, _close_within_limit, motor.close)
            return motor
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(self._uri, **options)
        self._close = client.close
        return client


def _close_within_limit(close: Callable[[], object]) -> None:
    with pymongo.timeout(GOODBYE_S):
        close()
