"""People's messages in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import MESSAGES
from storage.mongo.commands import Commands
from storage.mongo.documents import Filter, Update, to_document, to_record
from storage.records import Message, MessageStatus


class MongoInboxStore:
    """See `storage.ports.messages.InboxStore`."""

    def __init__(self, collection: Commands) -> None:
        self._collection = collection

    async def add(self, message: Message) -> bool:
        return await self._collection.insert(to_document(MESSAGES, message))

    async def new(self, thread_id: str, *, limit: int) -> Sequence[Message]:
        return await self._find(thread_id, 0, MessageStatus.NEW, limit)

    async def take(self, message_ids: Sequence[str], *, turn: int) -> Sequence[Message]:
        # A message that no turn took has the turn 0.
        wheres: list[Filter] = [{"_id": key, "turn": {"$in": [0, turn]}} for key in message_ids]
        update: Update = {"$set": {"status": MessageStatus.TAKEN.value, "turn": turn}}
        if len(wheres) == 1:
            taken = await self._collection.update_and_get(wheres[0], update)
            return [] if taken is None else [to_record(MESSAGES, taken)]
        await self._collection.update_each(wheres, update)
        there: Filter = {"_id": {"$in": list(message_ids)}, "turn": turn}
        found = await self._collection.find(there, [("ts", 1)]) if wheres else []
        return [to_record(MESSAGES, document) for document in found]

    async def revise(self, message_id: str, text: str) -> Message | None:
        where: Filter = {"_id": message_id, "status": MessageStatus.NEW.value}
        found = await self._collection.update_and_get(where, {"$set": {"text": text}})
        found = found or await self._collection.get(message_id)
        return None if found is None else to_record(MESSAGES, found)

    async def of_turn(self, thread_id: str, turn: int) -> Sequence[Message]:
        return await self._find(thread_id, turn, MessageStatus.TAKEN, None)

    async def _find(
        self, thread_id: str, turn: int, status: MessageStatus, limit: int | None
    ) -> list[Message]:
        # A message that no turn took has the turn 0: one index serves both reads.
        where = {"thread_id": thread_id, "turn": turn, "status": status.value}
        found = await self._collection.find(where, [("ts", 1)], limit)
        return [to_record(MESSAGES, document) for document in found]
