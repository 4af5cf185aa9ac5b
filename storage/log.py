"""Logs: rows that are appended, each in a place of its own, and read in order.

A row maps names to texts, integers, booleans and None. What holds of a row for ever is checked by
whoever reads it: a log gives rows as they are stored, damaged ones, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from storage.documents import Where
from storage.errors import RecordFormatError

SCHEMA_VERSION = 1
"""The version of all rows, in `v`. A row of another version is an error, never a guess."""

Row: TypeAlias = Mapping[str, Any]

_DIGITS = 16


class RowLog(Protocol):
    """The rows of one kind. Every method may raise `StoreUnavailableError`.

    Attributes:
        key: Name of the field that identifies a row. No two rows share it.
    """

    key: str

    async def append(self, rows: Sequence[Row]) -> bool:
        """Append those rows whose keys are free, in one command; what is there stays.

        Returns:
            Whether there was one.

        Raises:
            RecordRefusedError: No database can hold one of them.
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
        """Read rows in the order of some fields; with `-` before one, the last one first.

        Args:
            where: What they have to be like.
            sort: The fields.
            limit: At most so many; None for all.
            names: What is read of them; all when None.
        """
        ...

    async def count(self, where: Where) -> int:
        """Count rows."""
        ...

    async def change(
        self, where: Where, changes: Row, *, push: tuple[str, str] | None = None
    ) -> bool:
        """Change fields of one row; False when none is as `where` says.

        Args:
            where: Names the row, and what it has to be like.
            changes: The new values; None for none.
            push: A field that holds several texts, and one more of them.
        """
        ...

    async def delete(self, where: Where, *, sort: Sequence[str] = (), limit: int) -> int:
        """Delete up to `limit` rows, in the order of some fields; return how many there were."""
        ...


class MessageHistory:
    """The agents' message histories; see `agents.core.checkpoint.MessageLog`."""

    def __init__(self, log: RowLog) -> None:
        self._log = log

    async def append(self, log_id: str, turn: int, data: str) -> None:
        """Keep what a turn has added."""
        row = {self._log.key: _place(log_id, turn), "v": SCHEMA_VERSION, "data": data}
        await self._log.append([row])

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        """Read what earlier turns have added, in order."""
        key = self._log.key
        where = {key: {"$gte": f"{log_id}/", "$lt": _place(log_id, before_turn)}}
        rows = await self._log.read(where, [key])
        here = len(_place(log_id, 0))  # the ids of other logs may begin with this one
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
    """Refuse what another release wrote.

    Args:
        kind: What is read, in words.
        version: The version found.
        record_id: Id of the record.

    Raises:
        RecordFormatError: The version is not the one that this program writes.
    """
    if version != SCHEMA_VERSION:
        raise RecordFormatError(kind, version, record_id=record_id)


def checked_text(value: object) -> str:
    """Return a text.

    Raises:
        TypeError: It is none.
        ValueError: It has what stands for bytes that were no text.
    """
    if not isinstance(value, str):
        raise TypeError
    if not value.isascii():
        value.encode()
    return value
