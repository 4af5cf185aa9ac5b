"""The file: locks its directory, opens it, and runs single statements.

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
from storage.sqlite.file.reader import Reader, open_reader
from storage.sqlite.file.statements import Rows, Statement, Values
from storage.sqlite.file.worker import MEMORY, Prepare, Worker, connect
from storage.sqlite.schema.migrations import MIGRATIONS
from storage.sqlite.schema.tables import DATABASE_VERSION, ddl

MIN_SQLITE = (3, 35, 0)
"""The first release with RETURNING."""

TIMEOUT = timedelta(seconds=10)
"""Longest time that a caller waits for its database statements."""

LOG_BYTES = 16 << 20
"""The size to which the write-ahead log is cut when it begins anew."""

PIECE_PAGES = 1_000
"""Pages of the file that are given back to the disk in one statement."""

CLEAR_TRIES = 25
CLEAR_PAUSE_S = 0.2
"""How often, and after what pause, the log is to be cleared while others read."""

BUSY_MS = 5000
"""Longest time that a statement waits for another reader, such as a backup, in milliseconds."""


class Database:
    """One SQLite connection that writes, and for a file one for short reads in the caller's thread.

    Args:
        directory: Where the file lives, made when missing; None for a database in memory.
        prepare: Makes each connection that writes ready.
        timeout: How long a statement may take once the file is open.
        tables: The statements that make the tables of the documents.
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
        """Lock the directory, open the file, make the tables; may be repeated.

        Returns:
            Whether it was closed before.

        Raises:
            StoreBusyError: The directory belongs to another process.
            StoreUnavailableError: The directory or the file cannot be used.
            RecordFormatError: The file was written by another release.
        """
        if self._worker is not None:
            return False
        if sqlite3.sqlite_version_info < MIN_SQLITE:
            found = sqlite3.sqlite_version
            raise StoreUnavailableError(f"SQLite 3.35 or newer is needed, this is {found}")
        target = self._prepare()
        try:
            self._worker = await _connect(target, self._prepare_connection, self._ddl)
            self._worker.limit_s = self._timeout_s
            if self._directory is not None and self._lock is not None:
                self._lock.name_file()  # only now: an empty file is one that was lost
                self._worker.watch(FileWatch(self._directory / FILE_NAME))
                self._reader = open_reader(target, FileWatch(self._directory / FILE_NAME))
        except BaseException:
            await self.close()
            raise
        return True

    async def open_to_read(self) -> None:
        """Open a file that another process may have open; nothing in it can be changed.

        Raises:
            StoreUnavailableError: There is no file, or it cannot be read.
            RecordFormatError: The file was written by another release.
        """
        path = self._existing()
        address = path.absolute().as_uri()
        # The log beside the file is shared with its writer, so that “ro” is not enough to open it.
        try:
            self._worker = await _connect_to_read(address, "mode=rw")
        except StoreBrokenError as error:
            if error.fault is not Fault.READ_ONLY:
                raise
            self._worker = await _connect_to_read(address, _read_only_mode(path))

    async def open_beside(self) -> None:
        """Open a file that the bot may have open, to change it: short statements, no lock.

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
            _check_version(await worker.run("PRAGMA user_version", {}), DATABASE_VERSION)
        except BaseException:
            await worker.close()
            raise
        worker.is_guest = True
        self._worker = worker

    def _existing(self) -> Path:
        """The path of a file that is there already."""
        path = (self._directory or Path()) / FILE_NAME
        if self._directory is None or not path.is_file():
            raise StoreUnavailableError(
                f"there is no database in the data directory {self._directory}"
            )
        check_there(path)
        return path

    async def fetch(self, sql: str, values: Values | None = None) -> Rows:
        """Run one statement and return all of its rows.

        Raises:
            StoreUnavailableError: It cannot be run now, or did not end in time.
            RecordRefusedError: A value can never be stored.
        """
        return await self._opened().run(sql, values or {})

    async def fetch_unlimited(self, sql: str) -> Rows:
        """Run one statement that may take minutes; for commands, while no bot waits behind it.

        Raises:
            StoreUnavailableError: It cannot be run now.
        """
        return await self._opened().run(sql, {}, is_limited=False)

    async def read(self, sql: str, values: Mapping[str, object]) -> Rows:
        """Run one statement that reads few rows, by an index: at once, where that can be had.

        It sees every write that was awaited before. What may take long is for `fetch`, as nobody
        else is served meanwhile.

        Raises:
            StoreUnavailableError: It cannot be run now.
        """
        rows = self._reader.run(sql, values) if self._reader is not None else None
        return rows if rows is not None else await self.fetch(sql, values)

    async def fetch_together(self, statements: Sequence[Statement]) -> list[Rows]:
        """Run statements in one transaction: all of them have their effect, or none has.

        Raises:
            StoreUnavailableError: They cannot be run now.
            RecordRefusedError: A value can never be stored.
        """
        worker = self._opened()
        return await worker.run_together(statements) if statements else []

    async def change(self, sql: str, values: Mapping[str, object]) -> bool:
        """Run a statement that returns a row if, and only if, it changed something."""
        return bool(await self.fetch(sql, values))

    async def count(self, sql: str, values: Mapping[str, object]) -> int:
        """Run a statement that returns one row with the column `found`."""
        rows = await self.fetch(sql, values)
        return int(str(rows[0]["found"]))

    async def clear_log(self) -> bool:
        """Give the room of deleted rows back, and move the write-ahead log into the file.

        Returns:
            Whether that was done: not while somebody reads what is older than the log's end.

        Raises:
            StoreUnavailableError: It cannot be done now.
        """
        while pages := await self._free_pages():
            step: Statement = ("PRAGMA incremental_vacuum(1)", {})  # takes one page
            await self.fetch_together([step] * min(pages, PIECE_PAGES))
            if await self._free_pages() >= pages:
                break  # none was given back: the file stays as large
        for attempt in range(CLEAR_TRIES):
            await asyncio.sleep(attempt and CLEAR_PAUSE_S)
            if await self._opened().clear_log():
                return True
        return False

    async def _free_pages(self) -> int:
        (row,) = await self.fetch("PRAGMA freelist_count")
        return int(str(row["freelist_count"]))

    async def close(self) -> None:
        """Close the file and give the directory back; may be repeated."""
        worker, self._worker = self._worker, None
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()  # first, as the last one to close puts the log into the file
        if worker is not None:
            await worker.close()  # while that fails, the directory stays in use
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
            os.close(open_private(path))  # nobody else may read it
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
    """All tables without rows, for one thread: to copy them is quicker than to make them."""
    connection = sqlite3.connect(MEMORY)
    connection.executescript(script)
    return connection


async def _connect_to_read(address: str, mode: str) -> Worker:
    worker = await connect(f"{address}?{mode}", uri=True)
    try:
        await worker.run(f"PRAGMA busy_timeout = {BUSY_MS}", {})
        await worker.run("PRAGMA query_only = ON", {})
        _check_version(await worker.run("PRAGMA user_version", {}), DATABASE_VERSION)
        await worker.run("SELECT count(*) FROM health", {})
    except BaseException:
        await worker.close()
        raise
    return worker


def _read_only_mode(path: Path) -> str:
    """Return the mode to open a file that cannot be written, such as a copy on a read-only disk."""
    log = path.with_name(path.name + SIDES[0])
    has_log = log.exists() and log.stat().st_size > 0
    # Without a log nobody writes it, and it is all there is. With one, its parts belong together.
    return "mode=ro" if has_log else "mode=ro&immutable=1"


def _unusable(directory: Path, error: OSError) -> StoreBrokenError:
    fault = Fault.FULL if error.errno in {errno.ENOSPC, errno.EDQUOT} else Fault.READ_ONLY
    said = error.strerror or type(error).__name__
    return StoreBrokenError(f"the data directory {directory} cannot be written ({said})", fault)


_SETTINGS = (
    f"PRAGMA busy_timeout = {BUSY_MS}",
    "PRAGMA synchronous = FULL",
    f"PRAGMA journal_size_limit = {LOG_BYTES}",
    "PRAGMA secure_delete = ON",  # deleted content is overwritten
)
"""The settings of each connection that writes."""


async def _set_up(worker: Worker, script: str) -> None:
    for setting in _SETTINGS:
        await worker.run(setting, {})
    rows = await worker.run("PRAGMA user_version", {})
    version = _check_version(rows, 0, *MIGRATIONS, DATABASE_VERSION)
    if version == 0:
        await worker.run("PRAGMA auto_vacuum = INCREMENTAL", {})  # so that it can get smaller
    await worker.run("PRAGMA journal_mode = WAL", {})
    if version == 0:
        await worker.run_script(script)
    while version in MIGRATIONS:
        await worker.run_script(MIGRATIONS[version])
        version += 1


def _check_version(rows: Rows, *known: int) -> int:
    version = rows[0]["user_version"]
    if version not in known:
        raise RecordFormatError("database file", version)
    return int(version)
