"""Threads in MongoDB."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import THREADS
from storage.errors import RecordNotFoundError
from storage.mongo import leases
from storage.mongo.commands import Commands
from storage.mongo.documents import Update, legible, to_document, to_record
from storage.records import Thread, Unreadable


class MongoThreadStore:
    """See `storage.ports.threads.ThreadStore`."""

    def __init__(self, collection: Commands) -> None:
        self._collection = collection

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        """Name what has something to be done and cannot be read."""
        return await leases.unreadable(self._collection, THREADS, limit=limit)

    async def count_unreadable(self, *, now_ms: int) -> int:
        """Count the due threads that cannot be read."""
        return await leases.count_unreadable(self._collection, now_ms=now_ms)

    async def forget_marks(self) -> None:
        """Look again at what could not be read."""
        await leases.forget_marks(self._collection)

    async def add(self, thread: Thread) -> bool:
        return await self._collection.insert(to_document(THREADS, thread))

    async def ensure(self, thread: Thread) -> Thread:
        if await self.add(thread):
            return thread
        return await self.get(thread.thread_id)

    async def get(self, thread_id: str) -> Thread:
        found = await self._collection.get(thread_id)
        if found is None:
            raise RecordNotFoundError("thread", thread_id)
        return to_record(THREADS, found)

    async def wake(self, thread_id: str, *, now_ms: int) -> None:
        update: Update = {"$set": {"due_ms": now_ms, "active_ms": now_ms}, "$inc": {"wakes": 1}}
        if not await self._collection.update({"_id": thread_id}, update):
            raise RecordNotFoundError("thread", thread_id)

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Thread]:
        return await leases.find_due(self._collection, THREADS, now_ms=now_ms, limit=limit)

    async def count_due(self, *, now_ms: int) -> int:
        return await leases.count_due(self._collection, now_ms=now_ms)

    async def running(
        self, team_id: str, requester_id: str, *, now_ms: int, limit: int
    ) -> Sequence[Thread]:
        where = {
            "due_ms": {"$gte": 0},  # what is leased is due at its end: the index has few of these
            "leased_until_ms": {"$gt": now_ms},
            "turn_open": True,
            "team_id": team_id,
            "requester_id": requester_id,
        }
        found = await self._collection.find(where, [("created_ms", -1), ("_id", 1)], limit)
        return legible(THREADS, found)

    async def claim(
        self, thread_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Thread | None:
        return await leases.claim(
            self._collection, THREADS, thread_id, owner=owner, now_ms=now_ms, until_ms=until_ms
        )

    async def set_aside(self, thread_id: str, *, fence: int, why: str) -> bool:
        holder = leases.held(thread_id, fence)
        update = leases.set_aside(why)
        update["$set"]["clean_fence"] = fence
        return await self._collection.update(holder, update)

    async def extend(self, thread_id: str, *, fence: int, until_ms: int) -> bool:
        changes = {"leased_until_ms": until_ms, "due_ms": until_ms}
        return await self._collection.update(leases.held(thread_id, fence), {"$set": changes})

    async def count_crash(self, thread_id: str, *, fence: int) -> bool:
        held = leases.held(thread_id, fence)
        return await self._collection.update(held, {"$inc": {"crashes": 1}})

    async def set_turn(
        self,
        thread_id: str,
        *,
        fence: int,
        turn: int,
        turn_open: bool,
        requesters_json: str | None = None,
    ) -> bool:
        changes: dict[str, object] = {"turn": turn, "turn_open": turn_open}
        if requesters_json is not None:
            changes["requesters_json"] = requesters_json
        return await self._collection.update(leases.held(thread_id, fence), {"$set": changes})

    async def set_requesters(self, thread_id: str, *, fence: int, requesters_json: str) -> bool:
        changes = {"requesters_json": requesters_json}
        return await self._collection.update(leases.held(thread_id, fence), {"$set": changes})

    async def release(
        self,
        thread_id: str,
        *,
        fence: int,
        wakes: int,
        now_ms: int,
        retry_ms: int | None = None,
        ends_turn: bool = False,
    ) -> bool:
        holder = leases.held(thread_id, fence)
        seen = {**holder, "wakes": wakes}
        if await self._give_back(seen, retry_ms, retry_ms, ends_turn=ends_turn):
            return retry_ms is None or retry_ms > now_ms
        await self._give_back(holder, now_ms, retry_ms, ends_turn=ends_turn)
        return False

    async def _give_back(
        self, where: dict[str, object], due: int | None, retry: int | None, *, ends_turn: bool
    ) -> bool:
        update = leases.given_back(due)
        update["$set"].update({"clean_fence": where["fence"], "crashes": 0})
        if ends_turn:
            update["$set"]["turn_open"] = False
        if retry is None:
            update["$set"]["attempts"] = 0
        else:
            update["$inc"] = {"attempts": 1}
        return await self._collection.update(where, update)
