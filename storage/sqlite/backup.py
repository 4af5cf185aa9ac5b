"""Back up the embedded database, also while the bot writes to it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from storage.errors import StoreUnavailableError
from storage.sqlite.database import BUSY_MS
from storage.sqlite.file.lock import FILE_NAME
from storage.sqlite.file.private import check_there
from storage.sqlite.tables import FIND_TABLES, NOT_OURS, has_our_tables

COPY_ID = 0x434F5059
"""The `application_id` of a backup. No bot runs on a backup before `countersign restore`."""


async def back_up(directory: Path, target: Path) -> int:
    """Copy a consistent snapshot of the database to a new file with mode 0600.

    The copy does not block writers. It is checked, and gets its name only after the check.

    Args:
        directory: The data directory.
        target: The new file.

    Returns:
        The size of the copy, in bytes.

    Raises:
        StoreUnavailableError: There is no database, the target exists or cannot be written, or the
            copy is damaged.
    """
    return await asyncio.to_thread(_back_up, directory, target)


def _back_up(directory: Path, target: Path) -> int:
    source = directory / FILE_NAME
    try:
        if not source.is_file():
            raise StoreUnavailableError(f"there is no database in the data directory {directory}")
        check_there(source)
        check_readable(source)
    except OSError as error:
        raise StoreUnavailableError(f"{source} cannot be read: {error.strerror}") from error
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            copy_checked(source, partial, is_marked=True)
            os.link(partial, target)  # fails if the target exists: nothing is overwritten
        finally:
            with suppress(FileNotFoundError):
                partial.unlink()
    except (OSError, sqlite3.Error) as error:
        fault = getattr(error, "strerror", None) or str(error)
        raise StoreUnavailableError(f"the copy {target} cannot be made: {fault}") from error
    return target.stat().st_size


def copy_checked(source: Path, target: Path, *, mode: str = "rw", is_marked: bool = False) -> None:
    """Copy a database and check the integrity of the copy.

    Args:
        source: The database. Another process may write to it during the copy.
        target: An empty file.
        mode: SQLite's mode to open the source: `rw` if the source has a write-ahead log.
        is_marked: Whether to mark the copy with `COPY_ID`.

    Raises:
        sqlite3.Error: The source or the copy is damaged, or cannot be read or written.
        OSError: The copy cannot be flushed to the disk.
    """
    timeout = BUSY_MS / 1000
    check_ours(source, mode=mode)
    with (
        closing(sqlite3.connect(_address(source, mode), uri=True)) as original,
        closing(sqlite3.connect(target, timeout=timeout)) as copy,
        _damage_in_words(),
    ):
        original.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
        if is_marked:
            copy.execute(f"PRAGMA application_id = {COPY_ID}")
        (verdict,) = copy.execute("PRAGMA integrity_check").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(f"the copy is damaged: {verdict}")
    with target.open("rb") as file:
        os.fsync(file.fileno())


def check_readable(source: Path) -> None:
    """Open and close a file: the system says why it cannot be read, SQLite does not.

    Raises:
        OSError: The file cannot be read.
    """
    source.open("rb").close()


def check_ours(source: Path, *, mode: str) -> None:
    """Refuse an empty file and the database of another program.

    Args:
        source: The file.
        mode: SQLite's mode to open it.

    Raises:
        sqlite3.Error: The file is no database of Countersign, or cannot be read.
    """
    with closing(sqlite3.connect(_address(source, mode), uri=True)) as file, _damage_in_words():
        (mark,) = file.execute("PRAGMA application_id").fetchone()
        tables = [name for (name,) in file.execute(FIND_TABLES)]
    # The mark alone is enough: another release may name its tables differently.
    if mark != COPY_ID and not has_our_tables(tables):
        raise sqlite3.DatabaseError(NOT_OURS)


def _address(file: Path, mode: str) -> str:
    return f"{file.absolute().as_uri()}?mode={mode}"


@contextmanager
def _damage_in_words() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite's own message is not valid text
        raise sqlite3.DatabaseError("the database file is damaged") from error
