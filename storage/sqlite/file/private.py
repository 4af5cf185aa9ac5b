"""Files that only their owner may read: open them, and check that they still exist."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from storage.errors import Fault, StoreBrokenError

SIDES = ("-wal", "-shm")
"""The endings of the files that SQLite keeps beside its own while it is open."""

_OTHERS = 0o077
_OTHERS_WRITE = 0o022


def open_private(path: Path) -> int:
    """Open a file for reading and writing, made when missing, and take it from everybody else.

    Returns:
        Its descriptor.

    Raises:
        StoreBrokenError: It is a link, no file, or somebody else's.
        OSError: It cannot be opened.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    if path.is_symlink():
        raise _unsafe(path, "is a symbolic link")
    descriptor = os.open(path, flags, 0o600)
    try:
        _take(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_private(directory: Path) -> None:
    """Make a directory for its owner alone; in one of ours, let nobody else write.

    A directory of somebody else, such as a mounted volume, is left as it is: its files are ours.

    Raises:
        OSError: It cannot be made.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid == os.geteuid() and mode & _OTHERS_WRITE:
        directory.chmod(mode & ~_OTHERS_WRITE)


def tighten(path: Path) -> None:
    """Take files that are there already from everybody else: the database, and those beside it.

    Raises:
        StoreBrokenError: One is a link, no file, or somebody else's.
        OSError: One cannot be opened.
    """
    for side in SIDES:
        beside = path.with_name(path.name + side)
        if beside.is_symlink() or beside.exists():
            os.close(open_private(beside))


def check_there(path: Path) -> None:
    """Refuse a database file that is missing or empty: SQLite would make a new one.

    Raises:
        StoreBrokenError: It is.
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
    """Notices that an open file was deleted or replaced: what is written to it would be lost.

    Args:
        path: The open file.
    """

    def __init__(self, path: Path) -> None:
        self._paths = [path, path.with_name(path.name + SIDES[0])]
        self._known = {each: found for each in self._paths if (found := _identity(each))}

    def __call__(self) -> StoreBrokenError | None:
        """Say what is wrong; None when all is well."""
        for path in self._paths:
            found = _identity(path)
            if found is not None and path not in self._known:
                self._known[path] = found
            elif found != self._known.get(path):
                how = "replaced" if found else "deleted"
                return StoreBrokenError(f"{path} was {how} while it was open", Fault.REPLACED)
        return None


def identity(path: Path) -> str:
    """A text that tells a file from one of the same name; empty when there is none."""
    found = _identity(path)
    return f"{found[0]}:{found[1]}" if found else ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _take(descriptor: int, path: Path) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise _unsafe(path, "is no file")
    if found.st_uid != os.geteuid():
        raise _unsafe(path, f"belongs to the user {found.st_uid}")
    if stat.S_IMODE(found.st_mode) & _OTHERS:
        os.fchmod(descriptor, 0o600)


def _unsafe(path: Path, why: str) -> StoreBrokenError:
    return StoreBrokenError(f"{path} {why}, and is not used for that", Fault.FOREIGN)
