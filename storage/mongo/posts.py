"""The agents' texts in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import POSTS
from storage.mongo import leases
from storage.mongo.commands import Commands
from storage.mongo.documents import to_document, to_record
from storage.records import Post, Unreadable


class MongoPostStore:
    """See `storage.ports.messages.PostStore`."""

    def __init__(self, collection: Commands) -> None:
        self._collection = collection

    async def add(self, post: Post) -> bool:
        return await self._collection.insert(to_document(POSTS, post))

    async def add_or_get(self, post: Post) -> Post | None:
        return None if await self.add(post) else await self.get(post.post_id)

    async def get(self, post_id: str) -> Post | None:
        found = await self._collection.get(post_id)
        return None if found is None else to_record(POSTS, found)

    async def begin(self, post_id: str, *, ts: str) -> None:
        await self._collection.update({"_id": post_id}, {"$set": {"ts": ts}})

    async def finish(self, post_id: str, *, ts: str, text: str | None = None) -> None:
        changes: dict[str, object] = {"ts": ts, "posted": True}
        if text is not None:
            changes["text"] = text
        await self._collection.update({"_id": post_id}, {"$set": changes})

    async def fail(self, post_id: str, *, reason: str) -> None:
        await self._collection.update({"_id": post_id}, {"$set": {"failure": reason}})

    async def unfinished(self, thread_id: str) -> Sequence[Post]:
        found = await self._collection.find(
            {"thread_id": thread_id, "posted": False, "failure": ""},
            [("created_ms", 1), ("_id", 1)],
        )
        return await leases.readable(self._collection, POSTS, found)

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        """Name what is marked, and cannot be read."""
        return await leases.marked(self._collection, POSTS, limit=limit)

    async def any_of(self, checkpoint_id: str) -> bool:
        # Found by their thread: some servers read every document for a range of ids.
        where = {"thread_id": checkpoint_id.rpartition("#")[0]}
        found = await self._collection.find(where, [("created_ms", -1)], names=["_id"])
        return any(document["_id"].startswith(f"{checkpoint_id}:") for document in found)
