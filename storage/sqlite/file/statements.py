"""Run statements on a connection; each transaction ends with the call that began it.

Whatever goes wrong, an exception that nobody expected included, a transaction is committed or
rolled back, and every caller gets a result or an error.
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
from storage.sqlite.file.faults import store_error

logger = logging.getLogger(__name__)

Rows: TypeAlias = list[dict[str, Any]]

Values: TypeAlias = Mapping[str, object] | Sequence[object]

Statement: TypeAlias = tuple[str, Values]

Unit: TypeAlias = Sequence[Statement]
"""Statements that have their effect together or not at all; mostly one."""

Result: TypeAlias = list[Rows] | StorageError


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Begin a transaction; commit it when the block ends, roll it back on any exception.

    Args:
        connection: In autocommit mode.
        begin: The statement that begins it.

    Raises:
        sqlite3.Error: It cannot begin, or cannot be committed.
    """
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def run_units(connection: sqlite3.Connection, units: Sequence[Unit]) -> list[Result]:
    """Run units in one transaction, each with its own result; never raises.

    When the transaction fails as a whole, each unit has the error as its result.
    """
    try:
        _end_left_over(connection)
        return _run(connection, units)
    except BaseException as error:  # noqa: BLE001 - each caller waits for a result
        return [unexpected(error)] * len(units)


def run_alone(connection: sqlite3.Connection, work: Callable[[], object]) -> StorageError | None:
    """Do something that begins and ends its transactions itself; never raises.

    Returns:
        The error, if there was one; then its last transaction is rolled back.
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
    """Run a statement; return its rows, or an error of the database as ours.

    The statement is over when this returns or raises: SQLite keeps no lock for it.
    """
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute(sql, values)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    except UnicodeDecodeError as error:  # not even SQLite's own words can be read any more
        fault = StoreBrokenError("the database file is damaged", Fault.DAMAGED)
        return _with_cause(fault, error)
    except (UnicodeError, OverflowError, sqlite3.DataError) as error:
        return _with_cause(RecordRefusedError(str(error)), error)
    except sqlite3.Error as error:
        return store_error(error)


def _run(connection: sqlite3.Connection, units: Sequence[Unit]) -> list[Result]:
    if len(units) == 1 and len(units[0]) == 1:
        return [_run_unit(connection, units[0])]
    # Whoever reads first and writes then would be refused when another process, such as
    # `countersign prune`, writes in between: so a group that writes has its right from the start.
    is_reading = all(sql.lstrip().startswith("SELECT") for unit in units for sql, _ in unit)
    results: list[Result] = []
    with transaction(connection, "BEGIN" if is_reading else "BEGIN IMMEDIATE"):
        for unit in units:
            result = _run_unit(connection, unit)
            if not connection.in_transaction:
                # A full disk or a fault of the file undoes the whole group, not one statement.
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
            if connection.in_transaction:  # else the fault has undone all of it
                connection.execute("ROLLBACK TO unit")
                connection.execute("RELEASE unit")
            return result
        results.append(result)
    connection.execute("RELEASE unit")
    return results


def _end_left_over(connection: sqlite3.Connection) -> None:
    """See to it that no transaction is open: what runs in it would be lost.

    Raises:
        StoreUnavailableError: One stays open.
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
    """Say as an error of ours what ended a group of statements."""
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
