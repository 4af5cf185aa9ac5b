"""The agents' message histories in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import stored_text
from storage.mongo.commands import Commands
from storage.records import SCHEMA_VERSION


class MongoMessageLog:
    """See `agents.core.checkpoint.MessageLog`."""

    def __init__(self, collection: Commands) -> None:
        self._collection = collection

    async def append(self, log_id: str, turn: int, data: str) -> None:
        await self._collection.insert(
            {
                "_id": f"{log_id}/{turn}",
                "v": SCHEMA_VERSION,
                "log_id": log_id,
                "turn": turn,
                "data": data,
            }
        )

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        where = {"log_id": log_id, "turn": {"$lt": before_turn}}
        found = await self._collection.find(where, [("turn", 1)])
        return [stored_text("log entry", log_id, document) for document in found]
