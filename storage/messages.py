"""Messages: what people write, what agents say, and what one person is told privately."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from storage.documents import Collection, Document, Index, Spec
from storage.errors import RecordNotFoundError
from storage.flat import FlatRecords, flat_document
from storage.records.threads import Message, MessageStatus, Post, Whisper

MessageDocument = flat_document(
    Message,
    Spec(
        name="messages",
        noun="message",
        key="message_id",
        indexes=(Index(("thread_id", "turn", "ts")), Index(("received_ms",))),
        content=frozenset({"thread_id", "ts", "user_id", "received_ms"}),
    ),
)
PostDocument = flat_document(
    Post,
    Spec(
        name="posts",
        noun="post",
        key="post_id",
        indexes=(
            Index(("thread_id", "created_ms"), {"posted": False, "failure": ""}),
            Index(("thread_id",)),
        ),
    ),
)
WhisperDocument = flat_document(
    Whisper,
    Spec(
        name="whispers",
        noun="whisper",
        key="whisper_id",
        indexes=(Index(("channel_id", "thread_ts")), Index(("created_ms",))),
    ),
    {"withdraw_json": [str], "decide_json": [str]},
)


class InboxRecords:
    """See `storage.ports.messages.InboxStore`."""

    def __init__(self, collection: Collection[Document]) -> None:
        self._messages = FlatRecords(collection, Message)

    async def add(self, message: Message) -> bool:
        return bool(await self._messages.insert(message))

    async def new(self, thread_id: str, *, limit: int) -> Sequence[Message]:
        return await self._of(thread_id, 0, limit)

    async def of_turn(self, thread_id: str, turn: int) -> Sequence[Message]:
        return await self._of(thread_id, turn, None)

    async def take(self, message_ids: Sequence[str], *, turn: int) -> Sequence[Message]:
        def take(one: Message) -> Message | None:
            is_free = one.turn in {0, turn}
            return replace(one, status=MessageStatus.TAKEN, turn=turn) if is_free else None

        found = await asyncio.gather(*(self._messages.changed(key, take) for key in message_ids))
        return sorted((one for one in found if one is not None), key=lambda one: one.ts)

    async def revise(self, message_id: str, text: str) -> Message | None:
        def revise(one: Message) -> Message | None:
            return replace(one, text=text) if one.status is MessageStatus.NEW else None

        try:
            changed = await self._messages.change(message_id, revise)
            return changed or await self._messages.get(message_id)
        except RecordNotFoundError:
            return None

    async def _of(self, thread_id: str, turn: int, limit: int | None) -> list[Message]:
        where = {"thread_id": thread_id, "turn": turn}  # 0 while no turn has taken it
        page = await self._messages.find(where, sort=["ts"], limit=limit, strict=True)
        return page.records


class PostRecords:
    """See `storage.ports.messages.PostStore`."""

    def __init__(self, collection: Collection[Document]) -> None:
        self._posts = FlatRecords(collection, Post)

    async def add(self, post: Post) -> bool:
        return bool(await self._posts.insert(post))

    async def add_or_get(self, post: Post) -> Post | None:
        return None if await self.add(post) else await self._posts.get(post.post_id)

    async def get(self, post_id: str) -> Post | None:
        try:
            return await self._posts.get(post_id)
        except RecordNotFoundError:
            return None

    async def begin(self, post_id: str, *, ts: str) -> None:
        await self._posts.changed(post_id, lambda one: replace(one, ts=ts))

    async def finish(self, post_id: str, *, ts: str, text: str | None = None) -> None:
        def finish(one: Post) -> Post:
            return replace(one, ts=ts, posted=True, text=one.text if text is None else text)

        await self._posts.changed(post_id, finish)

    async def fail(self, post_id: str, *, reason: str) -> None:
        await self._posts.changed(post_id, lambda one: replace(one, failure=reason))

    async def unfinished(self, thread_id: str) -> Sequence[Post]:
        where = {"thread_id": thread_id, "posted": False, "failure": ""}
        return (await self._posts.find(where, sort=["created_ms"])).records

    async def any_of(self, checkpoint_id: str) -> bool:
        # A semicolon comes right after the colon: all ids that begin with it lie in between.
        ids = {"$gte": f"{checkpoint_id}:", "$lt": f"{checkpoint_id};"}
        thread_id = checkpoint_id.rpartition("#")[0]
        page = await self._posts.find({"thread_id": thread_id, "id": ids}, limit=1)
        return bool(page.records)


class WhisperRecords:
    """See `storage.ports.messages.WhisperStore`."""

    def __init__(self, collection: Collection[Document]) -> None:
        self._whispers = FlatRecords(collection, Whisper)

    async def add(self, whisper: Whisper) -> bool:
        return bool(await self._whispers.insert(whisper))

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Whisper]:
        return await self._whispers.due(now_ms=now_ms, limit=limit)

    async def claim(
        self, whisper_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Whisper | None:
        return await self._whispers.claim(whisper_id, owner=owner, now_ms=now_ms, until_ms=until_ms)

    async def release(self, whisper_id: str, *, fence: int, due_ms: int | None) -> bool:
        collection = self._whispers.collection
        return await collection.release(whisper_id, fence=fence, due_ms=due_ms)
