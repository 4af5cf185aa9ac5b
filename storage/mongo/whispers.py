"""Private answers in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import WHISPERS
from storage.mongo import leases
from storage.mongo.commands import Commands
from storage.mongo.documents import to_document
from storage.records import Unreadable, Whisper


class MongoWhisperStore:
    """See `storage.ports.messages.WhisperStore`."""

    def __init__(self, collection: Commands) -> None:
        self._collection = collection

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        """Name what has something to be done and cannot be read."""
        return await leases.unreadable(self._collection, WHISPERS, limit=limit)

    async def count_unreadable(self, *, now_ms: int) -> int:
        """Count the due whispers that cannot be read."""
        return await leases.count_unreadable(self._collection, now_ms=now_ms)

    async def forget_marks(self) -> None:
        """Look again at what could not be read."""
        await leases.forget_marks(self._collection)

    async def add(self, whisper: Whisper) -> bool:
        return await self._collection.insert(to_document(WHISPERS, whisper))

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Whisper]:
        return await leases.find_due(self._collection, WHISPERS, now_ms=now_ms, limit=limit)

    async def claim(
        self, whisper_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Whisper | None:
        return await leases.claim(
            self._collection, WHISPERS, whisper_id, owner=owner, now_ms=now_ms, until_ms=until_ms
        )

    async def release(self, whisper_id: str, *, fence: int, due_ms: int | None) -> bool:
        holder = leases.held(whisper_id, fence)
        return await self._collection.update(holder, leases.given_back(due_ms))
