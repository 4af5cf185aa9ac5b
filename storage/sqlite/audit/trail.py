"""The chain of the audit in SQLite.

Appending seals; what an earlier release left open is sealed when the file is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storage.chain import PLAIN, Head, Seal
from storage.codec import Row
from storage.ledger import (
    SEALED,
    check_alg,
    is_split,
    link_of,
    open_form,
    seal_for,
    split_again,
    tell_key_begins,
)
from storage.ports.audit import Link, Unsealed
from storage.sqlite.audit.store import sealed_columns
from storage.sqlite.database import Database
from storage.sqlite.file.statements import Statement

PIECE = 500
"""Entries that are sealed, or deleted, in one transaction."""

_OPEN = """
SELECT * FROM audit WHERE seq IS NULL ORDER BY at_ms, entry_id LIMIT :limit OFFSET :skip
"""
_UNSEALED = """
SELECT count(*) AS found, coalesce(min(at_ms), 0) AS since FROM audit WHERE seq IS NULL
"""
_HEADS = """
WITH RECURSIVE teams (name) AS (
    SELECT min(team_id) FROM audit WHERE seq IS NOT NULL
    UNION ALL
    SELECT (SELECT min(team_id) FROM audit WHERE team_id > name AND seq IS NOT NULL)
    FROM teams WHERE name IS NOT NULL)
SELECT team_id, alg, seq, hash FROM teams JOIN audit
    ON team_id = name AND seq = (SELECT max(seq) FROM audit WHERE team_id = name AND seq < '')
"""
"""The index is asked for one workspace after the other: its size does not matter."""
_SEAL = """
UPDATE audit SET detail = :detail, team_id = :team_id, for_id = :for_id, content = :content,
    salt = :salt, seq = :seq, alg = :alg, prev = :prev, hash = :hash
WHERE entry_id = :entry_id AND seq IS NULL
"""
_PAGE = """
SELECT * FROM audit WHERE team_id = :team AND seq > :after AND gone_ms IS NULL
ORDER BY seq LIMIT :limit
"""
_DATE = """
UPDATE audit SET gone_ms = :now WHERE rowid IN (
    SELECT rowid FROM audit WHERE team_id = :team AND seq <= :upto AND gone_ms IS NULL
    ORDER BY seq LIMIT :limit)
RETURNING 1
"""
_DELETE = """
DELETE FROM audit WHERE rowid IN (
    SELECT rowid FROM audit WHERE gone_ms IS NOT NULL ORDER BY gone_ms LIMIT :limit)
RETURNING 1
"""


class SqliteTrailStore:
    """See `storage.ports.audit.TrailStore`.

    Args:
        database: Where the audit is.
        seal: How entries are sealed.
    """

    def __init__(self, database: Database, seal: Seal) -> None:
        self._database, self._seal = database, seal

    async def seal(self, *, owner: str = "", now_ms: int = 0) -> int:  # noqa: ARG002 - nobody else writes
        total = left = 0
        while rows := await self._database.fetch(_OPEN, {"limit": PIECE, "skip": left}):
            ends = await self._ends()
            sealing = [one for row in rows if (one := self._sealing(row, ends))]
            await self._database.fetch_together(sealing)
            total, left = total + len(sealing), left + len(rows) - len(sealing)
        return total

    async def unsealed(self) -> Unsealed:
        (row,) = await self._database.fetch(_UNSEALED)
        return Unsealed(int(str(row["found"])), int(str(row["since"])))

    async def open_links(self, *, limit: int) -> Sequence[Link]:
        rows = await self._database.fetch(_OPEN, {"limit": max(limit, 0), "skip": 0})
        return [link_of(row, self._seal) for row in rows]

    async def heads(self) -> Mapping[str, Head]:
        return {team_id: head for team_id, (head, _) in (await self._ends()).items()}

    async def page(self, team_id: str, *, after: int, limit: int) -> Sequence[Link]:
        values = {"team": team_id, "after": after, "limit": max(limit, 0)}
        return [link_of(row, self._seal) for row in await self._database.fetch(_PAGE, values)]

    async def expire(self, team_id: str, *, upto: int, now_ms: int) -> int:
        # From the oldest on: what is left of them after a crash still fits the checkpoint.
        values = {"team": team_id, "upto": upto, "now": now_ms, "limit": PIECE}
        total = 0
        while dated := len(await self._database.fetch(_DATE, values)):
            total += dated
            while await self._database.fetch(_DELETE, {"limit": PIECE}):
                pass
        return total

    async def check_key(self) -> None:
        """See to it that a chain with a key does not go on without.

        Raises:
            StoreUnavailableError: Its key is not known here.
        """
        for row in await self._database.fetch(_HEADS):
            check_alg(row["alg"], self._seal)

    async def tell_key(self) -> None:
        """Note in the log which entries are the last without a key, where there is one now."""
        for team_id, (head, alg) in (await self._ends()).items():
            tell_key_begins(team_id, head, alg, self._seal)

    async def _ends(self) -> dict[str, tuple[Head, str]]:
        """The last entry of each chain, and its algorithm."""
        return {
            str(row["team_id"]): (_head(row), str(row["alg"]))
            for row in await self._database.fetch(_HEADS)
        }

    def _sealing(self, row: Row, ends: dict[str, tuple[Head, str]]) -> Statement | None:
        """The statement that seals a row behind its end, which moves on; None for a foreign one."""
        split = None if is_split(row) else split_again(row, self._seal)
        full: Row = {"content": "", "salt": "", **_texts(row), **(split or {})}
        full["team_id"] = team_id = str(open_form(full)["team"])
        head, alg = ends.get(team_id, (Head(), PLAIN))
        seal = seal_for(full, self._seal, is_keyed=alg != PLAIN)
        if seal is None:
            return None
        columns = sealed_columns(full, seal, seq=head.seq + 1, prev=head.hash)
        ends[team_id] = Head(head.seq + 1, str(columns["hash"])), seal.alg
        names = ("entry_id", "detail", "team_id", "for_id", "content", "salt")
        return _SEAL, {**{name: full[name] for name in names}, **columns}


def _head(row: Row) -> Head:
    seq = row["seq"]
    return Head(int(seq) if isinstance(seq, int | float) else 0, str(row["hash"]))


def _texts(row: Row) -> Row:
    return {name: item for name, item in row.items() if item is not None and name not in SEALED}
