"""Logs: append-only rows, each under its own key, read in order.

A row maps names to strings, integers, booleans and None. A log returns rows as they are stored,
damaged ones included. The reader must validate them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.documents import Row, Where
from storage.errors import RecordFormatError

SCHEMA_VERSION = 1
"""Version of all rows, in `v`. A row of another version is an error."""

_DIGITS = 16


class RowLog(Protocol):
    """The rows of one kind. Every method may raise `StoreUnavailableError`.

    Attributes:
        key: Name of the field that identifies a row. No two rows share it.
    """

    key: str

    async def append(self, rows: Sequence[Row]) -> bool:
        """Append rows in one command. Rows whose keys exist are ignored.

        Returns:
            Whether at least one row was appended.

        Raises:
            RecordRefusedError: A row cannot be stored.
        """
        ...

    async def read(
        self,
        where: Where,
        sort: Sequence[str],
        *,
        limit: int | None = None,
        names: Sequence[str] | None = None,
    ) -> Sequence[Row]:
        """Read rows, sorted by some fields.

        Args:
            where: Conditions that the rows must meet.
            sort: Sort fields. `-` before a field makes the order descending.
            limit: Maximum number of rows; None for all.
            names: Fields to read; None for all.
        """
        ...

    async def count(self, where: Where) -> int:
        """Count rows."""
        ...

    async def change(
        self, where: Where, changes: Row, *, push: tuple[str, str] | None = None
    ) -> bool:
        """Change fields of one row; return False if no row meets `where`.

        Args:
            where: Selects the row, and is the condition of the change.
            changes: New values of fields.
            push: A field with a list of texts, and the text to append.
        """
        ...

    async def delete(self, where: Where, *, sort: Sequence[str] = (), limit: int) -> int:
        """Delete up to `limit` rows, sorted by some fields; return the number deleted."""
        ...


class MessageHistory:
    """The agents' message histories; see `agents.core.checkpoint.MessageLog`."""

    def __init__(self, log: RowLog) -> None:
        self._log = log

    async def append(self, log_id: str, turn: int, data: str) -> None:
        """Store the messages that a turn added."""
        row = {self._log.key: _place(log_id, turn), "v": SCHEMA_VERSION, "data": data}
        await self._log.append([row])

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        """Read the messages that earlier turns added, in order."""
        key = self._log.key
        where = {key: {"$gte": f"{log_id}/", "$lt": _place(log_id, before_turn)}}
        rows = await self._log.read(where, [key])
        # An id that begins with this one has longer keys in the same range
        here = len(_place(log_id, 0))
        return [_stored_text(log_id, row) for row in rows if len(row[key]) == here]


def _place(log_id: str, number: int) -> str:
    return f"{log_id}/{number:0{_DIGITS}d}"


def _stored_text(log_id: str, row: Row) -> str:
    check_version("log entry", row.get("v"), log_id)
    try:
        return checked_text(row.get("data"))
    except (TypeError, ValueError) as error:
        fault = "field 'data' is damaged"
        raise RecordFormatError("log entry", SCHEMA_VERSION, fault, record_id=log_id) from error


def check_version(kind: str, version: object, record_id: str = "") -> None:
    """Refuse a record that another release wrote.

    Args:
        kind: Word for the record, for the error.
        version: Stored version.
        record_id: Id of the record.

    Raises:
        RecordFormatError: The version is not the one that this program writes.
    """
    if version != SCHEMA_VERSION:
        raise RecordFormatError(kind, version, record_id=record_id)


def checked_text(value: object) -> str:
    """Return the value if it is valid text.

    Raises:
        TypeError: The value is not a string.
        ValueError: The text contains surrogates, which replace invalid bytes.
    """
    if not isinstance(value, str):
        raise TypeError
    if not value.isascii():
        value.encode()
    return value
