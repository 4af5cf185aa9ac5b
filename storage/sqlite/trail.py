"""The audit in SQLite: an entry is sealed by the statement that inserts it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from functools import partial

from storage.audit import AuditEntry
from storage.chain import GENESIS, PLAIN, Head, Seal, is_alg, is_hash
from storage.documents import Row
from storage.errors import RecordRefusedError
from storage.ledger import (
    COLUMNS,
    SEALED,
    check_alg,
    open_form,
    row_of,
    seal_for,
    segment_id,
    segment_row,
    tell_key_begins,
)
from storage.sqlite.collection import SqliteLog
from storage.sqlite.database import Database
from storage.sqlite.file.statements import Statement
from storage.trail import BY_TIME, IS_OPEN, PIECE, Trail

_NUMBERLESS = "numberless"
"""Name of the entry that reports entries without a number in a workspace."""

_VALUES = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(COLUMNS)))

_END = """json_array(CAST(seq AS INTEGER), typeof(seq) = 'integer',
    CASE typeof(hash) WHEN 'text' THEN hex(hash) END,
    CASE typeof(alg) WHEN 'text' THEN hex(alg) END) || ''"""

_APPEND = f"""
INSERT INTO audit ({", ".join(COLUMNS)})
SELECT {_VALUES} FROM json_each(countersign_seal(
    :rows,
    (SELECT json_group_array(entry_id) FROM audit
        WHERE entry_id IN (SELECT value FROM json_each(:ids))),
    (SELECT json_group_object(value, json_array(
        (SELECT {_END} FROM audit WHERE team_id = value AND seq < '' ORDER BY seq DESC LIMIT 1),
        EXISTS (SELECT 1 FROM audit WHERE team_id = value AND seq >= '')
    )) FROM json_each(:teams))))
RETURNING 1
"""  # noqa: S608 - names are our own
# SQLite sorts texts and blobs after all numbers. An entry with such a sequence number is damaged.

_HEADS = """
WITH RECURSIVE teams (name) AS (
    SELECT min(team_id) FROM audit WHERE seq IS NOT NULL
    UNION ALL
    SELECT (SELECT min(team_id) FROM audit WHERE team_id > name AND seq IS NOT NULL)
    FROM teams WHERE name IS NOT NULL)
SELECT team_id, alg, seq, hash FROM teams JOIN audit
    ON team_id = name AND seq = (SELECT max(seq) FROM audit WHERE team_id = name AND seq < '')
"""
"""The recursion finds one workspace after another by the index, so the size of the audit does not
matter.
"""

_SEAL = """
UPDATE audit SET team_id = :team_id, seq = :seq, alg = :alg, prev = :prev, hash = :hash
WHERE entry_id = :entry_id AND seq IS NULL
"""


class SqliteTrail(Trail):
    """See `storage.trail.Trail`.

    Args:
        database: The database of the audit.
        seal: Seals entries.
    """

    def __init__(self, database: Database, seal: Seal) -> None:
        super().__init__(SqliteLog(database, "audit", "entry_id"), seal)
        self._database = database

    async def append(self, *entries: AuditEntry) -> None:
        if not entries:
            return
        rows = [row_of(entry, Seal()) for entry in entries]
        for row in rows:
            _check_texts(row)
        teams = sorted({str(row["team_id"]) for row in rows})
        reports = [segment_id(team_id, _NUMBERLESS) for team_id in teams]
        values = {
            "rows": json.dumps(rows),
            "ids": json.dumps([*(row["entry_id"] for row in rows), *reports]),
            "teams": json.dumps(teams),
        }
        await self._database.fetch(_APPEND, values)

    async def seal(self, *, owner: str = "", now_ms: int = 0) -> int:  # noqa: ARG002 - nobody else writes
        """Seal open entries. Entries of `append` are sealed already."""
        rows = await self._log.read(IS_OPEN, BY_TIME)
        ends = await self._ends() if rows else {}
        sealing = [statement for row in rows if (statement := self._sealing(row, ends))]
        for start in range(0, len(sealing), PIECE):
            await self._database.fetch_together(sealing[start : start + PIECE])
        return len(sealing)

    async def heads(self) -> Mapping[str, Head]:
        return {team_id: head for team_id, (head, _) in (await self._ends()).items()}

    async def check_key(self) -> None:
        for row in await self._database.fetch(_HEADS):
            check_alg(row["alg"], self._seal)

    async def tell_key(self) -> None:
        """Log the last entry without a key of each chain, if there is a key now."""
        for team_id, (head, alg) in (await self._ends()).items():
            tell_key_begins(team_id, head, alg, self._seal)

    async def _ends(self) -> dict[str, tuple[Head, str]]:
        """Return the last entry of each chain, and its algorithm."""
        return {
            str(row["team_id"]): (_head(row), str(row["alg"]))
            for row in await self._database.fetch(_HEADS)
        }

    def _sealing(self, row: Row, ends: dict[str, tuple[Head, str]]) -> Statement | None:
        """Return the statement that seals an entry, and advance its chain in `ends`.

        None for an entry that must not be sealed, see `seal_for`.
        """
        team_id = str(open_form(row)["team"])
        head, alg = ends.get(team_id, (Head(), PLAIN))
        seal = seal_for(row, self._seal, is_keyed=alg != PLAIN)
        if seal is None:
            return None
        columns = sealed_columns(row, seal, seq=head.seq + 1, prev=head.hash)
        ends[team_id] = Head(head.seq + 1, str(columns["hash"])), seal.alg
        return _SEAL, {"entry_id": row["entry_id"], "team_id": team_id, **columns}


def _head(row: Row) -> Head:
    seq = row["seq"]
    return Head(int(seq) if isinstance(seq, int | float) else 0, str(row["hash"]))


def add_seal(connection: sqlite3.Connection, seal: Seal) -> None:
    """Add the SQL function that seals entries to a connection.

    Args:
        connection: The connection for the statement `_APPEND`.
        seal: Seals entries.
    """
    connection.create_function("countersign_seal", 3, partial(_sealed, seal))


def _sealed(seal: Seal, rows: str, known: str, heads: str) -> str:
    """Seal new entries, each after the last entry of its workspace. Called by SQLite.

    If the last entry is damaged, an entry that reports this is added first.
    """
    ids = set(json.loads(known))
    ends = json.loads(heads)
    last: dict[str, tuple[int, str]] = {}
    made: list[list[object]] = []

    def add(row: Row) -> None:
        ids.add(row["entry_id"])
        seq, prev = last[str(row["team_id"])]
        full = {**row, **sealed_columns(row, seal, seq=seq + 1, prev=prev)}
        last[str(row["team_id"])] = (seq + 1, str(full["hash"]))
        made.append([full[name] for name in COLUMNS])

    for row in json.loads(rows):
        if row["entry_id"] in ids:
            continue
        team_id, at_ms = row["team_id"], row["at_ms"]
        if team_id not in last:
            end, is_numberless = ends[team_id]
            seq, prev = last[team_id] = _end_of(end)
            if not prev:
                last[team_id] = (seq, GENESIS)
                add(segment_row(team_id, behind=seq, at_ms=at_ms))
            elif is_numberless and segment_id(team_id, _NUMBERLESS) not in ids:
                add(segment_row(team_id, behind=seq, at_ms=at_ms, name=_NUMBERLESS))
        add(row)
    return json.dumps(made)


def _end_of(text: str | None) -> tuple[int, str]:
    """Return the number and hash of a chain's last entry; an empty hash if it is damaged."""
    if text is None:
        return 0, GENESIS
    seq, is_whole, hash_, alg = json.loads(text)
    is_whole = is_whole and is_hash(_text(hash_)) and is_alg(_text(alg))
    return seq, _text(hash_) if is_whole else ""


def _text(in_hex: str | None) -> str:
    return bytes.fromhex(in_hex or "").decode(errors="replace")


def sealed_columns(
    row: Mapping[str, object], seal: Seal, *, seq: int, prev: str
) -> dict[str, object]:
    """Return the columns that sealing adds to an entry."""
    form = seal.sealed(open_form(row), seq=seq, prev=prev)
    return {name: form[name] for name in SEALED}


def _check_texts(row: Row) -> None:
    """Refuse texts with surrogates, which represent bytes that are not valid UTF-8."""
    try:
        for value in row.values():
            if isinstance(value, str) and not value.isascii():
                value.encode()
    except UnicodeError as error:
        raise RecordRefusedError(str(error)) from error
