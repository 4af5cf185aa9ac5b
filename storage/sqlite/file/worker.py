"""The thread that owns the connection, and commits statements in groups.

Statements that arrive during a commit form the next group: one transaction and one fsync for all of
them. A single statement never waits for a group to fill. Packages that send statements one by one
cannot group commits, so this module uses the standard library.

A database in memory needs no fsync: its statements run in the calling thread, which takes a quarter
of the time of a round trip to another thread.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from storage.errors import StorageError, StoreUnavailableError
from storage.sqlite.file.statements import (
    Result,
    Rows,
    Statement,
    Unit,
    Values,
    Watch,
    run_alone,
    run_one,
    run_units,
    unexpected,
)

MEMORY = ":memory:"
"""SQLite's path of a database in memory."""

MOST = 200
"""Size of a full group, in units. A larger group would delay its first caller too long."""

CLOSE_S = 10.0
"""Longest time to finish the last statements and close the file, in seconds."""

Prepare: TypeAlias = Callable[[sqlite3.Connection], None]
"""Prepares a new connection."""

Call: TypeAlias = Callable[..., Awaitable[Any]]
"""Calls a function in the thread of the connection."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A unit of statements, and the future of its caller."""

    unit: Unit
    future: asyncio.Future[list[Rows]]

    def settle(self, result: Result) -> None:
        """Deliver the result, unless the caller has stopped waiting."""
        if self.future.done():
            return
        if isinstance(result, StorageError):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


async def _here(function: Callable[..., Any], *args: object) -> Any:
    """Call a function in this thread, for a database in memory."""
    await asyncio.sleep(0)  # let other tasks run and join the next group
    return function(*args)


class Worker:
    """A connection, in a thread of its own unless the database is in memory.

    Args:
        connection: Opened by `connect`, in autocommit mode.
        call: Calls a function in the thread that opened the connection.
        thread: The worker's own thread, ended by `close`; None for a database in memory.

    Attributes:
        limit_s: Maximum time that a caller waits for its statements, in seconds; None without a
            limit.
        is_guest: Whether another process owns the file. The worker then pauses after each group for
            as long as the group took, because SQLite's locks are not fair.
    """

    limit_s: float | None = None
    is_guest = False

    def __init__(
        self, connection: sqlite3.Connection, call: Call, thread: ThreadPoolExecutor | None
    ) -> None:
        self._connection = connection
        self._call = call
        self._thread = thread
        self._waiting: list[_Waiting] = []
        self._writer: asyncio.Task[None] | None = None
        self._is_closed = False
        self._watch: Watch = _sees_nothing

    def watch(self, watch: Watch) -> None:
        """Check the file before each group from now on.

        Args:
            watch: Called in the thread of the connection.
        """
        self._watch = watch

    async def run(self, sql: str, values: Values, *, is_limited: bool = True) -> Rows:
        """Run one statement; when this returns, its effect is on the disk.

        Args:
            sql: The statement.
            values: Its parameters.
            is_limited: Whether `limit_s` applies.

        Raises:
            StoreUnavailableError: The statement cannot run now, or exceeded the limit; its effect
                is unknown.
            RecordRefusedError: A value can never be stored.
        """
        return (await self.run_together([(sql, values)], is_limited=is_limited))[0]

    async def run_together(
        self, statements: Sequence[Statement], *, is_limited: bool = True
    ) -> list[Rows]:
        """Run statements in one transaction; if one fails, none takes effect.

        Statements that have not begun when their caller stops waiting are not run.

        Raises:
            StoreUnavailableError: The statements cannot run now, or exceeded the limit. They had no
                effect, unless the commit itself failed or the limit was exceeded.
            RecordRefusedError: A value can never be stored.
        """
        if self._is_closed:
            raise StoreUnavailableError("it is not open")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Rows]] = loop.create_future()
        self._waiting.append(_Waiting(statements, future))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write())
        try:
            async with asyncio.timeout(self.limit_s if is_limited else None):
                return await future
        except TimeoutError as error:
            raise StoreUnavailableError(f"no answer within {self.limit_s} s") from error

    async def run_script(self, script: str) -> None:
        """Run a script that manages its own transactions.

        Raises:
            StoreUnavailableError: The script failed; its last transaction is rolled back.
        """
        await self._alone(partial(self._connection.executescript, script))

    async def copy(self, other: sqlite3.Connection) -> None:
        """Copy all tables and rows of another database into this one.

        Raises:
            StoreUnavailableError: This database cannot be written now.
        """
        await self._alone(partial(other.backup, self._connection))

    async def clear_log(self) -> bool:
        """Empty the write-ahead log; return False if another connection prevents this.

        Raises:
            StoreUnavailableError: The file cannot be written now.
        """
        results: list[bool] = []
        await self._alone(lambda: results.append(_clear_log(self._connection)))
        return results == [True]

    async def close(self) -> None:
        """Finish the waiting statements and close the connection.

        Raises:
            StoreUnavailableError: The disk does not respond; the connection stays open.
        """
        self._is_closed = True
        try:
            async with asyncio.timeout(CLOSE_S):
                if self._writer is not None:
                    await asyncio.wait([self._writer])
                await self._call(self._connection.close)
        except TimeoutError as error:
            raise StoreUnavailableError(f"it does not close within {CLOSE_S} s") from error
        except sqlite3.Error as error:
            raise unexpected(error) from error
        finally:
            if self._thread is not None:
                self._thread.shutdown(wait=False)  # do not wait: the disk may hang

    async def _alone(self, work: Callable[[], object]) -> None:
        fault: StorageError | None = await self._call(run_alone, self._connection, work)
        if fault is not None:
            raise fault

    async def _write(self) -> None:
        group: list[_Waiting] = []
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                group = [
                    caller for caller in group if not caller.future.done()
                ]  # Skip callers that stopped waiting.
                if not group:
                    continue
                began = asyncio.get_running_loop().time()
                results = await self._results([caller.unit for caller in group])
                for caller, result in zip(group, results, strict=True):
                    caller.settle(result)
                if self.is_guest:
                    await asyncio.sleep(asyncio.get_running_loop().time() - began)
        finally:  # also if this task is cancelled, so that no caller waits forever
            for waiting in (*group, *self._waiting):
                if not waiting.future.done():
                    waiting.settle(StoreUnavailableError("its statements were cut off"))
            self._waiting = []

    async def _results(self, units: Sequence[Unit]) -> list[Result]:
        try:
            results: list[Result] = await self._call(
                run_units, self._connection, self._watch, units
            )
        except Exception as error:  # noqa: BLE001 - each caller waits for a result
            return [unexpected(error)] * len(units)
        return results


def _clear_log(connection: sqlite3.Connection) -> bool:
    # With a busy timeout, the checkpoint would wait for readers, and all writes would wait behind
    # it.
    (before,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {before}")
    return not is_busy


async def connect(target: str, *, uri: bool = False, prepare: Prepare | None = None) -> Worker:
    """Open a file in a new thread, or a database in memory in the calling thread.

    Args:
        target: Path of the file, or `MEMORY`.
        uri: Whether `target` is a URI with options.
        prepare: Prepares the connection, in its thread.

    Raises:
        StoreUnavailableError: The database cannot be opened.
    """
    thread = None if target == MEMORY else ThreadPoolExecutor(1, "sqlite")
    loop = asyncio.get_running_loop()
    call: Call = _here if thread is None else partial(loop.run_in_executor, thread)
    try:
        connection = await call(partial(_opened, target, uri, prepare))
    except BaseException as error:
        if thread is not None:
            thread.shutdown(wait=False)
        if isinstance(error, Exception):
            raise unexpected(error) from error
        raise
    return Worker(connection, call, thread)


def _opened(target: str, uri: bool, prepare: Prepare | None) -> sqlite3.Connection:  # noqa: FBT001
    connection = open_file(target, uri=uri)
    try:
        if prepare is not None:
            prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _sees_nothing() -> None:
    return None


def open_file(target: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a file in autocommit mode, for use in the calling thread."""
    connection = sqlite3.connect(target, isolation_level=None, uri=uri)
    # Text that is not valid UTF-8 must not prevent reading the other rows: the codec refuses only
    # the damaged document.
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


class Reader:
    """A read-only connection.

    Args:
        connection: Opened by `open_reader`.
        watch: Returns why reads are not permitted now, or None.
    """

    def __init__(self, connection: sqlite3.Connection, watch: Watch) -> None:
        self._connection = connection
        self._watch = watch

    def run(self, sql: str, values: Mapping[str, object]) -> Rows | None:
        """Run a query of few rows by an index; return None if the worker must run it."""
        if self._watch() is not None:
            return None
        try:
            rows = run_one(self._connection, sql, values)
        except Exception:  # noqa: BLE001 - the worker is asked, and says what is wrong
            return None
        return None if isinstance(rows, StorageError) else rows

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def open_reader(target: str, watch: Watch) -> Reader | None:
    """Open a second connection to a worker's file; return None on failure.

    Args:
        target: Path of the file.
        watch: Returns why reads are not permitted now, or None.
    """
    try:
        connection = open_file(target)
    except Exception:  # noqa: BLE001 - the worker reads all then
        return None
    try:
        for setting in ("PRAGMA busy_timeout = 0", "PRAGMA query_only = ON"):
            connection.execute(setting)
    except Exception:  # noqa: BLE001 - as above
        connection.close()
        return None
    return Reader(connection, watch)
