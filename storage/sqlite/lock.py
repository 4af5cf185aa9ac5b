"""The lock on a data directory: one process at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from storage.errors import StoreBusyError
from storage.sqlite.private import identity, open_private

LOCK_NAME = "countersign.lock"
FILE_NAME = "countersign.db"


class DirectoryLock:
    """Holds a data directory for this process.

    The system drops the lock when the process ends, however it ends. The file stays: removing it
    would let two processes lock two files of one name.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, and leave the process id in its file.

        Raises:
            StoreBusyError: Another process, or another storage of this one, has it.
            StoreBrokenError: The file is a link, or somebody else's.
            OSError: The file cannot be written.
        """
        descriptor = open_private(self._directory / LOCK_NAME)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder, _, opened = _read(descriptor).partition("\n")
            os.close(descriptor)
            raise StoreBusyError(
                str(self._directory),
                holder if holder.isdigit() else "",
                is_replaced=bool(opened) and opened != identity(self._directory / FILE_NAME),
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def name_file(self) -> None:
        """Leave a mark of the database file, so that others can see whether it was replaced."""
        if self._descriptor is not None:
            mark = identity(self._directory / FILE_NAME)
            os.pwrite(self._descriptor, f"{os.getpid()}\n{mark}\n".encode(), 0)

    def release(self) -> None:
        """Give the lock back; may be repeated."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _read(descriptor: int) -> str:
    return os.pread(descriptor, 100, 0).decode("ascii", "replace").strip()
