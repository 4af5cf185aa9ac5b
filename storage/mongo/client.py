"""The connection: opens either driver, creates the indexes, and names failures.

The drivers' own types go no further than this package; both offer the same methods on collections,
so that only opening and closing differ.
"""

from __future__ import annotations

import asyncio
import logging
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
        ["thread_id"],
        ["thread_id", "at_ms"],
        ["seq"],
        ["seq", "at_ms"],
        ["team_id", "seq"],
    ],
}
"""The fields of each index by collection, ascending. What must be unique is in `_id`, so that a
cluster can be sharded by it; ids that belong to a thread begin with the thread's id. MongoDB would
do without those of one field that begin another one; compatible servers that ignore those of
several fields would read the whole collection."""

INDEX_S = 60.0
"""Longest time to create the indexes of one collection, in seconds."""

_MAX_DETAIL = 300

_LENIENT: CodecOptions[dict[str, Any]] = CodecOptions(
    unicode_decode_error_handler="surrogateescape",
    datetime_conversion=DatetimeConversion.DATETIME_AUTO,
)
"""A text or a date that is none must not keep other documents from being read; our codec refuses
what has one."""

PATIENCE = 3
"""PyMongo keeps to the limit by itself: what nobody waits for any more ends soon, or after so many
times the limit never will."""

HEALTH = "health"
"""The collection of the small write that shows whether writes work."""

GOODBYE_S = 0.5
"""The most time for telling a server that nobody comes back: it finds that out by itself."""

MOTOR_THREADS = 64
"""Motor runs each operation in a thread: with fewer of them than this, work stands in a queue while
the server is slow, and the time limit is over before it begins."""


class Apart(Protocol):
    """Does an operation of the driver so that whoever stops waiting leaves it to itself."""

    def __call__(self, work: Awaitable[T]) -> Awaitable[T]:
        """Wait for an operation."""
        ...


class Client:
    """One pool of connections to one database.

    Args:
        uri: Names the servers, and the database unless that is given.
        driver: Which driver to use.
        database: Name of the database; None for the one in `uri`, or `countersign`.
        timeout: How long an operation may take, with its retry; the address may say otherwise.
        indexes: The fields of further indexes, by collection.
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
        self._indexes = {**INDEXES, **(indexes or {})}
        self._driver = driver
        self._name = database
        # A tenth is for the way back: the caller has its answer within `timeout`.
        self._address = ServerAddress(
            uri, timeout_ms=int(timeout / timedelta(milliseconds=1) * 0.9)
        )
        self._database: AsyncDatabase[dict[str, Any]] | None = None
        self._close: Callable[[], Awaitable[None]] | None = None
        self._left: dict[asyncio.Future[Any], float] = {}
        self._closing: set[asyncio.Future[Any]] = set()

    async def open_to_read(self) -> None:
        """Connect, and ask for a sign of life.

        Raises:
            StoreUnavailableError: The server does not answer, or refuses.
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
        """Connect, ask for a sign of life, make the indexes; may be repeated.

        Raises:
            StoreUnavailableError: The server does not answer, or refuses.
        """
        await self.open_to_read()
        try:
            for name, indexes in self._indexes.items():
                models = [IndexModel([(field, 1) for field in fields]) for fields in indexes]
                with pymongo.timeout(INDEX_S):
                    async with self.call(INDEX_S) as apart:
                        await apart(self.collection(name).create_indexes(models))
        except BaseException:
            await self.close()
            raise

    async def ping(self, *, limit_s: float | None = None) -> None:
        """Ask for a sign of life.

        Args:
            limit_s: How long to wait; as long as for any operation when None.

        Raises:
            StoreUnavailableError: There is none.
        """
        await self._twice(lambda: self.command("ping", limit_s=limit_s))

    async def write(self) -> None:
        """Make a small write, to see whether writes work.

        Raises:
            StoreUnavailableError: They do not.
        """

        async def count() -> None:
            async with self.call() as apart:
                with suppress(DuplicateKeyError):  # two made it at once: it is there
                    await apart(
                        self.collection(HEALTH).update_one(
                            {"_id": "ready"}, {"$inc": {"writes": 1}}, upsert=True
                        )
                    )

        await self._twice(count)

    async def command(
        self, name: str, *, limit_s: float | None = None, **values: Any
    ) -> dict[str, Any]:
        """Run a command that asks the server something.

        Raises:
            StoreUnavailableError: It does not answer, or refuses.
        """
        if self._database is None:
            raise StoreUnavailableError("it is not open")
        async with self.call(limit_s) as apart:
            answer: dict[str, Any] = await apart(self._database.command(name, **values))
        return answer

    async def identity(self, name: str) -> str:
        """Find the server's own id of a collection; empty where it gives none.

        Raises:
            StoreUnavailableError: It does not answer.
        """
        try:
            answer = await self.command("listCollections", filter={"name": name})
        except StoreBrokenError:
            return ""  # it does not tell, or not us
        found = answer.get("cursor", {}).get("firstBatch") or [{}]
        text = str(found[0].get("info", {}).get("uuid") or "")
        return text if text.strip("0-") else ""

    async def close(self) -> None:
        """Close all connections; may be repeated."""
        close, self._close, self._database = self._close, None, None
        if close is not None:
            self._close_apart(close)
        if ends := [*self._closing, *self._left]:
            # Closing the pool ends what was left to itself; should it be stuck, nothing does.
            await asyncio.wait(ends, timeout=self._address.timeout_ms / 900)

    def collection(self, name: str) -> Any:
        """Give the driver's own collection.

        Raises:
            StoreUnavailableError: The client is not open.
        """
        if self._database is None:
            raise StoreUnavailableError("it is not open")
        return self._database[name]

    @asynccontextmanager
    async def call(self, limit_s: float | None = None) -> AsyncIterator[Apart]:
        """Hold one operation to its time, and turn the driver's errors into ours.

        The time counts from here, whatever the operation waits for: a thread of motor's, a
        connection, a server. What still stands in a queue then is dropped.

        Args:
            limit_s: How long; as long as for any operation when None.

        Yields:
            By which the operation is awaited.
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
        """Turn the driver's errors into ours, without credentials."""
        try:
            yield
        except TRANSLATED as error:
            raise store_error(error, self._clean) from error

    async def _apart(self, work: Awaitable[T], limit_s: float) -> T:
        """Do an operation of PyMongo in a task that nobody cancels.

        PyMongo waits for its pool in a task of its own. Before Python 3.12, who is cancelled twice
        there, or once as the wait ends by itself, goes on without that task, which then takes the
        lock of the pool, and keeps it for ever. Motor's operations are in threads.
        """
        task, database = asyncio.ensure_future(work), self._database
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._forget)
            if self._database is None or self._database is database:
                self._left[task] = asyncio.get_running_loop().time() + limit_s * PATIENCE
            else:
                task.cancel()  # its connections were given up: it says nothing about these
            raise

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._left.pop(task, None)
        self._closing.discard(task)
        if not task.cancelled():
            task.exception()  # nobody else asks for it

    def _renew_if_stuck(self) -> None:
        """Connect anew when what was left to itself has not ended: then nothing else would."""
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
            return  # it was connected before: a file may be away at the moment
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
            # The pool held a connection from before a restart; not everything is retried.
            await work()

    def _clean(self, text: str) -> str:
        text = self._address.clean(text)
        return text if len(text) <= _MAX_DETAIL else text[:_MAX_DETAIL] + "…"

    def _connect(self) -> AsyncDatabase[dict[str, Any]]:
        self._address.check()
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
                # There is no other way but the environment.
                framework._reset_global_executor()  # type: ignore[no-untyped-call] # noqa: SLF001
            motor = AsyncIOMotorClient(self._uri, **options)

            # It says goodbye first, and waits for a server that is away: others must not.
            self._close = partial(asyncio.to_thread, _say_goodbye, motor.close)
            return motor
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(self._uri, **options)
        self._close = client.close
        return client


def _say_goodbye(close: Callable[[], object]) -> None:
    with pymongo.timeout(GOODBYE_S):
        close()
