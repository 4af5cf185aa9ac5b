"""Run statements on a connection; each transaction ends with the call that began it.

On every outcome, including an unexpected exception, the transaction is committed or rolled back,
and every caller gets a result or an error.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, TypeAlias

from storage.errors import (
    Fault,
    RecordRefusedError,
    StorageError,
    StoreBrokenError,
    StoreUnavailableError,
)

logger = logging.getLogger(__name__)

Rows: TypeAlias = list[dict[str, Any]]

Values: TypeAlias = Mapping[str, object] | Sequence[object]

Statement: TypeAlias = tuple[str, Values]

Unit: TypeAlias = Sequence[Statement]
"""Statements that take effect together or not at all; mostly one statement."""

Result: TypeAlias = list[Rows] | StorageError

Watch: TypeAlias = Callable[[], StoreUnavailableError | None]
"""Returns why the file cannot be used now, or None."""


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Begin a transaction; commit it when the block ends, roll it back on any exception.

    Args:
        connection: A connection in autocommit mode.
        begin: The statement that begins the transaction.

    Raises:
        sqlite3.Error: The transaction cannot begin, or its commit failed.
    """
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def run_units(connection: sqlite3.Connection, watch: Watch, units: Sequence[Unit]) -> list[Result]:
    """Run units in one transaction, each with its own result; never raises.

    If the file cannot be used, or the transaction fails as a whole, the error is the result of
    each unit.
    """
    try:
        if (fault := watch()) is not None:
            return [fault] * len(units)
        _end_left_over(connection)
        return _run(connection, units)
    except BaseException as error:  # noqa: BLE001 - each caller waits for a result
        return [unexpected(error)] * len(units)


def run_alone(connection: sqlite3.Connection, work: Callable[[], object]) -> StorageError | None:
    """Run work that manages its own transactions; never raises.

    Returns:
        The error, or None. After an error, the last transaction is rolled back.
    """
    try:
        _end_left_over(connection)
        try:
            work()
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    except BaseException as error:  # noqa: BLE001 - the caller waits for a result
        return unexpected(error)
    return None


def run_one(connection: sqlite3.Connection, sql: str, values: Values) -> Rows | StorageError:
    """Run a statement; return its rows, or the database's error as a storage error.

    The cursor is closed before this returns or raises, so SQLite keeps no lock for the statement.
    """
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute(sql, values)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    except UnicodeDecodeError as error:  # SQLite's error message itself is damaged
        fault = StoreBrokenError("the database file is damaged", Fault.DAMAGED)
        return _with_cause(fault, error)
    except (UnicodeError, OverflowError, sqlite3.DataError) as error:
        return _with_cause(RecordRefusedError(str(error)), error)
    except sqlite3.Error as error:
        return store_error(error)


def _run(connection: sqlite3.Connection, units: Sequence[Unit]) -> list[Result]:
    if len(units) == 1 and len(units[0]) == 1:
        return [_run_unit(connection, units[0])]
    # A transaction that reads first and then writes fails with SQLITE_BUSY if another process, such
    # as `countersign prune`, has written since the read. A group with a write therefore begins with
    # the write lock.
    is_reading = all(sql.lstrip().startswith("SELECT") for unit in units for sql, _ in unit)
    results: list[Result] = []
    with transaction(connection, "BEGIN" if is_reading else "BEGIN IMMEDIATE"):
        for unit in units:
            result = _run_unit(connection, unit)
            if not connection.in_transaction:
                # After a full disk or a file error, SQLite rolls back the whole transaction, not
                # only one statement.
                raise _as_undone(result)
            results.append(result)
    return results


def _run_unit(connection: sqlite3.Connection, unit: Unit) -> Result:
    if len(unit) == 1:
        result = run_one(connection, *unit[0])
        return result if isinstance(result, StorageError) else [result]
    connection.execute("SAVEPOINT unit")
    results: list[Rows] = []
    for sql, values in unit:
        result = run_one(connection, sql, values)
        if isinstance(result, StorageError):
            if connection.in_transaction:  # otherwise SQLite has rolled back the transaction
                connection.execute("ROLLBACK TO unit")
                connection.execute("RELEASE unit")
            return result
        results.append(result)
    connection.execute("RELEASE unit")
    return results


def _end_left_over(connection: sqlite3.Connection) -> None:
    """Roll back a transaction that was left open: statements in it would be lost.

    Raises:
        StoreUnavailableError: The rollback failed.
    """
    if connection.in_transaction:
        logger.error(
            "a transaction of the database was left open; it is rolled back",
            extra={"action": "transaction_left_open"},
        )
        connection.execute("ROLLBACK")
    if connection.in_transaction:
        raise StoreUnavailableError("its last transaction does not end")


def _as_undone(result: Result) -> StoreUnavailableError:
    if isinstance(result, StoreUnavailableError):
        return result
    return StoreUnavailableError(getattr(result, "detail", "a group of statements was undone"))


def unexpected(error: BaseException) -> StorageError:
    """Convert an exception that ended a group of statements to a storage error."""
    if isinstance(error, StorageError):
        return error
    if isinstance(error, sqlite3.Error):
        return store_error(error)
    name = type(error).__name__
    logger.error(
        "statements of the database failed with %s", name, extra={"action": "statements_failed"}
    )
    return _with_cause(StoreUnavailableError(f"{name} while its statements ran"), error)


def _with_cause(fault: StorageError, cause: BaseException) -> StorageError:
    fault.__cause__ = cause
    return fault


_FAULTS: Mapping[int, Fault] = {
    sqlite3.SQLITE_CORRUPT: Fault.DAMAGED,  # "database disk image is malformed"
    sqlite3.SQLITE_NOTADB: Fault.FOREIGN,  # "file is not a database"
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
    converted = (
        StoreUnavailableError(str(error)) if fault is None else StoreBrokenError(str(error), fault)
    )
    converted.__cause__ = error
    return converted
