"""Restore a backup of the embedded database: prepare a copy, then link it into place."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from storage.chain import NO_KEY, Seal
from storage.documents import Document
from storage.errors import StoreUnavailableError
from storage.sqlite.backup import check_ours, check_readable, copy_checked
from storage.sqlite.file.lock import FILE_NAME, DirectoryLock
from storage.sqlite.storage import SqliteStorage

_ASIDE = ".restoring"
"""Subdirectory of the data directory for the prepared copy. The next attempt deletes the rest of a
crashed one.
"""


@asynccontextmanager
async def restoring(
    directory: Path, copy: Path, kinds: Sequence[type[Document]], *, seal: Seal = NO_KEY
) -> AsyncIterator[SqliteStorage]:
    """Prepare a copy of a backup for changes; link it into place when the block ends.

    Nothing is overwritten. If the block fails, the directory has no database, and no bot makes a
    new one in it.

    Args:
        directory: The data directory, which no bot may have open.
        copy: A backup made by `back_up`.
        kinds: The document classes of the storage.
        seal: Seals audit entries.

    Raises:
        StoreBusyError: A bot has the directory open.
        StoreUnavailableError: A database exists already, or the copy cannot be used.
        RecordFormatError: The copy was written by another release.
    """
    await asyncio.to_thread(_check_copy, copy, "ro")  # before anything is made
    lock = DirectoryLock(directory)
    await asyncio.to_thread(_lock_directory, lock, directory)
    try:
        aside = await asyncio.to_thread(_put_aside, directory, copy)
        lock.expect_file(aside / FILE_NAME)
        storage = SqliteStorage(aside, kinds, seal=seal)
        try:
            await storage.open()
            yield storage
        finally:
            await storage.close()
        await asyncio.to_thread(_put_in_place, aside, directory)
    finally:
        # After success, this leaves the database: it is a hard link to the same file.
        await asyncio.to_thread(shutil.rmtree, directory / _ASIDE, ignore_errors=True)
        lock.release()


@asynccontextmanager
async def restoring_in_place(
    directory: Path, kinds: Sequence[type[Document]], *, seal: Seal = NO_KEY
) -> AsyncIterator[SqliteStorage]:
    """Open a copy that an operator has put into the data directory.

    Args:
        directory: The data directory, which no bot may have open.
        kinds: The document classes of the storage.
        seal: Seals audit entries.

    Raises:
        StoreBusyError: A bot has the directory open.
        StoreUnavailableError: There is no database, or it cannot be used.
        RecordFormatError: The copy was written by another release.
    """
    if not (directory / FILE_NAME).is_file():
        raise StoreUnavailableError(
            f"there is no database in the data directory {directory}; name the backup: countersign "
            "restore FILE"
        )
    # To open an empty file would make the tables of a new database in it.
    await asyncio.to_thread(_check_copy, directory / FILE_NAME, "rw")
    storage = SqliteStorage(directory, kinds, seal=seal)
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


def _lock_directory(lock: DirectoryLock, directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise _unusable(f"the data directory {directory} cannot be written", error) from error


def _check_copy(copy: Path, mode: str) -> None:
    try:
        check_readable(copy)
        check_ours(copy, mode=mode)
    except FileNotFoundError as error:
        raise StoreUnavailableError(f"there is no copy {copy}") from error
    except (OSError, sqlite3.Error) as error:
        raise _unusable(f"the copy {copy} cannot be used", error) from error


def _put_aside(directory: Path, copy: Path) -> Path:
    for name in (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"):
        if (directory / name).exists():
            raise StoreUnavailableError(
                f"there is {directory / name}, and nothing is overwritten; move the files "
                f"{FILE_NAME}* to another place first"
            )
    aside = directory / _ASIDE
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(mode=0o700)
        os.close(os.open(aside / FILE_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        copy_checked(copy, aside / FILE_NAME, mode="ro")
    except (OSError, sqlite3.Error) as error:
        raise _unusable(f"the copy {copy} cannot be used", error) from error
    return aside


def _put_in_place(aside: Path, directory: Path) -> None:
    try:
        with (aside / FILE_NAME).open("rb") as file:
            os.fsync(file.fileno())
        os.link(aside / FILE_NAME, directory / FILE_NAME)  # fails if a database has appeared since
        # Flush the directory, so that the new name survives a power failure.
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unusable(f"{directory / FILE_NAME} cannot be put in place", error) from error


def _unusable(what: str, error: Exception) -> StoreUnavailableError:
    return StoreUnavailableError(f"{what}: {getattr(error, 'strerror', None) or error}")
