"""Collections in MongoDB: the fields of the body at the top, the engine's under `_work`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic

from storage.documents import (
    MAX_REASON,
    WORK_FIELDS,
    D,
    Document,
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
from storage.mongo.commands import Commands, Sort
from storage.mongo.documents import Update

_PAGE = 500

_BESIDE = frozenset({"_id", "v", "revision", "_work"})
"""Fields of a stored document that are no part of its body."""

_BY = "_work.quarantined_by"

_NO_MARK = {_BY: "", "_work.quarantine_reason": ""}

_NO_LEASE = {"_work.leased_by": "", "_work.leased_until_ms": 0}


class MongoCollection(Generic[D]):
    """See `storage.documents.Collection`.

    Args:
        commands: The server's collection.
        kind: The class of the documents.
    """

    def __init__(self, commands: Commands, kind: type[D]) -> None:
        self.kind = kind
        self._commands = commands
        self._is_work = issubclass(kind, WorkDocument)
        self._names = {name: name for name in indexed(kind)} | {"id": "_id"}
        self._flags = {name for name, one in kind.model_fields.items() if one.annotation is bool}
        if self._is_work:
            self._names |= {name: f"_work.{name}" for name in WORK_FIELDS}

    async def get(self, key: str) -> D:
        found = await self._commands.get(key)
        if found is None:
            raise RecordNotFoundError(self.kind.spec.noun, key)
        return self._parse(found)

    async def insert(self, *documents: D) -> frozenset[str]:
        return await self._commands.insert_all([self._stored(one) for one in documents])

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
        was, body = self._body(based_on), self._body(new)
        changes = {name: value for name, value in body.items() if was.get(name) != value}
        changes |= {"revision": new.revision, "v": self.kind.spec.version}
        gone = dict.fromkeys(was.keys() - body.keys(), "")
        if writes_due or due_of(new) != due_of(based_on):
            _put(changes, gone, "_work.due_ms", due_of(new))
        if releases:
            changes |= _NO_LEASE
        where: dict[str, Any] = {"_id": new.key, "revision": based_on.revision}
        where["v"] = self.kind.spec.version
        if fence is not None:
            where |= _held(fence)
        update = {"$set": changes} | ({"$unset": gone} if gone else {})
        if not await self._commands.update(where, update):
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
    ) -> list[dict[str, Any]]:
        condition = self._where(where)
        if not strict:
            condition[_BY] = {"$nin": [reader_of(self.kind)]}
        order: Sort = [(self._name(name), -1 if is_down else 1) for name in names]
        found: list[dict[str, Any]] = []
        for more in self._ranges(names, after, is_down=is_down):
            if len(found) < limit:
                where_next = _both(condition, more)
                found += await self._commands.find(where_next, order, limit - len(found))
        return found

    def _ranges(
        self, names: Sequence[str], after: Place | None, *, is_down: bool
    ) -> list[dict[str, Any]]:
        """The conditions of what comes after a place, the nearest first; no server needs `$or`."""
        if after is None:
            return [{}]
        operator = "$lt" if is_down else "$gt"
        ranges = []
        for number in reversed(range(len(names))):
            same = {self._name(names[one]): after[one] for one in range(number)}
            ranges.append({**same, self._name(names[number]): {operator: after[number]}})
        return ranges

    async def places(
        self, where: Where, *, sort: Sequence[str] = (), limit: int, after: Place | None = None
    ) -> list[Place]:
        names, is_down = sorting(sort)
        rows = await self._page(where, names, limit, after, is_down=is_down, strict=True)
        places = [self._place(row, names) for row in rows]
        return [one for one in places if one is not None]

    async def count(self, where: Where, *, with_quarantined: bool = False) -> int:
        condition = self._where(where)
        if not with_quarantined:
            condition[_BY] = {"$nin": [reader_of(self.kind)]}
        return await self._commands.count(condition)

    async def delete(self, where: Where, *, limit: int) -> int:
        keys = await self._commands.keys(self._where(where), limit)
        return await self._commands.remove(keys)

    async def due(self, *, now_ms: int, limit: int) -> Sequence[D]:
        order: Sort = [("_work.due_ms", 1), ("_id", 1)]
        found: list[D] = []
        while len(found) < limit:
            rows = await self._commands.find(self._is_due(now_ms), order, limit)
            found = await self._read(rows)
            if len(found) == len(rows):
                break
        return found

    async def claim(self, key: str, *, owner: str, now_ms: int, until_ms: int) -> D | None:
        lease = {
            "_work.leased_by": owner,
            "_work.leased_until_ms": until_ms,
            "_work.due_ms": until_ms,
        }
        found = await self._commands.update_and_get(
            {"_id": key, **self._is_due(now_ms)},
            {"$set": lease, "$inc": {"_work.fence": 1}, "$unset": _NO_MARK},
        )
        return None if found is None else next(iter(await self._read([found])), None)

    async def release(self, key: str, *, fence: int, due_ms: int | None) -> bool:
        changes: dict[str, Any] = {**_NO_LEASE}
        gone: dict[str, Any] = {}
        _put(changes, gone, "_work.due_ms", due_ms)
        update = {"$set": changes} | ({"$unset": gone} if gone else {})
        return await self._commands.update({"_id": key, **_held(fence)}, update)

    async def seal(
        self, key: str, where: Where, *, owner: str, now_ms: int, until_ms: int
    ) -> int | None:
        at_rest = {
            **self._where(where),
            "_id": key,
            "_work.due_ms": None,
            "_work.leased_until_ms": {"$lte": now_ms},
        }
        lease = {"_work.leased_by": owner, "_work.leased_until_ms": until_ms}
        update: Update = {"$set": lease, "$inc": {"_work.fence": 1}}
        found = await self._commands.update_and_get(at_rest, update)
        return None if found is None else int(found["_work"]["fence"])

    async def unseal(self, key: str, *, fence: int) -> None:
        await self._commands.update({"_id": key, **_held(fence)}, {"$set": _NO_LEASE})

    async def extend(self, key: str, *, fence: int, until_ms: int) -> bool:
        changes = {"_work.leased_until_ms": until_ms}
        return await self._commands.update({"_id": key, **_held(fence)}, {"$set": changes})

    async def quarantine(self, key: str, *, fence: int, why: str) -> bool:
        mark = {_BY: reader_of(self.kind), "_work.quarantine_reason": why[:MAX_REASON]}
        where = {"_id": key, **_held(fence)}
        return await self._commands.update(where, {"$set": {**_NO_LEASE, **mark}})

    async def quarantined(self, *, limit: int) -> Sequence[Unreadable]:
        where = {_BY: reader_of(self.kind)}
        rows = await self._commands.find(where, [("_id", 1)], limit, names=["_work"])
        noun = self.kind.spec.noun
        return [
            Unreadable(
                kind=noun,
                record_id=str(row["_id"]),
                why=str(_work_of(row).get("quarantine_reason", "")),
            )
            for row in rows
        ]

    async def count_quarantined(self) -> int:
        return await self._commands.count({_BY: reader_of(self.kind)})

    async def recheck(self) -> None:
        await self._commands.update_all({_BY: reader_of(self.kind)}, {"$unset": _NO_MARK})

    async def _read(self, rows: Iterable[dict[str, Any]], *, strict: bool = False) -> list[D]:
        found: list[D] = []
        for row in rows:
            try:
                found.append(self._parse(row))
            except RecordFormatError as error:
                if strict:
                    raise
                await self._quarantine(row["_id"], error)
        return found

    async def _quarantine(self, key: str, error: RecordFormatError) -> None:
        changes: dict[str, Any] = {
            _BY: reader_of(self.kind),
            "_work.quarantine_reason": told_reason(error),
        }
        if self._is_work:
            changes |= _NO_LEASE
        with suppressed():
            await self._commands.update({"_id": key}, {"$set": changes})

    def _is_due(self, now_ms: int) -> dict[str, Any]:
        return {
            "_work.due_ms": {"$lte": now_ms},
            "_work.leased_until_ms": {"$lte": now_ms},
            _BY: {"$nin": [reader_of(self.kind)]},
        }

    def _body(self, document: D) -> dict[str, Any]:
        return {name: value for name, value in body_of(document).items() if name != self._key}

    @property
    def _key(self) -> str:
        return self.kind.spec.key

    def _stored(self, document: D) -> dict[str, Any]:
        row = {
            "_id": document.key,
            "v": self.kind.spec.version,
            "revision": document.revision,
            **self._body(document),
        }
        if isinstance(document, WorkDocument):
            work = {name: getattr(document, name) for name in sorted(WORK_FIELDS)}
            row["_work"] = {name: value for name, value in work.items() if value is not None}
        return row

    def _parse(self, row: Mapping[str, Any]) -> D:
        body = {name: value for name, value in row.items() if name not in _BESIDE}
        for name in self._flags & body.keys():
            if body[name] in {0, 1}:  # some servers have no booleans
                body[name] = bool(body[name])
        key = str(row["_id"])
        try:
            text = json.dumps({**body, self._key: row["_id"]}, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            text = ""  # it holds what is no JSON data
        work = _work_of(row)
        columns = {name: work.get(name) for name in WORK_FIELDS} if self._is_work else {}
        columns["revision"] = row.get("revision")
        return read_document(self.kind, text, version=row.get("v"), key=key, columns=columns)

    def _name(self, name: str) -> str:
        return self._names[name]

    def _where(self, where: Where) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, wanted in where.items():
            conditions = operators(wanted)
            plain = set(conditions) == {"$eq"}
            found[self._name(name)] = conditions["$eq"] if plain else dict(conditions)
        return found

    def _place(self, row: Mapping[str, Any], names: Sequence[str]) -> Place | None:
        place: list[object] = []
        for name in names:
            value: Any = row
            for part in self._name(name).split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            if value is None:
                return None
            place.append(value)
        return tuple(place)


def indexes(kind: type[Document]) -> list[list[str]]:
    """The fields of each index of a collection, ascending.

    MongoDB would do without those of one field that begin another one; compatible servers that
    ignore those of several fields would read the whole collection. Conditions of an index, and the
    key in it, are left out: some of these servers have them wrong.
    """
    is_work = issubclass(kind, WorkDocument)
    found: list[list[str]] = [[_BY]]
    if is_work:
        found += [["_work.due_ms"], ["_work.leased_until_ms"]]
    for index in kind.spec.indexes:
        fields = [name for name in index.fields if name != "id"]
        found += [each for each in (fields[:1], fields) if each and each not in found]
    return found


def _held(fence: int) -> dict[str, Any]:
    return {"_work.fence": fence, "_work.leased_until_ms": {"$gt": 0}}


def _put(changes: dict[str, Any], gone: dict[str, Any], name: str, value: object) -> None:
    if value is None:
        gone[name] = ""
    else:
        changes[name] = value


def _work_of(row: Mapping[str, Any]) -> dict[str, Any]:
    work = row.get("_work")
    return dict(work) if isinstance(work, Mapping) else {}


def _both(condition: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """The condition of documents that meet both."""
    if condition.keys() & more.keys():
        return {"$and": [condition, more]}
    return {**condition, **more}
