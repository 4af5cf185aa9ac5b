"""Translate SQLite's errors: temporary ones, and those that need an operator."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from storage.errors import Fault, StoreBrokenError, StoreUnavailableError

_FAULTS: Mapping[int, Fault] = {
    sqlite3.SQLITE_CORRUPT: Fault.DAMAGED,
    sqlite3.SQLITE_NOTADB: Fault.FOREIGN,
    sqlite3.SQLITE_FULL: Fault.FULL,
    sqlite3.SQLITE_READONLY: Fault.READ_ONLY,
    sqlite3.SQLITE_PERM: Fault.READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: Fault.READ_ONLY,
}

_PRIMARY = 0xFF
"""Mask of SQLite's primary result code within an extended code."""


def store_error(error: sqlite3.Error) -> StoreUnavailableError:
    """Convert an error of the driver to an error of the storage.

    Source:
        https://www.sqlite.org/rescode.html
    """
    code = getattr(error, "sqlite_errorcode", None)
    fault = _FAULTS.get(code & _PRIMARY) if isinstance(code, int) else None
    found = (
        StoreUnavailableError(str(error)) if fault is None else StoreBrokenError(str(error), fault)
    )
    found.__cause__ = error
    return found
