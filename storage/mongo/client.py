"""The connection: opens either driver, makes the indexes, and names what went wrong.

The drivers' own types go no further than this package; both offer the same methods on collections,
so that only opening and closing differ.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal
from urllib.parse import unquote, unquote_plus

import pymongo
from bson.errors import BSONError
from pymongo import AsyncMongoClient, IndexModel, ReadPreference, WriteConcern
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import AutoReconnect, DocumentTooLarge, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern

from storage.errors import RecordRefusedError, StoreUnavailableError

Driver = Literal["motor", "pymongo"]

DEFAULT_DATABASE = "countersign"

INDEXES: Mapping[str, Sequence[Sequence[str]]] = {
    "threads": [["due_ms"], ["active_ms"]],
    "messages": [["thread_id", "turn", "ts"]],
    "approvals": [
        ["due_ms"],
        ["thread_id", "created_ms", "position"],
        ["thread_id", "open", "created_ms", "position"],
        ["checkpoint_id"],
        ["undeliverable", "created_ms"],
    ],
    "posts": [["thread_id", "posted", "created_ms"]],
    "whispers": [["due_ms"], ["channel_id", "thread_ts"], ["created_ms"]],
    "audit": [["thread_id", "at_ms"]],
    "log": [["log_id", "turn"]],
    "journal": [["checkpoint_id", "base", "index"]],
}
"""By collection, the fields of each index, ascending. What must be unique is in `_id`, so that a
cluster can be sharded by it; ids that belong to a thread begin with the thread's id."""

INDEX_S = 60.0
"""How long one collection may take: with a new release, an index can be missing on much data."""

_MAX_DETAIL = 300

_TOO_LARGE = frozenset({10334, 17280, 17419, 17420})
"""The server's codes for a document or a key that is larger than it can hold."""


class Client:
    """One pool of connections to one database.

    Args:
        uri: Names the servers, and the database unless that is given.
        driver: Which driver to use.
        database: Name of the database; None for the one in `uri`, or `countersign`.
        timeout: How long an operation may take, with its retry.
    """

    def __init__(
        self, uri: str, *, driver: Driver, database: str | None, timeout: timedelta
    ) -> None:
        self._uri = uri
        self._driver = driver
        self._name = database
        # A tenth is for the way back: the caller has its answer within `timeout`.
        self._timeout_ms = int(timeout / timedelta(milliseconds=1) * 0.9)
        self._secrets = _secrets_of(uri)
        self._database: AsyncDatabase[dict[str, Any]] | None = None
        self._close: Callable[[], Awaitable[None]] | None = None

    async def open_to_read(self) -> None:
        """Connect, and ask for a sign of life.

        Raises:
            StoreUnavailableError: The server does not answer, or refuses.
        """
        try:
            if self._database is None:
                self._database = self._connect()
            await self.ping()
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
            for name, indexes in INDEXES.items():
                models = [IndexModel([(field, 1) for field in fields]) for fields in indexes]
                with self.guard(), pymongo.timeout(INDEX_S):
                    await self.collection(name).create_indexes(models)
        except BaseException:
            await self.close()
            raise

    async def ping(self) -> None:
        """Ask for a sign of life.

        Raises:
            StoreUnavailableError: There is none.
        """
        if self._database is None:
            raise StoreUnavailableError("it is not open")
        with self.guard():
            try:
                await self._database.command("ping")
            except AutoReconnect as error:
                if error.timeout:
                    raise
                # The pool held a connection from before a restart; commands are not retried.
                await self._database.command("ping")

    async def close(self) -> None:
        """Close all connections; may be repeated."""
        close, self._close, self._database = self._close, None, None
        if close is not None:
            await close()

    def collection(self, name: str) -> Any:
        """Give the driver's own collection.

        Raises:
            StoreUnavailableError: The client is not open.
        """
        if self._database is None:
            raise StoreUnavailableError("it is not open")
        return self._database[name]

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn the driver's errors into ours, without credentials."""
        try:
            yield
        except (BSONError, UnicodeError, OverflowError, DocumentTooLarge) as error:
            raise RecordRefusedError(self._clean(error)) from error
        except PyMongoError as error:
            if isinstance(error, OperationFailure) and error.code in _TOO_LARGE:
                raise RecordRefusedError(self._clean(error)) from error
            raise StoreUnavailableError(self._clean(error)) from error

    def _clean(self, error: Exception) -> str:
        text = str(error)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text if len(text) <= _MAX_DETAIL else text[:_MAX_DETAIL] + "…"

    def _connect(self) -> AsyncDatabase[dict[str, Any]]:
        options: dict[str, Any] = {
            "appname": "countersign",
            "timeoutMS": self._timeout_ms,
            "serverSelectionTimeoutMS": self._timeout_ms,
            "connectTimeoutMS": self._timeout_ms,
            "retryWrites": True,
            "retryReads": True,
        }
        try:
            client = self._client(options)
            name = self._name or client.get_default_database(DEFAULT_DATABASE).name
            database: AsyncDatabase[dict[str, Any]] = client.get_database(
                name,
                read_preference=ReadPreference.PRIMARY,
                write_concern=WriteConcern("majority"),
                read_concern=ReadConcern("majority"),
            )
        except (PyMongoError, ValueError) as error:
            detail = f"its address cannot be used: {self._clean(error)}"
            raise StoreUnavailableError(detail) from None  # the cause may quote the password
        return database

    def _client(self, options: Mapping[str, Any]) -> Any:
        if self._driver == "motor":
            from motor.motor_asyncio import (  # noqa: PLC0415 - only the chosen driver is loaded
                AsyncIOMotorClient,
            )

            motor = AsyncIOMotorClient(self._uri, **options)

            async def close_motor() -> None:
                motor.close()

            self._close = close_motor
            return motor
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(self._uri, **options)
        self._close = client.close
        return client


def _secrets_of(uri: str) -> list[str]:
    found = re.match(r"[^:/]+://(.*)@", uri)
    if found is None:
        return []
    user, _, password = found[1].partition(":")
    spellings = {
        form(part) for part in (found[1], password, user) for form in (str, unquote, unquote_plus)
    }
    return sorted(spellings - {""}, key=len, reverse=True)
