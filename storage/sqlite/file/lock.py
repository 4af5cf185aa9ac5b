"""The lock on a data directory: one process at a time.

The package filelock locks the file. This module decides which file may be used and what it
contains: the process id of the holder, and the identity of the database file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from filelock import lock_descriptor

from storage.errors import StoreBusyError
from storage.sqlite.file.private import identity, open_private

LOCK_NAME = "countersign.lock"
FILE_NAME = "countersign.db"

_NONE = "-"
"""In place of the identity of the database file, while no file is open."""


class DirectoryLock:
    """The lock of this process on a data directory.

    The operating system releases the lock when the process ends, even by a crash. The lock file is
    never deleted: otherwise two processes could lock two different files of the same name.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor: int | None = None
        self._before = ""

    @property
    def knows_file(self) -> bool:
        """Whether a database was ever opened in this directory; valid after `acquire`."""
        return bool(self._before)

    def acquire(self) -> None:
        """Acquire the lock and write the process id to the lock file.

        Raises:
            StoreBusyError: Another process, or another storage of this process, has the lock.
            StoreBrokenError: The lock file is a link, or another user owns it.
            OSError: The lock file cannot be written.
        """
        descriptor = open_private(self._directory / LOCK_NAME)
        try:
            self._take_lock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def name_file(self) -> None:
        """Record the identity of the open database file, so that others notice a replaced file."""
        if self._descriptor is not None:
            mark = identity(self._directory / FILE_NAME)
            _write(self._descriptor, f"{os.getpid()}\n{mark}\n")

    def expect_file(self, file: Path) -> None:
        """Record the identity of a database file that will be here: without it, nothing starts."""
        if self._descriptor is not None:
            _write(self._descriptor, f"{os.getpid()}\n{_NONE}\n{identity(file)}\n")

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _take_lock(self, descriptor: int) -> None:
        if lock_descriptor(descriptor, blocking=False):
            _, *marks = _read(descriptor).split("\n")
            self._before = next((mark for mark in marks if mark != _NONE), "")
            # Keep the identity of the previous file until a file is open, even if this process
            # crashes.
            kept = f"{_NONE}\n{self._before}\n" if self._before else ""
            _write(descriptor, f"{os.getpid()}\n{kept}")
            return
        holder, *marks = _read(descriptor).split("\n")
        opened = marks[0] if marks else _NONE
        raise StoreBusyError(
            str(self._directory),
            holder if holder.isdigit() else "",
            is_replaced=opened not in {_NONE, identity(self._directory / FILE_NAME)},
        )


def has_database(directory: Path) -> bool:
    """Whether a directory has a database, or had one: its lock file names the one it had.

    An empty file is no database yet. A file that cannot be looked at counts as one.
    """
    file = directory / FILE_NAME
    try:
        if file.is_symlink() or (file.exists() and file.stat().st_size > 0):
            return True
        descriptor = os.open(directory / LOCK_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    try:
        _, *marks = _read(descriptor).split("\n")
    finally:
        os.close(descriptor)
    return any(mark != _NONE for mark in marks)


def _write(descriptor: int, text: str) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, text.encode())
    os.ftruncate(
        descriptor, len(text)
    )  # after the write, so that a concurrent reader finds the holder's id


def _read(descriptor: int) -> str:
    with suppress(PermissionError):  # on Windows, a locked file cannot be read
        os.lseek(descriptor, 0, os.SEEK_SET)
        return os.read(descriptor, 100).decode("ascii", "replace").strip()
    return ""
