"""Logs: rows that are appended, each in a place of its own, and read in an order.

A row maps names to texts, integers, booleans and None. What holds of a row for ever is checked by
whoever reads it: a log gives rows as they are stored, damaged ones, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from storage.codec import SCHEMA_VERSION, stored_text
from storage.documents import Where

Row: TypeAlias = Mapping[str, Any]

_DIGITS = 16


class RowLog(Protocol):
    """The rows of one kind. Every method may raise `StoreUnavailableError`.

    Attributes:
        key: Name of the field that identifies a row. No two rows share it.
    """

    key: str

    async def append(self, rows: Sequence[Row]) -> None:
        """Append those rows whose keys are free, in one command; what is there stays.

        Raises:
            RecordRefusedError: No database can hold one of them.
        """
        ...

    async def read(
        self, where: Where, sort: Sequence[str], *, limit: int | None = None
    ) -> Sequence[Row]:
        """Read rows in the order of some fields; with `-` before the first, the last one first."""
        ...

    async def count(self, where: Where) -> int:
        """Count rows."""
        ...

    async def change(self, where: Where, changes: Row) -> None:
        """Change fields of one row."""
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
        return [stored_text("log entry", log_id, row) for row in rows if len(row[key]) == here]


def _place(log_id: str, number: int) -> str:
    return f"{log_id}/{number:0{_DIGITS}d}"
