"""Collections in SQLite: one table each, the body as JSON, and a column for each indexed field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Generic

from storage.codec import Row
from storage.documents import (
    MAX_REASON,
    D,
    Document,
    Index,
    Page,
    Place,
    Unreadable,
    Where,
    WorkDocument,
    body_of,
    due_of,
    indexed,
    operators,
    read_document,
    reader_of,
    sorting,
    suppressed,
    told_reason,
)
from storage.errors import RecordConflictError, RecordFormatError, RecordNotFoundError
from storage.sqlite.database import Database
from storage.sqlite.file.statements import Statement

_OPERATORS = {"$eq": "=", "$ne": "<>", "$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}

_ROWS = 100
"""Documents of one statement."""

_QUARANTINED = "quarantined_by <> ''"

_PAGE = 500


class SqliteCollection(Generic[D]):
    """See `storage.documents.Collection`.

    Args:
        database: The file.
        kind: The class of the documents.
    """

    def __init__(self, database: Database, kind: type[D]) -> None:
        self.kind = kind
        self._database = database
        self._table = kind.spec.name
        self._is_work = issubclass(kind, WorkDocument)
        self._columns = {name: f'"{name}"' for name in indexed(kind)} | {"id": "id"}
        if self._is_work:
            self._columns |= {name: name for name in _WORK}
        self._fields = ("revision", *(_WORK if self._is_work else ()))
        self._chosen = ", ".join(("id", "v", "content", "body", *self._fields))
        self._constants = {
            (name, operator, value)
            for index in kind.spec.indexes
            for name, wanted in index.where.items()
            for operator, value in operators(wanted).items()
        }

    async def get(self, key: str) -> D:
        sql = f"SELECT {self._chosen} FROM {self._table} WHERE id = :id"  # noqa: S608 - as above
        rows = await self._database.read(sql, {"id": key})
        if not rows:
            raise RecordNotFoundError(self.kind.spec.noun, key)
        return self._parse(rows[0])

    async def insert(self, *documents: D) -> frozenset[str]:
        found: set[str] = set()
        for start in range(0, len(documents), _ROWS):
            rows = await self._database.fetch(*self._insert(documents[start : start + _ROWS]))
            found |= {str(row["id"]) for row in rows}
        return frozenset(found)

    def _insert(self, documents: Sequence[D]) -> Statement:
        values: list[object] = []
        for one in documents:
            values += [one.key, self.kind.spec.version, one.revision, *self._texts(one)]
            if isinstance(one, WorkDocument):
                values += [one.due_ms, one.leased_by, one.leased_until_ms, one.fence]
        work = ", due_ms, leased_by, leased_until_ms, fence" if self._is_work else ""
        row = f"({', '.join('?' * (9 if self._is_work else 5))})"
        sql = (
            f"INSERT INTO {self._table} (id, v, revision, content, body{work}) "  # noqa: S608 - as above
            f"VALUES {', '.join([row] * len(documents))} ON CONFLICT DO NOTHING RETURNING id"
        )
        return sql, values

    async def replace(
        self,
        document: D,
        *,
        based_on: D,
        fence: int | None = None,
        writes_due: bool = False,
        releases: bool = False,
    ) -> D:
        new = document.changed(revision=based_on.revision + 1)
        content, body = self._texts(new)
        changes = "body = :body, revision = :revision, v = :v"
        values: dict[str, object] = {
            "id": new.key,
            "v": self.kind.spec.version,
            "body": body,
            "revision": new.revision,
            "was": based_on.revision,
        }
        if content != self._texts(based_on)[0]:
            changes += ", content = :content"
            values["content"] = content
        if writes_due or due_of(new) != due_of(based_on):
            changes += ", due_ms = :due"
            values["due"] = due_of(new)
        if releases:
            changes += ", leased_by = '', leased_until_ms = 0"
        held = ""
        if fence is not None:
            held = f" AND {_HELD}"
            values["fence"] = fence
        sql = (
            f"UPDATE {self._table} SET {changes} "  # noqa: S608 - names are our own
            f"WHERE id = :id AND revision = :was AND v = :v{held} RETURNING 1"
        )
        if not await self._database.change(sql, values):
            raise RecordConflictError(self.kind.spec.noun, new.key)
        return new

    async def find(
        self,
        where: Where,
        *,
        sort: Sequence[str] = (),
        limit: int | None = None,
        after: Place | None = None,
        strict: bool = False,
    ) -> Page[D]:
        names, is_down = sorting(sort)
        found: list[D] = []
        while limit is None or len(found) < limit:
            size = _PAGE if limit is None else limit - len(found)
            rows = await self._page(where, names, size, after, is_down=is_down, strict=strict)
            found += await self._read(rows, strict=strict)
            after = self._place(rows[-1], names) if len(rows) == size else None
            if after is None:
                break
        return Page(found, after)

    async def _page(
        self,
        where: Where,
        names: Sequence[str],
        limit: int,
        after: Place | None,
        *,
        is_down: bool,
        strict: bool,
    ) -> list[Row]:
        condition, values = self._where(where)
        if not strict:
            condition += " AND quarantined_by <> :reader"
            values["reader"] = reader_of(self.kind)
        columns = [self._column(name) for name in names]
        if after is not None:
            places = [f":after{number}" for number in range(len(after))]
            compared = "<" if is_down else ">"
            condition += f" AND ({', '.join(columns)}) {compared} ({', '.join(places)})"
            values |= {f"after{number}": value for number, value in enumerate(after)}
        order = ", ".join(f"{column} DESC" if is_down else column for column in columns)
        chosen = ", ".join(f"{column} AS _{number}" for number, column in enumerate(columns))
        sql = (
            f"SELECT {self._chosen}, {chosen} FROM {self._table} WHERE {condition} "  # noqa: S608 - as above
            f"ORDER BY {order} LIMIT :limit"
        )
        return await self._database.read(sql, {**values, "limit": max(limit, 0)})

    async def places(
        self, where: Where, *, sort: Sequence[str] = (), limit: int, after: Place | None = None
    ) -> list[Place]:
        names, is_down = sorting(sort)
        rows = await self._page(where, names, limit, after, is_down=is_down, strict=True)
        places = [self._place(row, names) for row in rows]
        return [one for one in places if one is not None]

    async def count(self, where: Where, *, with_quarantined: bool = False) -> int:
        condition, values = self._where(where)
        if not with_quarantined:
            condition += " AND quarantined_by <> :reader"
            values["reader"] = reader_of(self.kind)
        sql = f"SELECT count(*) AS found FROM {self._table} WHERE {condition}"  # noqa: S608
        return await self._database.count(sql, values)

    async def delete(self, where: Where, *, limit: int) -> int:
        condition, values = self._where(where)
        sql = (
            f"DELETE FROM {self._table} WHERE id IN "  # noqa: S608 - names are our own
            f"(SELECT id FROM {self._table} WHERE {condition} LIMIT :limit) RETURNING 1"
        )
        return len(await self._database.fetch(sql, {**values, "limit": max(limit, 0)}))

    async def due(self, *, now_ms: int, limit: int) -> Sequence[D]:
        sql = (
            f"SELECT {self._chosen} FROM {self._table} WHERE {_IS_DUE} "  # noqa: S608 - names are our own
            "ORDER BY due_ms, id LIMIT :limit"
        )
        found: list[D] = []
        values = {"now": now_ms, "reader": reader_of(self.kind)}
        while len(found) < limit:
            rows = await self._database.fetch(sql, {**values, "limit": limit})
            found = await self._read(rows)
            if len(found) == len(rows):
                break
        return found

    async def claim(self, key: str, *, owner: str, now_ms: int, until_ms: int) -> D | None:
        sql = (
            f"UPDATE {self._table} SET leased_by = :owner, "  # noqa: S608 - names are our own
            "leased_until_ms = :until, due_ms = :until, fence = fence + 1, quarantined_by = '', "
            f"quarantine_reason = '' WHERE id = :id AND {_IS_DUE} "
            f"RETURNING {self._chosen}"
        )
        values = {"id": key, "owner": owner, "until": until_ms, "now": now_ms}
        rows = await self._database.fetch(sql, {**values, "reader": reader_of(self.kind)})
        return next(iter(await self._read(rows)), None)

    async def release(self, key: str, *, fence: int, due_ms: int | None) -> bool:
        sql = (
            f"UPDATE {self._table} SET leased_by = '', "  # noqa: S608 - names are our own
            "leased_until_ms = 0, due_ms = :due "
            f"WHERE id = :id AND {_HELD} RETURNING 1"
        )
        return await self._database.change(sql, {"id": key, "fence": fence, "due": due_ms})

    async def seal(
        self, key: str, where: Where, *, owner: str, now_ms: int, until_ms: int
    ) -> int | None:
        condition, values = self._where(where)
        sql = (
            f"UPDATE {self._table} SET leased_by = :owner, "  # noqa: S608 - names are our own
            "leased_until_ms = :until, fence = fence + 1 WHERE id = :id AND due_ms IS NULL "
            f"AND leased_until_ms <= :now AND {condition} RETURNING fence"
        )
        values |= {"id": key, "owner": owner, "until": until_ms, "now": now_ms}
        rows = await self._database.fetch(sql, values)
        return int(str(rows[0]["fence"])) if rows else None

    async def unseal(self, key: str, *, fence: int) -> None:
        sql = (
            f"UPDATE {self._table} SET leased_by = '', "  # noqa: S608 - names are our own
            f"leased_until_ms = 0 WHERE id = :id AND {_HELD}"
        )
        await self._database.fetch(sql, {"id": key, "fence": fence})

    async def extend(self, key: str, *, fence: int, until_ms: int) -> bool:
        sql = (
            f"UPDATE {self._table} SET leased_until_ms = :until "  # noqa: S608 - as above
            f"WHERE id = :id AND {_HELD} RETURNING 1"
        )
        return await self._database.change(sql, {"id": key, "fence": fence, "until": until_ms})

    async def quarantine(self, key: str, *, fence: int, why: str) -> bool:
        sql = (
            f"UPDATE {self._table} SET quarantined_by = :reader, "  # noqa: S608 - as above
            "quarantine_reason = :why, leased_by = '', leased_until_ms = 0 "
            f"WHERE id = :id AND {_HELD} RETURNING 1"
        )
        values = {"id": key, "fence": fence, "why": why[:MAX_REASON]}
        return await self._database.change(sql, {**values, "reader": reader_of(self.kind)})

    async def quarantined(self, *, limit: int) -> Sequence[Unreadable]:
        sql = (
            f"SELECT id, quarantine_reason FROM {self._table} "  # noqa: S608 - names are our own
            f"WHERE {_QUARANTINED} AND quarantined_by = :reader ORDER BY id LIMIT :limit"
        )
        rows = await self._database.fetch(sql, {"reader": reader_of(self.kind), "limit": limit})
        noun = self.kind.spec.noun
        return [
            Unreadable(kind=noun, record_id=str(row["id"]), why=str(row["quarantine_reason"]))
            for row in rows
        ]

    async def count_quarantined(self) -> int:
        sql = (
            f"SELECT count(*) AS found FROM {self._table} "  # noqa: S608 - names are our own
            f"WHERE {_QUARANTINED} AND quarantined_by = :reader"
        )
        return await self._database.count(sql, {"reader": reader_of(self.kind)})

    async def recheck(self) -> None:
        sql = (
            f"UPDATE {self._table} SET quarantined_by = '', "  # noqa: S608 - names are our own
            f"quarantine_reason = '' WHERE {_QUARANTINED} AND quarantined_by = :reader"
        )
        await self._database.fetch(sql, {"reader": reader_of(self.kind)})

    async def _read(self, rows: Iterable[Row], *, strict: bool = False) -> list[D]:
        found: list[D] = []
        for row in rows:
            try:
                found.append(self._parse(row))
            except RecordFormatError as error:
                if strict:
                    raise
                await self._quarantine(str(row["id"]), error)
        return found

    async def _quarantine(self, key: str, error: RecordFormatError) -> None:
        lease = ", leased_by = '', leased_until_ms = 0" if self._is_work else ""
        sql = (
            f"UPDATE {self._table} SET quarantined_by = :reader, "  # noqa: S608 - as above
            f"quarantine_reason = :why{lease} WHERE id = :id"
        )
        values = {"id": key, "reader": reader_of(self.kind), "why": told_reason(error)}
        with suppressed():
            await self._database.fetch(sql, values)

    def _parse(self, row: Row) -> D:
        columns = {name: row[name] for name in self._fields}
        key = str(row["id"])
        whole = _joined(row["content"], row["body"])
        return read_document(self.kind, whole, version=row["v"], key=key, columns=columns)

    def _texts(self, document: D) -> tuple[str, str]:
        """The content and the body of a document, as JSON."""
        body = body_of(document)
        constant = {self.kind.spec.key, *self.kind.spec.content} & body.keys()
        content = {name: body.pop(name) for name in sorted(constant)}
        return _text(content), _text(body)

    def _place(self, row: Row, names: Sequence[str]) -> Place | None:
        return tuple(row[f"_{number}"] for number in range(len(names)))

    def _column(self, name: str) -> str:
        return self._columns[name]

    def _where(self, where: Where) -> tuple[str, dict[str, object]]:
        parts, values = ["true"], dict[str, object]()
        for name, wanted in where.items():
            for operator, value in operators(wanted).items():
                column, place = self._column(name), f"w{len(values)}"
                if operator == "$in":
                    wanted_values = f"SELECT value FROM json_each(:{place})"  # noqa: S608
                    parts.append(f"{column} IN ({wanted_values})")
                    values[place] = json.dumps(list(value))  # type: ignore[call-overload]
                elif value is None:  # with `IS ?`, SQLite would not use a partial index
                    parts.append(f"{column} IS {'NOT ' if operator == '$ne' else ''}NULL")
                elif self._is_constant(name, operator, value):
                    parts.append(f"{column} {_OPERATORS[operator]} {_literal(value)}")
                else:
                    parts.append(f"{column} {_OPERATORS[operator]} :{place}")
                    values[place] = value
        return " AND ".join(parts), values

    def _is_constant(self, name: str, operator: str, value: object) -> bool:
        """Whether a condition is that of a partial index, which SQLite compares as text."""
        return isinstance(value, str | int) and (name, operator, value) in self._constants


_WORK = ("due_ms", "leased_by", "leased_until_ms", "fence")

_HELD = "fence = :fence AND leased_until_ms > 0"

_IS_DUE = "due_ms <= :now AND leased_until_ms <= :now AND quarantined_by <> :reader"


def tables(kinds: Iterable[type[Document]]) -> str:
    """Make the statements that create the tables and indexes of some collections."""
    return "\n".join(statement for kind in kinds for statement in _statements(kind))


def break_leases(kinds: Iterable[type[Document]]) -> list[str]:
    """Make the statements that end all leases: what they were for is due at once."""
    return [
        f"UPDATE {kind.spec.name} "  # noqa: S608 - names are our own
        "SET leased_by = '', leased_until_ms = 0, due_ms = 0 WHERE leased_until_ms > 0"
        for kind in kinds
        if issubclass(kind, WorkDocument)
    ]


def _statements(kind: type[Document]) -> list[str]:
    table = kind.spec.name
    work = ""
    if issubclass(kind, WorkDocument):
        work = (
            ", due_ms INTEGER, leased_by TEXT NOT NULL DEFAULT '',"
            " leased_until_ms INTEGER NOT NULL DEFAULT 0, fence INTEGER NOT NULL DEFAULT 0"
        )
    generated = "".join(
        f', "{name}" GENERATED ALWAYS AS (CASE WHEN json_valid({column}) '
        f"THEN json_extract({column}, '$.{name}') END) VIRTUAL"
        for name in sorted(indexed(kind))
        for column in ["content" if name in kind.spec.content else "body"]
    )
    made = (
        f"CREATE TABLE IF NOT EXISTS {table} (id TEXT NOT NULL PRIMARY KEY, v INTEGER NOT NULL,"
        f" revision INTEGER NOT NULL, content TEXT NOT NULL, body TEXT NOT NULL{work},"
        " quarantined_by TEXT NOT NULL DEFAULT '', quarantine_reason TEXT NOT NULL DEFAULT ''"
        f"{generated});"
    )
    indexes = {"quarantined": f"(id) WHERE {_QUARANTINED}"}
    if work:
        free = "(due_ms, leased_until_ms, quarantined_by)"
        indexes["due"] = f"{free} WHERE due_ms IS NOT NULL"
        indexes["leased"] = "(leased_until_ms) WHERE leased_until_ms > 0"
    indexes |= {str(number): _index(one) for number, one in enumerate(kind.spec.indexes)}
    return [
        made,
        *(
            f"CREATE INDEX IF NOT EXISTS {table}_{name} ON {table} {columns};"
            for name, columns in indexes.items()
        ),
    ]


def _index(index: Index) -> str:
    columns = ", ".join(f'"{name}"' for name in index.fields)
    parts = [
        f'"{name}" IS {"NOT " if operator == "$ne" else ""}NULL'
        if value is None
        else f'"{name}" {_OPERATORS[operator]} {_literal(value)}'
        for name, wanted in index.where.items()
        for operator, value in operators(wanted).items()
    ]
    # The mark is in each index, so that counts need not read the table.
    return f"({columns}, quarantined_by)" + (f" WHERE {' AND '.join(parts)}" if parts else "")


def _literal(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(int(value))  # type: ignore[call-overload]


def _text(parts: dict[str, Any]) -> str:
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def _joined(content: object, body: object) -> object:
    """The whole document; anything but two texts is left to the reader to refuse."""
    if not isinstance(content, str) or not isinstance(body, str):
        return body
    return f"{content[:-1]},{body[1:]}" if len(body) > len("{}") else content
