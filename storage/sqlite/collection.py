"""Collections and logs in SQLite: JSON bodies with a generated column per indexed field."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic_core import to_json

from storage.documents import (
    Body,
    Collection,
    D,
    Document,
    Index,
    Place,
    Row,
    Value,
    Where,
    WorkDocument,
    columns_of,
    indexed,
    operators,
)
from storage.sqlite.database import Database
from storage.sqlite.file.statements import Statement

_OPERATORS = {"$eq": "=", "$ne": "<>", "$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}

_ROWS = 100
"""Number of documents that one statement inserts."""

_QUARANTINED = "quarantined_by <> ''"
_LEASED = "leased_until_ms > 0"


class SqliteCollection(Collection[D]):
    """See `storage.documents.Collection`.

    Args:
        database: The file.
        kind: The class of the documents.
    """

    def __init__(self, database: Database, kind: type[D]) -> None:
        super().__init__(kind)
        self._database = database
        self._table = kind.spec.name
        self._fields = sorted(columns_of(kind))
        self._constant = sorted({kind.spec.key, *kind.spec.content})
        own = ("id", "v", *self._fields, "quarantined_by", "quarantine_reason")
        self._names = {name: f'"{name}"' for name in indexed(kind)} | {name: name for name in own}
        self._chosen = ", ".join((*own, "content", "body"))
        self._constants = {
            (name, operator, value)
            for index in kind.spec.indexes
            for name, wanted in index.where.items()
            for operator, value in operators(wanted).items()
        }

    async def delete(self, where: Where, *, limit: int) -> int:
        condition, values = self._where(where)
        sql = (
            f"DELETE FROM {self._table} WHERE id IN "  # noqa: S608 - names are our own
            f"(SELECT id FROM {self._table} WHERE {condition} LIMIT :limit) RETURNING 1"
        )
        return len(await self._database.fetch(sql, {**values, "limit": max(limit, 0)}))

    async def _insert(self, documents: Sequence[tuple[D, Body]]) -> frozenset[str]:
        ids: set[str] = set()
        for start in range(0, len(documents), _ROWS):
            rows = await self._database.fetch(*self._inserting(documents[start : start + _ROWS]))
            ids |= {str(row["id"]) for row in rows}
        return frozenset(ids)

    def _inserting(self, documents: Sequence[tuple[D, Body]]) -> Statement:
        values: list[object] = []
        for document, body in documents:
            content, rest = self._parts(body)
            values += [document.key, self.kind.spec.version, _text(content), _text(rest)]
            values += [getattr(document, name) for name in self._fields]
        names = ("id", "v", "content", "body", *self._fields)
        row = f"({', '.join('?' * len(names))})"
        sql = (
            f"INSERT INTO {self._table} ({', '.join(names)}) "  # noqa: S608 - names are our own
            f"VALUES {', '.join([row] * len(documents))} ON CONFLICT DO NOTHING RETURNING id"
        )
        return sql, values

    async def _rows(
        self,
        where: Where,
        names: Sequence[str],
        *,
        limit: int,
        after: Place | None = None,
        is_down: bool = False,
    ) -> Sequence[Row]:
        condition, values = self._where(where)
        columns = [self._names[name] for name in names]
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
        # Queries for due work can return many rows and nobody waits for them, so the worker's
        # thread runs them: in the calling thread they would block the event loop.
        run = self._database.fetch if "leased_until_ms" in where else self._database.read
        return await run(sql, {**values, "limit": max(limit, 0)})

    async def _change(
        self,
        where: Where,
        changes: Mapping[str, Value],
        body: tuple[Body, frozenset[str]] | None = None,
        *,
        many: bool = False,  # noqa: ARG002 - a statement changes all that are as `where` says
    ) -> bool:
        columns: dict[str, object] = dict(changes)
        if body is not None:
            whole, differing = body
            content, rest = self._parts(whole)
            columns["body"] = _text(rest)
            if differing & self.kind.spec.content:
                columns["content"] = _text(content)
        changed = [f"{name} = :new_{name}" for name in columns]
        return bool(await self._update(where, changed, columns, "1"))

    async def _claim(self, where: Where, changes: Mapping[str, Value]) -> Row | None:
        changed = [*(f"{name} = :new_{name}" for name in changes), "fence = fence + 1"]
        rows = await self._update(where, changed, changes, self._chosen)
        return next(iter(rows), None)

    async def _update(
        self, where: Where, changed: Sequence[str], columns: Mapping[str, object], returned: str
    ) -> list[dict[str, Any]]:
        condition, values = self._where(where)
        sql = (
            f"UPDATE {self._table} SET {', '.join(changed)} "  # noqa: S608 - names are our own
            f"WHERE {condition} RETURNING {returned}"
        )
        return await self._database.fetch(
            sql, {**values, **{f"new_{name}": value for name, value in columns.items()}}
        )

    async def _count(self, where: Where) -> int:
        condition, values = self._where(where)
        sql = f"SELECT count(*) AS found FROM {self._table} WHERE {condition}"  # noqa: S608
        return await self._database.count(sql, values)

    def _place(self, row: Row, names: Sequence[str]) -> Place | None:
        return tuple(row[f"_{number}"] for number in range(len(names)))

    def _body(self, row: Row) -> tuple[str, object, object]:
        return str(row["id"]), row["v"], _joined(row["content"], row["body"])

    def _columns(self, row: Row) -> Row:
        return {name: row[name] for name in self._fields}

    def _mark(self, row: Row) -> tuple[object, object]:
        return row["quarantined_by"], row["quarantine_reason"]

    def _parts(self, body: Body) -> tuple[Body, Body]:
        """Return the key and the constant fields, and the rest."""
        content = {name: body[name] for name in self._constant if name in body}
        return content, {name: value for name, value in body.items() if name not in content}

    def _where(self, where: Where) -> tuple[str, dict[str, object]]:
        return conditions(where, self._names, self._constants)


def conditions(
    where: Where,
    columns: Mapping[str, str],
    constants: Container[tuple[str, str, object]] = (),
) -> tuple[str, dict[str, object]]:
    """Build the SQL text of a condition, and its parameters.

    Args:
        where: The condition.
        columns: Column names in SQL, by field.
        constants: Conditions of partial indexes, as field, operator and value. These are written as
            literals: SQLite uses a partial index only if the query has its condition as text.
    """
    parts, values = ["true"], dict[str, object]()
    for name, wanted in where.items():
        for operator, value in operators(wanted).items():
            column, place = columns[name], f"w{len(values)}"
            if operator == "$in":
                wanted_values = f"SELECT value FROM json_each(:{place})"  # noqa: S608
                parts.append(f"{column} IN ({wanted_values})")
                values[place] = json.dumps(list(cast("Iterable[object]", value)))
            elif value is None:  # with `IS ?`, SQLite would not use a partial index
                parts.append(f"{column} IS {'NOT ' if operator == '$ne' else ''}NULL")
            elif isinstance(value, str | int) and (name, operator, value) in constants:
                parts.append(f"{column} {_OPERATORS[operator]} {_literal(value)}")
            else:
                # Without the plus, SQLite compares the value with the conditions of partial
                # indexes, and plans the query anew for each value.
                parts.append(f"{column} {_OPERATORS[operator]} +:{place}")
                values[place] = value
            # The literal conditions of partial indexes.
            if (name, operator) == ("quarantined_by", "$eq"):
                parts.append(_QUARANTINED)
            if name == "leased_until_ms" and operator in {"$gt", "$gte"}:
                parts.append(_LEASED)
    return " AND ".join(parts), values


def tables(kinds: Iterable[type[Document]]) -> str:
    """Return the statements that create the tables and indexes of collections."""
    return "\n".join(statement for kind in kinds for statement in _statements(kind))


def break_leases(kinds: Iterable[type[Document]]) -> list[str]:
    """Return the statements that end all leases. The work of these leases becomes due at once."""
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
        for column in ["content" if name.partition(".")[0] in kind.spec.content else "body"]
    )
    made = (
        f"CREATE TABLE IF NOT EXISTS {table} (id TEXT NOT NULL PRIMARY KEY, v INTEGER NOT NULL,"
        f" revision INTEGER NOT NULL, content TEXT NOT NULL, body TEXT NOT NULL{work},"
        " quarantined_by TEXT NOT NULL DEFAULT '', quarantine_reason TEXT NOT NULL DEFAULT ''"
        f"{generated});"
    )
    indexes = {"quarantined": f"(quarantined_by) WHERE {_QUARANTINED}"}
    if work:
        free = "(due_ms, leased_until_ms, quarantined_by)"
        indexes["due"] = f"{free} WHERE due_ms IS NOT NULL"
        indexes["leased"] = f"(leased_until_ms) WHERE {_LEASED}"
    indexes |= {str(number): _index(index) for number, index in enumerate(kind.spec.indexes)}
    return [
        made,
        *(
            f"CREATE INDEX IF NOT EXISTS {table}_{name} ON {table} {columns};"
            for name, columns in indexes.items()
        ),
    ]


def _joined(content: object, body: object) -> str | None:
    """Join two JSON objects as text; return None if a text is not a JSON object."""
    if not isinstance(content, str) or not isinstance(body, str):
        return None
    if body == "{}":
        return content
    is_whole = content.endswith("}") and body.startswith("{")
    return f"{content[:-1]},{body[1:]}" if is_whole else None


def _index(index: Index) -> str:
    columns = ", ".join(f'"{name}"' for name in (*index.fields, "id"))
    parts = [
        f'"{name}" IS {"NOT " if operator == "$ne" else ""}NULL'
        if value is None
        else f'"{name}" {_OPERATORS[operator]} {_literal(value)}'
        for name, wanted in index.where.items()
        for operator, value in operators(wanted).items()
    ]
    # Each index contains the quarantine mark, so that counts need not read the table.
    return f"({columns}, quarantined_by)" + (f" WHERE {' AND '.join(parts)}" if parts else "")


def _literal(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(int(value))  # type: ignore[call-overload]


def _text(parts: dict[str, Any]) -> str:
    return to_json(parts).decode()


class SqliteLog:
    """See `storage.log.RowLog`.

    Args:
        database: The file.
        table: Name of the table.
        key: Name of the primary key column.
    """

    def __init__(self, database: Database, table: str, key: str) -> None:
        self._database, self._table, self.key = database, table, key

    async def append(self, rows: Sequence[Row]) -> bool:
        names = tuple(rows[0])
        places = f"({', '.join('?' * len(names))})"
        sql = (
            f"INSERT INTO {self._table} ({', '.join(names)}) "  # noqa: S608 - names are our own
            f"VALUES {', '.join([places] * len(rows))} ON CONFLICT DO NOTHING RETURNING 1"
        )
        values = [row[name] for row in rows for name in names]
        return bool(await self._database.fetch(sql, values))

    async def read(
        self,
        where: Where,
        sort: Sequence[str],
        *,
        limit: int | None = None,
        names: Sequence[str] | None = None,
    ) -> Sequence[Row]:
        condition, values = _where(where)
        size = -1 if limit is None else max(limit, 0)
        chosen = ", ".join(names or "*")
        sql = f"SELECT {chosen} FROM {self._table} WHERE {condition}{_order(sort)} LIMIT :limit"  # noqa: S608
        return await self._database.fetch(sql, {**values, "limit": size})

    async def count(self, where: Where) -> int:
        condition, values = _where(where)
        sql = f"SELECT count(*) AS found FROM {self._table} WHERE {condition}"  # noqa: S608
        return await self._database.count(sql, values)

    async def change(
        self, where: Where, changes: Row, *, push: tuple[str, str] | None = None
    ) -> bool:
        condition, values = _where(where)
        changed = [f"{name} = :{name}" for name in changes]
        if push is not None:  # one line per entry: JSON text contains no line breaks
            name, values["pushed"] = push
            changed.append(f"{name} = {name} || :pushed || char(10)")
        sql = f"UPDATE {self._table} SET {', '.join(changed)} WHERE {condition} RETURNING 1"  # noqa: S608
        return await self._database.change(sql, {**values, **changes})

    async def delete(self, where: Where, *, sort: Sequence[str] = (), limit: int) -> int:
        condition, values = _where(where)
        chosen = f"SELECT rowid FROM {self._table} WHERE {condition}{_order(sort)} LIMIT :limit"  # noqa: S608
        sql = f"DELETE FROM {self._table} WHERE rowid IN ({chosen}) RETURNING 1"  # noqa: S608
        return len(await self._database.fetch(sql, {**values, "limit": max(limit, 0)}))


def _where(where: Where) -> tuple[str, dict[str, object]]:
    return conditions(where, {name: name for name in where})


def _order(sort: Sequence[str]) -> str:
    names = [f"{field[1:]} DESC" if field.startswith("-") else field for field in sort]
    return f" ORDER BY {', '.join(names)}" if names else ""
