"""Collections and logs in MongoDB: fields of the document at the top level, ours in `_work`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeGuard, get_args

from pydantic import BaseModel

from storage.documents import (
    WORK_FIELDS,
    Body,
    Collection,
    D,
    Document,
    Place,
    Row,
    Value,
    Where,
    WorkDocument,
    indexed,
    operators,
)
from storage.errors import StoreBrokenError
from storage.mongo.commands import Commands, Filter, Sort, Update, both

_BESIDE = frozenset({"_id", "v", "revision", "_work"})
"""Fields of a stored document that are not part of its body."""

_MARKS = ("quarantined_by", "quarantine_reason")

_BY = f"_work.{_MARKS[0]}"

_CLAIM = "_work.claim"
"""The field with the mark of the last claim."""


class MongoCollection(Collection[D]):
    """See `storage.documents.Collection`.

    Args:
        commands: The server's collection.
        kind: The class of the documents.
    """

    _damaged_leases: ClassVar[tuple[object, ...]] = ({"$gte": ""}, None)  # texts, or missing

    def __init__(self, commands: Commands, kind: type[D]) -> None:
        super().__init__(kind)
        self._commands = commands
        work = (*_MARKS, *(WORK_FIELDS if self._is_work else ()))
        self._names = {name: name for name in (*indexed(kind), "v", "revision")} | {"id": "_id"}
        self._names |= {name: f"_work.{name}" for name in work}
        fields = kind.model_fields.items()
        self._flagged = {
            name: field.annotation for name, field in fields if _flags(field.annotation)
        }

    async def delete(self, where: Where, *, limit: int) -> int:
        # MongoDB has no limit for deletes, so the keys are read first.
        condition = self._where(where)
        return await self._commands.remove(await self._commands.keys(condition, limit), condition)

    async def _insert(self, documents: Sequence[tuple[D, Body]]) -> frozenset[str]:
        return await self._commands.insert_all(
            [self._stored(document, body) for document, body in documents]
        )

    async def _rows(
        self,
        where: Where,
        names: Sequence[str],
        *,
        limit: int,
        after: Place | None = None,
        is_down: bool = False,
    ) -> Sequence[Row]:
        condition = self._where(where)
        order: Sort = [(self._names[name], -1 if is_down else 1) for name in names]
        rows: list[dict[str, Any]] = []
        for more in self._ranges(names, after, is_down=is_down):
            if len(rows) < limit:
                where_next = both(condition, more)
                rows += await self._commands.find(where_next, order, limit - len(rows))
        return rows

    def _ranges(self, names: Sequence[str], after: Place | None, *, is_down: bool) -> list[Filter]:
        """Return the conditions of the rows after a place, the nearest first, without `$or`.

        Each condition is one query, because some compatible servers do not use indexes for `$or`.
        """
        if after is None:
            return [{}]
        operator = "$lt" if is_down else "$gt"
        ranges = []
        for number in reversed(range(len(names))):
            same = {self._names[names[index]]: after[index] for index in range(number)}
            ranges.append({**same, self._names[names[number]]: {operator: after[number]}})
        return ranges

    async def _change(
        self,
        where: Where,
        changes: Mapping[str, Value],
        body: tuple[Body, frozenset[str]] | None = None,
        *,
        many: bool = False,
    ) -> bool:
        update = self._setting(changes)
        if body is not None:
            new, differing = body
            update["$set"] |= {name: new[name] for name in sorted(differing & new.keys())}
            update["$unset"] |= dict.fromkeys(sorted(differing - new.keys()), "")
        condition, update = (
            self._where(where),
            {name: operand for name, operand in update.items() if operand},
        )
        if not many:
            return await self._commands.update(condition, update)
        await self._commands.update_all(condition, update)
        return True

    async def _claim(self, where: Where, changes: Mapping[str, Value]) -> Row | None:
        update = self._setting(changes) | {"$inc": {self._names["fence"]: 1}}
        update = {name: operand for name, operand in update.items() if operand}
        try:
            return await self._commands.claim(self._where(where), update, mark=_CLAIM)
        except StoreBrokenError:
            stored = await self._commands.find({"_id": where["id"]}, [("_id", 1)], 1)
            if not stored or self._has_columns(stored[0]):
                raise
            return stored[0]  # the caller finds that it is damaged

    def _has_columns(self, row: Row) -> bool:
        return isinstance(row.get("_work"), Mapping) or not (self._is_work or "_work" in row)

    async def _make_columns(self, row: Row) -> None:
        # Without a fencing token, so that the record stays unreadable until somebody repairs it.
        no_lease = {"leased_by": "", "leased_until_ms": 0} if self._is_work else {}
        where = {"_id": row["_id"], "revision": row.get("revision")}
        await self._commands.update(where, {"$set": {"_work": no_lease}})

    def _setting(self, changes: Mapping[str, Value]) -> Update:
        """Return the update of columns. None and empty quarantine marks are unset."""
        gone = {name for name, value in changes.items() if value is None}
        gone |= {name for name in _MARKS if changes.get(name) == ""}
        return {
            "$set": {
                self._names[name]: value for name, value in changes.items() if name not in gone
            },
            "$unset": {self._names[name]: "" for name in sorted(gone)},
        }

    async def _count(self, where: Where) -> int:
        return await self._commands.count(self._where(where))

    def _place(self, row: Row, names: Sequence[str]) -> Place | None:
        place: list[object] = []
        for name in names:
            value: Any = row
            for part in self._names[name].split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            if value is None:
                return None
            place.append(value)
        return tuple(place)

    def _body(self, row: Row) -> tuple[str, object, object]:
        body = {name: value for name, value in row.items() if name not in _BESIDE}
        for name in self._flagged.keys() & body.keys():
            body[name] = _with_flags(self._flagged[name], body[name])
        try:
            text = json.dumps({**body, self.kind.spec.key: row["_id"]}, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            text = ""  # the document has values that are not JSON, so it is damaged
        return str(row["_id"]), row.get("v"), text

    def _columns(self, row: Row) -> Row:
        work = _work_of(row)
        columns = {name: work.get(name) for name in WORK_FIELDS} if self._is_work else {}
        return {**columns, "revision": row.get("revision")}

    def _mark(self, row: Row) -> tuple[object, object]:
        by, why = (_work_of(row).get(name, "") for name in _MARKS)
        return by, why

    def _stored(self, document: D, body: Body) -> dict[str, Any]:
        row = {
            "_id": document.key,
            "v": self.kind.spec.version,
            "revision": document.revision,
            **{name: value for name, value in body.items() if name != self.kind.spec.key},
        }
        if isinstance(document, WorkDocument):
            work = {name: getattr(document, name) for name in sorted(WORK_FIELDS)}
            row["_work"] = {name: value for name, value in work.items() if value is not None}
        return row

    def _where(self, where: Where) -> Filter:
        condition: Filter = {}
        for name, wanted in where.items():
            conditions = dict(operators(wanted))
            if (
                name == _MARKS[0] and "$ne" in conditions
            ):  # some servers do not match a missing field with `$ne`
                conditions = {"$nin": [conditions["$ne"]]}
            plain = set(conditions) == {"$eq"}
            condition[self._names[name]] = conditions["$eq"] if plain else conditions
        return condition


def indexes(kind: type[Document]) -> list[list[str]]:
    """Return the fields of each index of a collection, ascending.

    No index is partial, because some compatible servers implement partial indexes incorrectly. The
    index of `MongoTrail.guard_numbers` is, after a check of the server.
    """
    field_lists = [[_BY]]
    if issubclass(kind, WorkDocument):
        field_lists += [["_work.due_ms", "_id"], ["_work.leased_until_ms", "_id"]]
    for index in kind.spec.indexes:
        equal = [name for name, wanted in index.where.items() if "$eq" in operators(wanted)]
        field_lists.append([*dict.fromkeys([*equal, *index.fields]), "_id"])
    return field_lists


def _work_of(row: Row) -> Mapping[str, Any]:
    work = row.get("_work")
    return work if isinstance(work, Mapping) else {}


def _is_part(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _flags(annotation: Any) -> bool:
    """Whether a field or its nested parts have booleans."""
    if _is_part(annotation):
        return any(_flags(field.annotation) for field in annotation.model_fields.values())
    return annotation is bool or any(map(_flags, get_args(annotation)))


def _with_flags(annotation: Any, value: Any) -> Any:
    """Convert 0 and 1 to booleans in boolean fields: some servers store no booleans."""
    if annotation is bool and isinstance(value, int) and value in {0, 1}:
        return bool(value)
    if _is_part(annotation) and isinstance(value, dict):
        fields = annotation.model_fields
        return {
            name: _with_flags(fields[name].annotation, entry) if name in fields else entry
            for name, entry in value.items()
        }
    for inner in get_args(annotation):
        if isinstance(value, list):
            value = [_with_flags(inner, entry) for entry in value]
        elif isinstance(value, dict) and not _is_part(inner):
            value = {name: _with_flags(inner, entry) for name, entry in value.items()}
        else:
            value = _with_flags(inner, value)
    return value


class MongoLog:
    """See `storage.log.RowLog`.

    Args:
        commands: The server's collection.
        key: The name of `_id` in rows.
    """

    def __init__(self, commands: Commands, key: str) -> None:
        self._commands, self.key = commands, key

    async def append(self, rows: Sequence[Row]) -> bool:
        return bool(await self._commands.insert_all([self._named(row) for row in rows]))

    async def read(
        self,
        where: Where,
        sort: Sequence[str],
        *,
        limit: int | None = None,
        names: Sequence[str] | None = None,
    ) -> Sequence[Row]:
        order = self._order(sort or [self.key])
        chosen = None if names is None else [*self._named(dict.fromkeys(names))]
        documents = await self._commands.find(self._named(where), order, limit, names=chosen)
        return [{**document, self.key: document["_id"]} for document in documents]

    async def count(self, where: Where) -> int:
        return await self._commands.count(self._named(where))

    async def change(
        self, where: Where, changes: Row, *, push: tuple[str, str] | None = None
    ) -> bool:
        gone = {name: "" for name, value in changes.items() if value is None}
        update: Update = {
            "$set": {name: value for name, value in changes.items() if value is not None},
            "$unset": gone,
            "$push": dict([push] if push is not None else []),
        }
        used = {operator: fields for operator, fields in update.items() if fields}
        return await self._commands.update(self._named(where), used)

    async def delete(self, where: Where, *, sort: Sequence[str] = (), limit: int) -> int:
        order = self._order(sort or [self.key])
        # MongoDB has no limit and no order for deletes, so the keys are read first.
        condition = self._named(where)
        keys = await self._commands.keys(condition, limit, order)
        return await self._commands.remove(keys, condition)

    def _named(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {"_id" if name == self.key else name: value for name, value in row.items()}

    def _order(self, sort: Sequence[str]) -> Sort:
        names = [(field.removeprefix("-"), -1 if field.startswith("-") else 1) for field in sort]
        return [("_id" if name == self.key else name, way) for name, way in names]
