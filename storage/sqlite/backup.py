"""Back up the embedded database, also while the bot writes to it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from storage.errors import StoreUnavailableError
from storage.sqlite.database import BUSY_MS
from storage.sqlite.file.lock import FILE_NAME
from storage.sqlite.file.private import check_there

COPY_ID = 0x434F5059
"""The `application_id` of a file that is a copy: no bot runs on it before `countersign restore`."""


async def back_up(directory: Path, target: Path) -> int:
    """Copy the database, as it is at one moment, to a new file that only its owner may read.

    Writers are not held up. The copy is checked, and stands under its name only when it is whole.

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
    if not source.is_file():
        raise StoreUnavailableError(f"there is no database in the data directory {directory}")
    check_there(source)
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            copy_checked(source, partial, is_marked=True)
            os.link(partial, target)  # fails when the target exists: nothing is overwritten
        finally:
            with suppress(FileNotFoundError):
                partial.unlink()
    except (OSError, sqlite3.Error) as error:
        fault = getattr(error, "strerror", None) or str(error)
        raise StoreUnavailableError(f"the copy {target} cannot be made: {fault}") from error
    return target.stat().st_size


def copy_checked(source: Path, target: Path, *, mode: str = "rw", is_marked: bool = False) -> None:
    """Copy a database, and look whether the copy is whole.

    Args:
        source: Somebody may write to it.
        target: An empty file.
        mode: How the source is opened; `rw` where there is a log beside it.
        is_marked: Whether the copy says of itself that it is one.

    Raises:
        sqlite3.Error: It is damaged, or cannot be copied.
        OSError: The same.
    """
    timeout = BUSY_MS / 1000
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode={mode}", uri=True)) as found,
        closing(sqlite3.connect(target, timeout=timeout)) as copy,
    ):
        found.backup(copy)
        try:
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            if is_marked:
                copy.execute(f"PRAGMA application_id = {COPY_ID}")
            (verdict,) = copy.execute("PRAGMA integrity_check").fetchone()
        except UnicodeDecodeError as error:  # SQLite's own message is not valid text
            raise sqlite3.DatabaseError("the database file is damaged") from error
    if verdict != "ok":
        raise sqlite3.DatabaseError(f"the copy is damaged: {verdict}")
    with target.open("rb") as file:
        os.fsync(file.fileno())
