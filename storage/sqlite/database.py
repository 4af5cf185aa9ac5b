"""The database file: locks its directory, opens the file, and runs single statements.

When a call returns, its effect is on the disk.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from storage.errors import (
    Fault,
    RecordFormatError,
    StoreBrokenError,
    StoreUnavailableError,
)
from storage.sqlite.file.lock import FILE_NAME, DirectoryLock
from storage.sqlite.file.private import (
    SIDES,
    FileWatch,
    check_there,
    make_private,
    open_private,
    tighten,
)
from storage.sqlite.file.statements import Rows, Statement, Values
from storage.sqlite.file.worker import MEMORY, Prepare, Reader, Worker, connect, open_reader
from storage.sqlite.tables import (
    DATABASE_VERSION,
    FIND_TABLES,
    MIGRATIONS,
    NOT_OURS,
    ddl,
    has_our_tables,
)

MIN_SQLITE = (3, 35, 0)
"""Oldest supported SQLite release: the first with RETURNING."""

TIMEOUT = timedelta(seconds=10)
"""Longest time that a caller waits for its database statements."""

LOG_BYTES = 16 << 20
"""Size limit of the write-ahead log after a reset, in bytes."""

PIECE_PAGES = 1_000
"""Number of pages that one transaction returns to the file system."""

CLEAR_TRIES = 25
CLEAR_PAUSE_S = 0.2
"""Number of attempts to empty the write-ahead log, and the delay between them in seconds. A reader
of old pages blocks an attempt.
"""

BUSY_MS = 5000
"""Longest time that a statement waits for another reader, such as a backup, in milliseconds."""


class Database:
    """A SQLite connection for writes and, for a file, a second one for short reads.

    Args:
        directory: The directory of the file, created if missing; None for a database in memory.
        prepare: Prepares each writing connection, such as by adding functions.
        timeout: Maximum duration of a statement after the file is open.
        tables: The statements that create the tables of the documents.
    """

    def __init__(
        self,
        directory: Path | None,
        prepare: Prepare | None = None,
        *,
        timeout: timedelta = TIMEOUT,
        tables: str = "",
    ) -> None:
        self._directory = directory
        self._ddl = ddl(tables)
        self._timeout_s = timeout.total_seconds()
        self._prepare_connection = prepare
        self._lock = DirectoryLock(directory) if directory is not None else None
        self._worker: Worker | None = None
        self._reader: Reader | None = None

    async def open(self) -> bool:
        """Lock the directory, open the file, and create the tables. Idempotent.

        Returns:
            Whether the database was closed before.

        Raises:
            StoreBusyError: Another process has the directory.
            StoreUnavailableError: The directory or the file cannot be used.
            RecordFormatError: The file was written by another release.
        """
        if self._worker is not None:
            return False
        if sqlite3.sqlite_version_info < MIN_SQLITE:
            version = sqlite3.sqlite_version
            raise StoreUnavailableError(f"SQLite 3.35 or newer is needed, this is {version}")
        target = self._prepare()
        try:
            self._worker = await _connect(target, self._prepare_connection, self._ddl)
            self._worker.limit_s = self._timeout_s
            if self._directory is not None and self._lock is not None:
                self._lock.name_file()  # From now on, an empty file counts as a lost one.
                self._worker.watch(FileWatch(self._directory / FILE_NAME))
                self._reader = open_reader(target, FileWatch(self._directory / FILE_NAME))
        except BaseException:
            await self.close()
            raise
        return True

    async def open_to_read(self) -> None:
        """Open a file read-only, even if another process has it open.

        Raises:
            StoreUnavailableError: There is no file, or it cannot be read.
            RecordFormatError: The file was written by another release.
        """
        path = self._existing()
        address = path.absolute().as_uri()
        # SQLite needs write access to the shared memory of the write-ahead log, so “ro” may fail
        # for a file with a log. `query_only` prevents changes.
        try:
            self._worker = await _connect_to_read(address, "mode=rw")
        except StoreBrokenError as error:
            if error.fault is not Fault.READ_ONLY:
                raise
            self._worker = await _connect_to_read(address, _read_only_mode(path))

    async def open_beside(self) -> None:
        """Open a file for short writes without the lock, even if the bot has it open.

        Raises:
            StoreUnavailableError: There is no file, or it cannot be used.
            RecordFormatError: The file was written by another release.
        """
        path = self._existing()
        address = f"{path.absolute().as_uri()}?mode=rw"
        worker = await connect(address, uri=True, prepare=self._prepare_connection)
        try:
            for setting in _SETTINGS:
                await worker.run(setting, {})
            await _check_version(worker, DATABASE_VERSION)
        except BaseException:
            await worker.close()
            raise
        worker.is_guest = True
        self._worker = worker

    def _existing(self) -> Path:
        """Return the path of the existing file."""
        path = (self._directory or Path()) / FILE_NAME
        if self._directory is None or not path.is_file():
            raise StoreUnavailableError(
                f"there is no database in the data directory {self._directory}"
            )
        check_there(path)
        return path

    async def fetch(self, sql: str, values: Values | None = None) -> Rows:
        """Run one statement and return all rows.

        Raises:
            StoreUnavailableError: The statement cannot run now, or exceeded the timeout.
            RecordRefusedError: A value can never be stored.
        """
        return await self._opened().run(sql, values or {})

    async def fetch_unlimited(self, sql: str) -> Rows:
        """Run one statement without a timeout, for commands that run while the bot is stopped.

        Raises:
            StoreUnavailableError: The statement cannot run now.
        """
        return await self._opened().run(sql, {}, is_limited=False)

    async def read(self, sql: str, values: Mapping[str, object]) -> Rows:
        """Run a query of few rows by an index, in the calling thread if possible.

        The query sees every write that was awaited before. It blocks the event loop, so use `fetch`
        for long queries.

        Raises:
            StoreUnavailableError: The query cannot run now.
        """
        rows = self._reader.run(sql, values) if self._reader is not None else None
        return rows if rows is not None else await self.fetch(sql, values)

    async def fetch_together(self, statements: Sequence[Statement]) -> list[Rows]:
        """Run statements in one transaction: all of them take effect, or none does.

        Raises:
            StoreUnavailableError: The statements cannot run now.
            RecordRefusedError: A value can never be stored.
        """
        worker = self._opened()
        return await worker.run_together(statements) if statements else []

    async def change(self, sql: str, values: Mapping[str, object]) -> bool:
        """Run a statement with RETURNING; return whether it changed a row."""
        return bool(await self.fetch(sql, values))

    async def count(self, sql: str, values: Mapping[str, object]) -> int:
        """Run a statement that returns one row with the column `found`."""
        rows = await self.fetch(sql, values)
        return int(str(rows[0]["found"]))

    async def clear_log(self) -> bool:
        """Return free pages to the file system and empty the write-ahead log.

        Returns:
            Whether the log was emptied. A reader of an older snapshot prevents this.

        Raises:
            StoreUnavailableError: The database cannot be written now.
        """
        while pages := await self._free_pages():
            step: Statement = ("PRAGMA incremental_vacuum(1)", {})  # frees one page
            await self.fetch_together([step] * min(pages, PIECE_PAGES))
            if await self._free_pages() >= pages:
                break  # no page was freed: the file cannot shrink
        for attempt in range(CLEAR_TRIES):
            await asyncio.sleep(attempt and CLEAR_PAUSE_S)
            if await self._opened().clear_log():
                return True
        return False

    async def _free_pages(self) -> int:
        (row,) = await self.fetch("PRAGMA freelist_count")
        return int(str(row["freelist_count"]))

    async def close(self) -> None:
        """Close the file and release the lock of the directory. Idempotent."""
        worker, self._worker = self._worker, None
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()  # first: the last connection to close moves the log into the file
        if worker is not None:
            await worker.close()  # if this fails, the lock of the directory is kept
        self._unlock()

    def _opened(self) -> Worker:
        if self._worker is None:
            raise StoreUnavailableError("it is not open")
        return self._worker

    def _prepare(self) -> str:
        if self._directory is None or self._lock is None:
            return MEMORY
        path = self._directory / FILE_NAME
        try:
            make_private(self._directory)
            self._lock.acquire()
            if self._lock.knows_file:
                check_there(path)
            os.close(open_private(path))  # Create the file before SQLite does, to set mode 0600.
            tighten(path)
        except OSError as error:
            self._unlock()
            raise _unusable(self._directory, error) from error
        except BaseException:
            self._unlock()
            raise
        return str(path)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()


async def _connect(target: str, prepare: Prepare | None, script: str) -> Worker:
    worker = await connect(target, prepare=prepare)
    try:
        if target == MEMORY:
            await worker.copy(_empty(threading.get_ident(), script))
        await _set_up(worker, script)
    except BaseException:
        await worker.close()
        raise
    return worker


@functools.cache
def _empty(_: int, script: str) -> sqlite3.Connection:
    """Return a database in memory with empty tables. Copying it is faster than the script."""
    connection = sqlite3.connect(MEMORY)
    connection.executescript(script)
    return connection


async def _connect_to_read(address: str, mode: str) -> Worker:
    worker = await connect(f"{address}?{mode}", uri=True)
    try:
        await worker.run(f"PRAGMA busy_timeout = {BUSY_MS}", {})
        await worker.run("PRAGMA query_only = ON", {})
        await _check_version(worker, DATABASE_VERSION)
        await worker.run("SELECT count(*) FROM health", {})
    except BaseException:
        await worker.close()
        raise
    return worker


def _read_only_mode(path: Path) -> str:
    """Return the mode to open a file that cannot be written, such as a copy on a read-only disk."""
    log = path.with_name(path.name + SIDES[0])
    has_log = log.exists() and log.stat().st_size > 0
    # Without a log, no process writes to the file, so its pages cannot change. With a log, the
    # newest pages are in the log and both files must be read.
    return "mode=ro" if has_log else "mode=ro&immutable=1"


def _unusable(directory: Path, error: OSError) -> StoreBrokenError:
    fault = Fault.FULL if error.errno in {errno.ENOSPC, errno.EDQUOT} else Fault.READ_ONLY
    reason = error.strerror or type(error).__name__
    return StoreBrokenError(f"the data directory {directory} cannot be written ({reason})", fault)


_SETTINGS = (
    f"PRAGMA busy_timeout = {BUSY_MS}",
    "PRAGMA synchronous = FULL",
    f"PRAGMA journal_size_limit = {LOG_BYTES}",
    "PRAGMA secure_delete = ON",  # deleted content is overwritten
)
"""The settings of each writing connection."""


async def _set_up(worker: Worker, script: str) -> None:
    for setting in _SETTINGS:
        await worker.run(setting, {})
    version = await _check_version(worker, 0, *MIGRATIONS, DATABASE_VERSION)
    if version == 0:
        await worker.run(
            "PRAGMA auto_vacuum = INCREMENTAL", {}
        )  # only before the first table; lets the file shrink
    await worker.run("PRAGMA journal_mode = WAL", {})
    if version == 0:
        await worker.run_script(script)
    while version in MIGRATIONS:
        await worker.run_script(MIGRATIONS[version])
        version += 1


async def _check_version(worker: Worker, *known: int) -> int:
    """Return the version of the file; 0 if the file is empty.

    Raises:
        RecordFormatError: The version is unknown.
        StoreBrokenError: The file is the database of another program.
    """
    version = int((await worker.run("PRAGMA user_version", {}))[0]["user_version"])
    if version in {0, *known}:
        tables = [str(row["name"]) for row in await worker.run(FIND_TABLES, {})]
        if tables if version == 0 else not has_our_tables(tables):
            raise StoreBrokenError(NOT_OURS, Fault.FOREIGN)
    if version not in known:
        raise RecordFormatError("database file", version)
    return version
