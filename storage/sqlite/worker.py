"""The thread that owns the connection, and runs statements in groups.

What arrives while a group is being written waits, and becomes the next group: one transaction, one
wait for the disk, however many statements. Alone, a statement is not held up by anything. This is
why the standard library is used here, rather than a package that sends statements one by one.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from storage.errors import RecordRefusedError, StorageError, StoreUnavailableError

Rows: TypeAlias = list[dict[str, Any]]

MOST = 200
"""Statements of one group; more would keep the first of them waiting."""


@dataclass(frozen=True, slots=True)
class _Statement:
    sql: str
    values: Mapping[str, object]
    future: asyncio.Future[Rows]


class Worker:
    """One connection in one thread.

    Args:
        connection: Opened by `connect`, in autocommit mode.
        thread: Where it was opened; ended by `close`.
    """

    def __init__(self, connection: sqlite3.Connection, thread: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._thread = thread
        self._waiting: list[_Statement] = []
        self._writer: asyncio.Task[None] | None = None
        self._is_closed = False

    async def run(self, sql: str, values: Mapping[str, object]) -> Rows:
        """Run one statement; when this returns, its effect is on the disk.

        Raises:
            StoreUnavailableError: It cannot be run now; it had no effect, unless the commit itself
                failed.
            RecordRefusedError: A value can never be stored.
        """
        if self._is_closed:
            raise StoreUnavailableError("it is not open")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Rows] = loop.create_future()
        self._waiting.append(_Statement(sql, values, future))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write())
        return await future

    async def close(self) -> None:
        """Finish what waits, and close the connection."""
        self._is_closed = True
        if self._writer is not None:
            await asyncio.wait([self._writer])
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            work = [(one.sql, one.values) for one in group]
            results = await loop.run_in_executor(self._thread, _run, self._connection, work)
            for one, result in zip(group, results, strict=True):
                if one.future.done():  # its caller was cancelled; the effect stands
                    continue
                if isinstance(result, StorageError):
                    one.future.set_exception(result)
                else:
                    one.future.set_result(result)


async def connect(target: str, *, uri: bool = False) -> Worker:
    """Open a file in a thread of its own.

    Args:
        target: Its path.
        uri: Whether that is written as an address, with options.

    Raises:
        StoreUnavailableError: It cannot be opened.
    """
    thread = ThreadPoolExecutor(1, "sqlite")
    loop = asyncio.get_running_loop()
    try:
        connection = await loop.run_in_executor(thread, _open, target, uri)
    except sqlite3.Error as error:
        thread.shutdown()
        raise StoreUnavailableError(str(error)) from error
    return Worker(connection, thread)


def _open(target: str, uri: bool) -> sqlite3.Connection:  # noqa: FBT001 - called by an executor
    connection = sqlite3.connect(target, isolation_level=None, uri=uri)
    connection.row_factory = _as_dict
    return connection


def _as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def _run(
    connection: sqlite3.Connection, work: Sequence[tuple[str, Mapping[str, object]]]
) -> list[Rows | StorageError]:
    """Run a group; all of it in one transaction, each with its own result."""
    if len(work) == 1:
        return [_run_one(connection, *work[0])]
    # Whoever reads first and writes then would be refused when another process, such as
    # `countersign prune`, writes in between: so a group that writes has its right from the start.
    is_reading = all(sql.lstrip().startswith("SELECT") for sql, _ in work)
    try:
        connection.execute("BEGIN" if is_reading else "BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        return [StoreUnavailableError(str(error))] * len(work)
    results: list[Rows | StorageError] = []
    for sql, values in work:
        result = _run_one(connection, sql, values)
        if not connection.in_transaction:
            # A full disk or a fault of the file undoes the whole group, not one statement alone.
            return _all_failed(connection, result, len(work))
        results.append(result)
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        return _all_failed(connection, StoreUnavailableError(str(error)), len(work))
    return results


def _all_failed(
    connection: sqlite3.Connection, fault: Rows | StorageError, count: int
) -> list[Rows | StorageError]:
    with suppress(sqlite3.Error):
        connection.execute("ROLLBACK")
    if not isinstance(fault, StorageError):
        fault = StoreUnavailableError("a group of statements was undone")
    return [StoreUnavailableError(getattr(fault, "detail", str(fault))) for _ in range(count)]


def _run_one(
    connection: sqlite3.Connection, sql: str, values: Mapping[str, object]
) -> Rows | StorageError:
    try:
        return connection.execute(sql, values).fetchall()
    except (UnicodeError, OverflowError, sqlite3.DataError) as error:
        return _with_cause(RecordRefusedError(str(error)), error)
    except sqlite3.Error as error:
        return _with_cause(StoreUnavailableError(str(error)), error)


def _with_cause(fault: StorageError, cause: Exception) -> StorageError:
    fault.__cause__ = cause
    return fault
