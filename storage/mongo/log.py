"""Logs in MongoDB: one collection each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storage.documents import Where
from storage.log import Row
from storage.mongo.commands import Commands, Sort


class MongoLog:
    """See `storage.log.RowLog`.

    Args:
        commands: The server's collection.
        key: The name that rows have for `_id`.
    """

    def __init__(self, commands: Commands, key: str) -> None:
        self._commands, self.key = commands, key

    async def append(self, rows: Sequence[Row]) -> None:
        await self._commands.insert_all([self._named(row) for row in rows])

    async def read(
        self, where: Where, sort: Sequence[str], *, limit: int | None = None
    ) -> Sequence[Row]:
        found = await self._commands.find(self._named(where), self._order(sort), limit)
        return [{**document, self.key: document["_id"]} for document in found]

    async def count(self, where: Where) -> int:
        return await self._commands.count(self._named(where))

    async def change(self, where: Where, changes: Row) -> None:
        await self._commands.update(self._named(where), {"$set": dict(changes)})

    async def delete(self, where: Where, *, sort: Sequence[str] = (), limit: int) -> int:
        order = self._order(sort or [self.key])
        keys = await self._commands.keys(self._named(where), limit, order)
        return await self._commands.remove(keys)

    def _named(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {"_id" if name == self.key else name: value for name, value in row.items()}

    def _order(self, sort: Sequence[str]) -> Sort:
        names = [(one.removeprefix("-"), -1 if one.startswith("-") else 1) for one in sort]
        return [("_id" if name == self.key else name, way) for name, way in names]
