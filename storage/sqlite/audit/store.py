"""The audit in SQLite: an entry is sealed by the statement that inserts it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial

from storage.chain import GENESIS, Seal
from storage.codec import AUDIT, Row
from storage.errors import RecordRefusedError
from storage.ledger import SEALED, entry_of_row, open_form, row_of
from storage.records import AuditEntry
from storage.sqlite.database import Database
from storage.sqlite.file.statements import Statement

COLUMNS = (*AUDIT.names, "content", "salt", *SEALED)
"""All columns of an entry, but for the date of its deletion."""

_VALUES = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(COLUMNS)))

_APPEND = f"""
INSERT INTO audit ({", ".join(COLUMNS)})
SELECT {_VALUES} FROM json_each(countersign_seal(
    :rows,
    (SELECT json_group_array(entry_id) FROM audit
        WHERE entry_id IN (SELECT value FROM json_each(:ids))),
    (SELECT json_group_object(team_id, json_array(seq, hash)) FROM audit JOIN (
            SELECT value AS team, (SELECT max(seq) FROM audit WHERE team_id = value) AS top
            FROM json_each(:teams))
        ON team_id = team AND seq = top)))
RETURNING 1
"""  # noqa: S608 - names are our own

_OF_THREAD = """
SELECT * FROM audit WHERE thread_id = :thread_id ORDER BY at_ms, entry_id LIMIT :limit
"""


class SqliteAuditStore:
    """See `storage.ports.audit.AuditStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, entry: AuditEntry) -> None:
        await self._database.fetch_together(appends([entry]))

    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        await self._database.fetch_together(appends(entries))

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        values = {"thread_id": thread_id, "limit": max(limit, 0)}
        return [entry_of_row(row) for row in await self._database.fetch(_OF_THREAD, values)]


def appends(entries: Sequence[AuditEntry]) -> list[Statement]:
    """Make the statement that appends entries and seals them; none for none.

    Raises:
        RecordRefusedError: A value can never be stored.
    """
    if not entries:
        return []
    rows = [row_of(entry, Seal()) for entry in entries]
    for row in rows:
        _check_texts(row)
    values = {
        "rows": json.dumps(rows),
        "ids": json.dumps([row["entry_id"] for row in rows]),
        "teams": json.dumps(sorted({str(row["team_id"]) for row in rows})),
    }
    return [(_APPEND, values)]


def add_seal(connection: sqlite3.Connection, seal: Seal) -> None:
    """Teach a connection to seal.

    Args:
        connection: For the statements of `appends`.
        seal: How.
    """
    connection.create_function("countersign_seal", 3, partial(_sealed, seal))


def _sealed(seal: Seal, rows: str, known: str, heads: str) -> str:
    """Seal the rows whose ids are not known, each behind the last of its workspace."""
    ids = set(json.loads(known))
    last: dict[str, tuple[int, str]] = {
        team: (seq, head) for team, (seq, head) in json.loads(heads).items()
    }
    made: list[list[object]] = []
    for row in json.loads(rows):
        if row["entry_id"] in ids:
            continue
        ids.add(row["entry_id"])
        seq, prev = last.get(row["team_id"], (0, GENESIS))
        full = {**row, **sealed_columns(row, seal, seq=seq + 1, prev=prev)}
        last[row["team_id"]] = (seq + 1, str(full["hash"]))
        made.append([full[name] for name in COLUMNS])
    return json.dumps(made)


def sealed_columns(
    row: Mapping[str, object], seal: Seal, *, seq: int, prev: str
) -> dict[str, object]:
    """The columns that an open entry gets when it is sealed."""
    form = seal.sealed(open_form(row), seq=seq, prev=prev)
    return {name: form[name] for name in SEALED}


def _check_texts(row: Row) -> None:
    """Refuse what stands for bytes that were no text."""
    try:
        for value in row.values():
            if isinstance(value, str) and not value.isascii():
                value.encode()
    except UnicodeError as error:
        raise RecordRefusedError(str(error)) from error
