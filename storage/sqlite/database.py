"""The connection: opens the file, runs single statements, and names what went wrong.

Every statement is its own transaction: when a call returns, its effect is on the disk.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiosqlite

from storage.codec import Codec, Row
from storage.errors import RecordFormatError, RecordRefusedError, StoreUnavailableError
from storage.sqlite.lock import DirectoryLock
from storage.sqlite.schema import DATABASE_VERSION, DDL

FILE_NAME = "countersign.db"
MIN_SQLITE = (3, 35, 0)
"""The first release with RETURNING."""

BUSY_MS = 5000
"""How long a statement waits for a reader from outside, such as a backup."""


def insert_sql(table: str, codec: Codec[Any]) -> str:
    """Make the statement that inserts a row unless its key exists; it returns a row if it did."""
    columns = ", ".join(codec.names)
    values = ", ".join(f":{name}" for name in codec.names)
    return (
        f"INSERT INTO {table} ({columns}) VALUES ({values}) "  # noqa: S608 - names are our own
        "ON CONFLICT DO NOTHING RETURNING 1"
    )


class Database:
    """One SQLite connection, in a thread of its own.

    Args:
        directory: Where the file lives, made when missing; None for a database in memory.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._lock = DirectoryLock(directory) if directory is not None else None
        self._connection: aiosqlite.Connection | None = None

    async def open(self) -> bool:
        """Lock the directory, open the file, make the tables; may be repeated.

        Returns:
            Whether it was closed before.

        Raises:
            StoreBusyError: The directory belongs to another process.
            StoreUnavailableError: The directory or the file cannot be used.
            RecordFormatError: The file was written by another release.
        """
        if self._connection is not None:
            return False
        if sqlite3.sqlite_version_info < MIN_SQLITE:
            found = sqlite3.sqlite_version
            raise StoreUnavailableError(f"SQLite 3.35 or newer is needed, this is {found}")
        target = self._prepare()
        try:
            self._connection = await _connect(target)
        except BaseException:
            self._unlock()
            raise
        return True

    async def fetch(self, sql: str, values: Mapping[str, object] | None = None) -> list[Row]:
        """Run one statement and return all of its rows.

        Raises:
            StoreUnavailableError: It cannot be run now.
            RecordRefusedError: A value can never be stored.
        """
        if self._connection is None:
            raise StoreUnavailableError("it is not open")
        try:
            rows = await self._connection.execute_fetchall(sql, values or {})
        except (UnicodeError, OverflowError, sqlite3.DataError) as error:
            raise RecordRefusedError(str(error)) from error
        except sqlite3.Error as error:
            raise StoreUnavailableError(str(error)) from error
        return [dict(row) for row in rows]

    async def change(self, sql: str, values: Mapping[str, object]) -> bool:
        """Run a statement that returns a row if, and only if, it changed something."""
        return bool(await self.fetch(sql, values))

    async def count(self, sql: str, values: Mapping[str, object]) -> int:
        """Run a statement that returns one row with the column `found`."""
        rows = await self.fetch(sql, values)
        return int(str(rows[0]["found"]))

    async def close(self) -> None:
        """Close the file and give the directory back; may be repeated."""
        connection, self._connection = self._connection, None
        try:
            if connection is not None:
                await connection.close()
        finally:
            self._unlock()

    def _prepare(self) -> str:
        if self._directory is None or self._lock is None:
            return ":memory:"
        path = self._directory / FILE_NAME
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.acquire()
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # nobody else may read it
        except OSError as error:
            self._unlock()
            fault = error.strerror or type(error).__name__
            raise StoreUnavailableError(
                f"the data directory {self._directory} cannot be written ({fault})"
            ) from error
        return str(path)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()


async def _connect(target: str) -> aiosqlite.Connection:
    try:
        connection = await aiosqlite.connect(target, isolation_level=None)
    except sqlite3.Error as error:
        raise StoreUnavailableError(str(error)) from error
    try:
        connection.row_factory = sqlite3.Row
        await _set_up(connection)
    except sqlite3.Error as error:
        await connection.close()
        raise StoreUnavailableError(str(error)) from error
    except BaseException:
        await connection.close()
        raise
    return connection


async def _set_up(connection: aiosqlite.Connection) -> None:
    await connection.execute_fetchall(f"PRAGMA busy_timeout = {BUSY_MS}")
    await connection.execute_fetchall("PRAGMA journal_mode = WAL")
    await connection.execute_fetchall("PRAGMA synchronous = FULL")
    rows = await connection.execute_fetchall("PRAGMA user_version")
    version = next(iter(rows))[0]
    if version not in {0, DATABASE_VERSION}:
        raise RecordFormatError("database file", version)
    if version == 0:
        await connection.executescript(DDL)
