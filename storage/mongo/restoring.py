"""Tells whether a MongoDB database is a restored copy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from storage.mongo.commands import Commands

_NOTE = "collection"
"""The key of the document with the UUID of the original collection."""


class MongoCopyMarks:
    """See `storage.base.CopyMarks`.

    Args:
        notes: The collection of the document with the UUID.
        identity: Returns the server's UUID of the approvals' collection; empty if unknown. A
            restore creates the collection again, with another UUID.
    """

    def __init__(self, notes: Commands, identity: Callable[[], Awaitable[str]]) -> None:
        self._notes = notes
        self._identity = identity

    async def is_copy(self) -> bool:
        present = await self._identity()
        if not present:
            return False
        noted = await self._notes.find({"_id": _NOTE}, [("_id", 1)], 1)
        if not noted:
            await self._notes.insert({"_id": _NOTE, "collection": present})
        return any(one["collection"] != present for one in noted)

    async def end(self) -> None:
        present = await self._identity()
        if present and not await self._notes.insert({"_id": _NOTE, "collection": present}):
            await self._notes.update({"_id": _NOTE}, {"$set": {"collection": present}})
