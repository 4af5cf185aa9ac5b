"""The thread that owns the connection, and runs statements in groups.

What arrives while a group is being written waits, and becomes the next group: one transaction, one
wait for the disk, however many statements. Alone, a statement is not held up by anything. This is
why the standard library is used here, rather than a package that sends statements one by one.

A database in memory waits for no disk: its statements run where they are asked for, which takes a
quarter of the time that the way to a thread and back does.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from storage.errors import (
    Fault,
    RecordRefusedError,
    StorageError,
    StoreBrokenError,
    StoreUnavailableError,
)
from storage.sqlite.file.faults import store_error

Rows: TypeAlias = list[dict[str, Any]]

MEMORY = ":memory:"
"""The path of a database that is in no file, as SQLite calls it."""

MOST = 200
"""Statements of one group; more would keep the first of them waiting."""


Values: TypeAlias = Mapping[str, object] | Sequence[object]

Statement: TypeAlias = tuple[str, Values]

Prepare: TypeAlias = Callable[[sqlite3.Connection], None]
"""Makes a new connection ready."""

Call: TypeAlias = Callable[..., Awaitable[Any]]
"""Calls a function, with its arguments."""

Watch: TypeAlias = Callable[[], StoreUnavailableError | None]
"""Says why nothing may be read or written now; None when all is well."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """Statements that have their effect together or not at all; mostly one."""

    statements: Sequence[Statement]
    future: asyncio.Future[list[Rows]]


async def _here(function: Callable[..., Any], *args: object) -> Any:
    """Call a function that waits for nothing, such as a disk."""
    await asyncio.sleep(0)  # others are served, and may join the next group
    return function(*args)


class Worker:
    """One connection in one thread.

    Args:
        connection: Opened by `connect`, in autocommit mode.
        call: Calls a function in the thread in which it was opened.
        thread: That thread, where it is one of its own; ended by `close`.
    """

    def __init__(
        self, connection: sqlite3.Connection, call: Call, thread: ThreadPoolExecutor | None
    ) -> None:
        self._connection = connection
        self._call = call
        self._thread = thread
        self._waiting: list[_Unit] = []
        self._writer: asyncio.Task[None] | None = None
        self._is_closed = False
        self._watch: Watch = _sees_nothing

    def watch(self, watch: Watch) -> None:
        """Ask before each group, from now on, whether it may be run.

        Args:
            watch: Called in the thread of the connection.
        """
        self._watch = watch

    async def run(self, sql: str, values: Mapping[str, object]) -> Rows:
        """Run one statement; when this returns, its effect is on the disk.

        Raises:
            StoreUnavailableError: It cannot be run now; it had no effect, unless the commit itself
                failed.
            RecordRefusedError: A value can never be stored.
        """
        return (await self.run_together([(sql, values)]))[0]

    async def run_together(self, statements: Sequence[Statement]) -> list[Rows]:
        """Run statements in one transaction; when one fails, none has an effect.

        Raises:
            StoreUnavailableError: They cannot be run now; they had no effect, unless the commit
                itself failed.
            RecordRefusedError: A value can never be stored.
        """
        if self._is_closed:
            raise StoreUnavailableError("it is not open")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Rows]] = loop.create_future()
        self._waiting.append(_Unit(statements, future))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write())
        return await future

    async def run_script(self, script: str) -> None:
        """Run statements that begin and end their transactions themselves.

        Raises:
            StoreUnavailableError: They cannot be run now.
        """
        try:
            await self._call(self._connection.executescript, script)
        except sqlite3.Error as error:
            raise store_error(error) from error

    async def copy(self, other: sqlite3.Connection) -> None:
        """Take over all tables of another database, and their rows.

        Raises:
            StoreUnavailableError: It cannot be written now.
        """
        try:
            await self._call(other.backup, self._connection)
        except sqlite3.Error as error:
            raise store_error(error) from error

    async def close(self) -> None:
        """Finish what waits, and close the connection."""
        self._is_closed = True
        if self._writer is not None:
            await asyncio.wait([self._writer])
        await self._call(self._connection.close)
        if self._thread is not None:
            self._thread.shutdown()

    async def _write(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            work = [unit.statements for unit in group]
            results = await self._call(_run_watched, self._connection, self._watch, work)
            for unit, result in zip(group, results, strict=True):
                if unit.future.done():  # its caller was cancelled; the effect stands
                    continue
                if isinstance(result, StorageError):
                    unit.future.set_exception(result)
                else:
                    unit.future.set_result(result)


async def connect(target: str, *, uri: bool = False, prepare: Prepare | None = None) -> Worker:
    """Open a file in a thread of its own, or a database in memory in the caller's.

    Args:
        target: Its path, or `MEMORY`.
        uri: Whether that is written as an address, with options.
        prepare: Is given the connection, in its thread.

    Raises:
        StoreUnavailableError: It cannot be opened.
    """
    thread = None if target == MEMORY else ThreadPoolExecutor(1, "sqlite")
    loop = asyncio.get_running_loop()
    call: Call = _here if thread is None else partial(loop.run_in_executor, thread)
    try:
        connection = await call(partial(open_file, target, uri=uri))
        if prepare is not None:
            await call(prepare, connection)
    except sqlite3.Error as error:
        if thread is not None:
            thread.shutdown()
        raise store_error(error) from error
    return Worker(connection, call, thread)


def _sees_nothing() -> None:
    return None


def open_file(target: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a file in autocommit mode, for the thread that calls."""
    connection = sqlite3.connect(target, isolation_level=None, uri=uri)
    # A text that is none must not keep the other rows from being read: the codec refuses it.
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


Result: TypeAlias = list[Rows] | StorageError


def _run_watched(
    connection: sqlite3.Connection, watch: Watch, work: Sequence[Sequence[Statement]]
) -> list[Result]:
    fault = watch()
    return [fault] * len(work) if fault is not None else _run(connection, work)


def _run(connection: sqlite3.Connection, work: Sequence[Sequence[Statement]]) -> list[Result]:
    """Run a group; all of it in one transaction, each unit with its own result."""
    if len(work) == 1 and len(work[0]) == 1:
        return [_run_unit(connection, work[0])]
    # Whoever reads first and writes then would be refused when another process, such as
    # `countersign prune`, writes in between: so a group that writes has its right from the start.
    is_reading = all(sql.lstrip().startswith("SELECT") for unit in work for sql, _ in unit)
    try:
        connection.execute("BEGIN" if is_reading else "BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        return [store_error(error)] * len(work)
    results: list[Result] = []
    for unit in work:
        result = _run_unit(connection, unit)
        if not connection.in_transaction:
            # A full disk or a fault of the file undoes the whole group, not one statement alone.
            return _all_failed(connection, result, len(work))
        results.append(result)
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        return _all_failed(connection, store_error(error), len(work))
    return results


def _all_failed(connection: sqlite3.Connection, fault: Result, count: int) -> list[Result]:
    with suppress(sqlite3.Error):
        connection.execute("ROLLBACK")
    if not isinstance(fault, StoreUnavailableError):
        detail = getattr(fault, "detail", "a group of statements was undone")
        fault = StoreUnavailableError(detail)
    return [fault] * count


def _run_unit(connection: sqlite3.Connection, unit: Sequence[Statement]) -> Result:
    if len(unit) == 1:
        result = run_one(connection, *unit[0])
        return result if isinstance(result, StorageError) else [result]
    connection.execute("SAVEPOINT unit")
    results: list[Rows] = []
    for sql, values in unit:
        result = run_one(connection, sql, values)
        if isinstance(result, StorageError):
            with suppress(sqlite3.Error):  # the fault may have undone all of it
                connection.execute("ROLLBACK TO unit")
            return result
        results.append(result)
    connection.execute("RELEASE unit")
    return results


def run_one(connection: sqlite3.Connection, sql: str, values: Values) -> Rows | StorageError:
    """Run a statement; return its rows, or what is wrong in our words."""
    try:
        cursor = connection.execute(sql, values)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    except UnicodeDecodeError as error:  # not even SQLite's own words can be read any more
        fault = StoreBrokenError("the database file is damaged", Fault.DAMAGED)
        return _with_cause(fault, error)
    except (UnicodeError, OverflowError, sqlite3.DataError) as error:
        return _with_cause(RecordRefusedError(str(error)), error)
    except sqlite3.Error as error:
        return store_error(error)


def _with_cause(fault: StorageError, cause: Exception) -> StorageError:
    fault.__cause__ = cause
    return fault
