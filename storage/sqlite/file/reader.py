"""Short reads in the calling thread, by a second connection to the file.

To hand a statement to the worker's thread and back takes ten times as long as to read one record.
A reader holds up no writer, and no writer holds up a reader: it sees what was committed when it
begins, and so all that its own thread has awaited. It changes nothing and never waits. Whatever
keeps it from reading, the worker is asked instead: it waits, and says what is wrong.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from storage.errors import StorageError
from storage.sqlite.file.statements import Rows, run_one
from storage.sqlite.file.worker import Watch, open_file


class Reader:
    """A connection that only reads.

    Args:
        connection: Opened by `open_reader`.
        watch: Says why nothing may be read now.
    """

    def __init__(self, connection: sqlite3.Connection, watch: Watch) -> None:
        self._connection = connection
        self._watch = watch

    def run(self, sql: str, values: Mapping[str, object]) -> Rows | None:
        """Run a statement that reads little, by an index; None when the worker has to be asked."""
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
    """Open a file that a worker has open; None when that cannot be done.

    Args:
        target: Its path.
        watch: Says why nothing may be read now.
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
