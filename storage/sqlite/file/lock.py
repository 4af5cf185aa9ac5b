"""The lock on a data directory: one process at a time.

How a system locks a file is filelock's business; which file that may be, whose it is, and what
stands in it is ours.
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
"""Stands in place of the mark of a database file that is not open yet."""


class DirectoryLock:
    """Holds a data directory for this process.

    The system drops the lock when the process ends, however it ends. The file stays: removing it
    would let two processes lock two files of one name.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor: int | None = None
        self._before = ""

    @property
    def knows_file(self) -> bool:
        """Whether a database was opened in this directory before; known once it is locked."""
        return bool(self._before)

    def acquire(self) -> None:
        """Take the lock, and leave the process id in its file.

        Raises:
            StoreBusyError: Another process, or another storage of this one, has it.
            StoreBrokenError: The file is a link, or somebody else's.
            OSError: The file cannot be written.
        """
        descriptor = open_private(self._directory / LOCK_NAME)
        try:
            self._take(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def name_file(self) -> None:
        """Leave a mark of the open database file: others see whether it was replaced or lost."""
        if self._descriptor is not None:
            mark = identity(self._directory / FILE_NAME)
            _write(self._descriptor, f"{os.getpid()}\n{mark}\n")

    def release(self) -> None:
        """Give the lock back; may be repeated."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _take(self, descriptor: int) -> None:
        if lock_descriptor(descriptor, blocking=False):
            _, *marks = _read(descriptor).split("\n")
            self._before = next((mark for mark in marks if mark != _NONE), "")
            # Until a file is open, the mark of the one before stays, wherever this ends.
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


def _write(descriptor: int, text: str) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, text.encode())
    os.ftruncate(descriptor, len(text))  # after it: whoever reads meanwhile finds the holder


def _read(descriptor: int) -> str:
    with suppress(PermissionError):  # on Windows, what is locked cannot be read
        os.lseek(descriptor, 0, os.SEEK_SET)
        return os.read(descriptor, 100).decode("ascii", "replace").strip()
    return ""
