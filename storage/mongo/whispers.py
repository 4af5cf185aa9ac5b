"""Private answers in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import WHISPERS
from storage.mongo import leases
from storage.mongo.collection import Collection
from storage.mongo.documents import to_document, to_record
from storage.records import Whisper


class MongoWhisperStore:
    """See `storage.base.WhisperStore`."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    async def add(self, whisper: Whisper) -> bool:
        return await self._collection.insert(to_document(WHISPERS, whisper))

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Whisper]:
        found = await leases.find_due(self._collection, now_ms=now_ms, limit=limit)
        return [to_record(WHISPERS, document) for document in found]

    async def claim(
        self, whisper_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Whisper | None:
        document = await leases.claim(
            self._collection, whisper_id, owner=owner, now_ms=now_ms, until_ms=until_ms
        )
        return None if document is None else to_record(WHISPERS, document)

    async def release(self, whisper_id: str, *, fence: int, due_ms: int | None) -> bool:
        holder = leases.held(whisper_id, fence)
        return await self._collection.update(holder, leases.given_back(due_ms))
