"""Threads, and the right to work on one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from storage.documents import Collection, Document, Index, Spec
from storage.errors import RecordFormatError
from storage.flat import FlatRecords, flat_document
from storage.records.threads import Thread

ThreadDocument = flat_document(
    Thread,
    Spec(
        name="threads",
        noun="thread",
        key="thread_id",
        indexes=(
            Index(("active_ms", "id")),
            Index(("id",), {"turn_open": True}),
        ),
        content=frozenset(
            {"team_id", "channel_id", "thread_ts", "requester_id", "created_ms", "agent"}
        ),
    ),
    {"requesters_json": [str]},
)


class ThreadRecords:
    """See `storage.ports.threads.ThreadStore`."""

    def __init__(self, collection: Collection[Document]) -> None:
        self._threads = FlatRecords(collection, Thread)
        self._collection = collection

    async def add(self, thread: Thread) -> bool:
        return bool(await self._threads.insert(thread))

    async def ensure(self, thread: Thread) -> Thread:
        return thread if await self.add(thread) else await self.get(thread.thread_id)

    async def get(self, thread_id: str) -> Thread:
        return await self._threads.get(thread_id)

    async def wake(self, thread_id: str, *, now_ms: int) -> None:
        def wake(one: Thread) -> Thread:
            return replace(one, active_ms=now_ms, wakes=one.wakes + 1, due_ms=now_ms)

        with suppress(RecordFormatError):  # quarantined: what waits in it is found when it is read
            await self._threads.change(thread_id, wake, writes_due=True)

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Thread]:
        return await self._threads.due(now_ms=now_ms, limit=limit)

    async def count_due(self, *, now_ms: int) -> int:
        return await self._collection.count(
            {"due_ms": {"$lte": now_ms}, "leased_until_ms": {"$lte": now_ms}}
        )

    async def running(
        self, team_id: str, requester_id: str, *, now_ms: int, limit: int
    ) -> Sequence[Thread]:
        found = (await self._threads.find({"leased_until_ms": {"$gt": now_ms}})).records
        theirs = [
            one
            for one in found
            if one.turn_open and (one.team_id, one.requester_id) == (team_id, requester_id)
        ]
        return sorted(theirs, key=lambda one: -one.created_ms)[: max(limit, 0)]

    async def claim(
        self, thread_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Thread | None:
        return await self._threads.claim(thread_id, owner=owner, now_ms=now_ms, until_ms=until_ms)

    async def set_aside(self, thread_id: str, *, fence: int, why: str) -> bool:
        if not await self._held(thread_id, fence, clean_fence=fence):
            return False
        return await self._collection.quarantine(thread_id, why=why, fence=fence)

    async def extend(self, thread_id: str, *, fence: int, until_ms: int) -> bool:
        return await self._collection.extend(thread_id, fence=fence, until_ms=until_ms)

    async def count_crash(self, thread_id: str, *, fence: int) -> bool:
        def count(one: Thread) -> Thread:
            return replace(one, crashes=one.crashes + 1)

        return await self._threads.changed(thread_id, count, fence=fence) is not None

    async def set_turn(
        self,
        thread_id: str,
        *,
        fence: int,
        turn: int,
        turn_open: bool,
        requesters_json: str | None = None,
    ) -> bool:
        changes: dict[str, Any] = {"turn": turn, "turn_open": turn_open}
        if requesters_json is not None:
            changes["requesters_json"] = requesters_json
        return await self._held(thread_id, fence, **changes)

    async def set_requesters(self, thread_id: str, *, fence: int, requesters_json: str) -> bool:
        return await self._held(thread_id, fence, requesters_json=requesters_json)

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
        def release(one: Thread) -> Thread:
            return replace(
                one,
                clean_fence=fence,
                crashes=0,
                due_ms=retry_ms if one.wakes == wakes else now_ms,
                attempts=0 if retry_ms is None else one.attempts + 1,
                turn_open=one.turn_open and not ends_turn,
            )

        stored = await self._threads.changed(
            thread_id, release, fence=fence, writes_due=True, releases=True
        )
        return stored is not None and (stored.due_ms is None or stored.due_ms > now_ms)

    async def _held(self, thread_id: str, fence: int, **changes: Any) -> bool:
        """Change some fields under the lease; False when it was lost."""
        stored = await self._threads.changed(
            thread_id, lambda one: replace(one, **changes), fence=fence
        )
        return stored is not None
