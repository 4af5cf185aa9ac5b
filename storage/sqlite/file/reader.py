"""Short reads in the calling thread, by a second connection to the file.

A round trip to the worker's thread takes ten times as long as reading one record. In WAL mode, a
reader and a writer do not block each other. A query sees all commits before its start, and so every
write that its own thread has awaited. The reader never writes and never waits. If it cannot read,
the worker runs the query instead: the worker can wait, and it reports the fault.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from storage.errors import StorageError
from storage.sqlite.file.statements import Rows, run_one
from storage.sqlite.file.worker import Watch, open_file


class Reader:
    """A read-only connection.

    Args:
        connection: Opened by `open_reader`.
        watch: Returns why reads are not permitted now, or None.
    """

    def __init__(self, connection: sqlite3.Connection, watch: Watch) -> None:
        self._connection = connection
        self._watch = watch

    def run(self, sql: str, values: Mapping[str, object]) -> Rows | None:
        """Run a query of few rows by an index; return None if the worker must run it."""
        if self._watch() is not None:
            return None
        try:
            rows = run_one(self._connection, sql, values)
        except Exception:  # noqa: BLE001 - the worker is asked, and says what is wrong
            return None
        return None if isinstance(rows, StorageError) else rows

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def open_reader(target: str, watch: Watch) -> Reader | None:
    """Open a second connection to a worker's file; return None on failure.

    Args:
        target: Path of the file.
        watch: Returns why reads are not permitted now, or None.
    """
    try:
        connection = open_file(target)
    except Exception:  # noqa: BLE001 - the worker reads all then
        return None
    try:
        for setting in ("PRAGMA busy_timeout = 0", "PRAGMA query_only = ON"):
            connection.execute(setting)
    except Exception:  # noqa: BLE001 - as above
        connection.close()
        return None
    return Reader(connection, watch)
