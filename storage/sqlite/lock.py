"""The lock on a data directory: one process at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from storage.errors import StoreBusyError

LOCK_NAME = "countersign.lock"


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
            OSError: The file cannot be written.
        """
        path = self._directory / LOCK_NAME
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StoreBusyError(
                str(self._directory), holder if holder.isdigit() else ""
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; may be repeated."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
