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
from collections.abc import Awaitable, Callable, Sequence
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
    run_alone,
    run_units,
    unexpected,
)

MEMORY = ":memory:"
"""The path of a database that is in no file, as SQLite calls it."""

MOST = 200
"""Statements of one group; more would keep the first of them waiting."""

CLOSE_S = 10.0
"""Longest time to finish the last statements and close the file, in seconds."""

Prepare: TypeAlias = Callable[[sqlite3.Connection], None]
"""Makes a new connection ready."""

Call: TypeAlias = Callable[..., Awaitable[Any]]
"""Calls a function, with its arguments."""

Watch: TypeAlias = Callable[[], StoreUnavailableError | None]
"""Says why nothing may be read or written now; None when all is well."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A unit of statements, and the caller that waits for its result."""

    unit: Unit
    future: asyncio.Future[list[Rows]]

    def settle(self, result: Result) -> None:
        """Tell the caller, unless it has stopped waiting."""
        if self.future.done():
            return
        if isinstance(result, StorageError):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


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

    Attributes:
        limit_s: How long a caller waits for its statements; None for as long as they take.
        is_guest: Whether another process has the file, and gets half of the time: SQLite's locks
            are not given in turn.
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
        """Ask before each group, from now on, whether it may be run.

        Args:
            watch: Called in the thread of the connection.
        """
        self._watch = watch

    async def run(self, sql: str, values: Values, *, is_limited: bool = True) -> Rows:
        """Run one statement; when this returns, its effect is on the disk.

        Args:
            sql: The statement.
            values: Its parameters.
            is_limited: Whether `limit_s` holds for it.

        Raises:
            StoreUnavailableError: It cannot be run now; its effect is unknown.
            RecordRefusedError: A value can never be stored.
        """
        return (await self.run_together([(sql, values)], is_limited=is_limited))[0]

    async def run_together(
        self, statements: Sequence[Statement], *, is_limited: bool = True
    ) -> list[Rows]:
        """Run statements in one transaction; when one fails, none has an effect.

        Statements that have not begun when their caller stops waiting are not run.

        Raises:
            StoreUnavailableError: They cannot be run now, or did not end in time. They had no
                effect, unless the commit itself failed, or they did not end in time.
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
        """Run statements that begin and end their transactions themselves.

        Raises:
            StoreUnavailableError: They cannot be run; the last transaction is rolled back.
        """
        await self._alone(partial(self._connection.executescript, script))

    async def copy(self, other: sqlite3.Connection) -> None:
        """Take over all tables of another database, and their rows.

        Raises:
            StoreUnavailableError: It cannot be written now.
        """
        await self._alone(partial(other.backup, self._connection))

    async def clear_log(self) -> bool:
        """Move the write-ahead log into the file, unless another connection is in the way.

        Raises:
            StoreUnavailableError: It cannot be done now.
        """
        results: list[bool] = []
        await self._alone(lambda: results.append(_clear_log(self._connection)))
        return results == [True]

    async def close(self) -> None:
        """Finish the waiting statements, and close the connection.

        Raises:
            StoreUnavailableError: The disk does not answer; the connection stays open.
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
                self._thread.shutdown(wait=False)  # its work is over, or may never be

    async def _alone(self, work: Callable[[], object]) -> None:
        fault: StorageError | None = await self._call(run_alone, self._connection, work)
        if fault is not None:
            raise fault

    async def _write(self) -> None:
        group: list[_Waiting] = []
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                group = [one for one in group if not one.future.done()]  # the others gave up
                if not group:
                    continue
                began = asyncio.get_running_loop().time()
                _settle(group, await self._results([one.unit for one in group]))
                if self.is_guest:
                    await asyncio.sleep(asyncio.get_running_loop().time() - began)
        finally:  # also when this task is cancelled: nobody may wait for ever
            fault = StoreUnavailableError("its statements were cut off")
            for one in (*group, *self._waiting):
                one.settle(fault)
            self._waiting = []

    async def _results(self, units: Sequence[Unit]) -> list[Result]:
        try:
            results: list[Result] = await self._call(
                _run_watched, self._connection, self._watch, units
            )
        except Exception as error:  # noqa: BLE001 - each caller waits for a result
            return [unexpected(error)] * len(units)
        return results


def _settle(group: Sequence[_Waiting], results: Sequence[Result]) -> None:
    for one, result in zip(group, results, strict=True):
        one.settle(result)


def _run_watched(
    connection: sqlite3.Connection, watch: Watch, units: Sequence[Unit]
) -> list[Result]:
    fault = watch()
    return [fault] * len(units) if fault is not None else run_units(connection, units)


def _clear_log(connection: sqlite3.Connection) -> bool:
    # SQLite itself waits for nobody meanwhile: all writes would wait behind it.
    (before,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {before}")
    return not is_busy


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
    """Open a file in autocommit mode, for the thread that calls."""
    connection = sqlite3.connect(target, isolation_level=None, uri=uri)
    # A text that is none must not keep the other rows from being read: the codec refuses it.
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection
