"""Files that only their owner may read: open them, and check that they still exist."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from storage.errors import Fault, StoreBrokenError

SIDES = ("-wal", "-shm")
"""Suffixes of the files that SQLite keeps next to an open database."""

_OTHERS = 0o077
_OTHERS_WRITE = 0o022


def open_private(path: Path) -> int:
    """Open a file for reading and writing, create it if missing, and set mode 0600.

    Returns:
        The file descriptor.

    Raises:
        StoreBrokenError: The path is a link or no regular file, or another user owns the file.
        OSError: The file cannot be opened.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    if path.is_symlink():
        raise _unsafe(path, "is a symbolic link")
    descriptor = os.open(path, flags, 0o600)
    try:
        _make_private(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_private(directory: Path) -> None:
    """Create a directory with mode 0700. Remove other users' write permission from our own.

    The mode of another user's directory, such as a mounted volume, is not changed: the files in it
    are private.

    Raises:
        OSError: The directory cannot be created.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == os.geteuid() and mode & _OTHERS_WRITE:
        directory.chmod(mode & ~_OTHERS_WRITE)


def tighten(path: Path) -> None:
    """Set mode 0600 on existing files next to the database, such as its log.

    Raises:
        StoreBrokenError: A path is a link or no regular file, or another user owns a file.
        OSError: A file cannot be opened.
    """
    for side in SIDES:
        beside = path.with_name(path.name + side)
        if beside.is_symlink() or beside.exists():
            os.close(open_private(beside))


def check_there(path: Path) -> None:
    """Refuse a missing or empty database file, because SQLite would create a new one.

    Raises:
        StoreBrokenError: The file is missing or empty.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        size = -1
    if size <= 0:
        how = "empty" if size == 0 else "missing"
        fault = f"{path} is {how}, though there was a database in this directory"
        raise StoreBrokenError(fault, Fault.MISSING)


class FileWatch:
    """Detects that an open database file was deleted or replaced, so writes would be lost.

    Args:
        path: The open file.
    """

    def __init__(self, path: Path) -> None:
        self._paths = [path, path.with_name(path.name + SIDES[0])]
        self._known = {each: identity for each in self._paths if (identity := _identity(each))}

    def __call__(self) -> StoreBrokenError | None:
        """Return the fault, or None."""
        for path in self._paths:
            identity = _identity(path)
            if identity is not None and path not in self._known:
                self._known[path] = identity
            elif identity != self._known.get(path):
                how = "replaced" if identity else "deleted"
                return StoreBrokenError(f"{path} was {how} while it was open", Fault.REPLACED)
        return None


def identity(path: Path) -> str:
    """Return the device and inode of a file as text; empty if the file does not exist."""
    identity = _identity(path)
    return f"{identity[0]}:{identity[1]}" if identity else ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _make_private(descriptor: int, path: Path) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise _unsafe(path, "is no file")
    if status.st_uid != os.geteuid():
        raise _unsafe(path, f"belongs to the user {status.st_uid}")
    if stat.S_IMODE(status.st_mode) & _OTHERS:
        os.fchmod(descriptor, 0o600)


def _unsafe(path: Path, why: str) -> StoreBrokenError:
    return StoreBrokenError(f"{path} {why}, and is not used for that", Fault.FOREIGN)
