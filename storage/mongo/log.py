"""Logs in MongoDB: one collection each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storage.documents import Where
from storage.log import Row
from storage.mongo.commands import Commands, Sort, Update


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
        found = await self._commands.find(self._named(where), order, limit, names=chosen)
        return [{**document, self.key: document["_id"]} for document in found]

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
        names = [(one.removeprefix("-"), -1 if one.startswith("-") else 1) for one in sort]
        return [("_id" if name == self.key else name, way) for name, way in names]
