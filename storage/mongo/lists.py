"""Lists that people are shown, in MongoDB."""

from __future__ import annotations

import re
from collections.abc import Sequence

from storage.codec import APPROVALS
from storage.mongo.commands import Commands, Sort
from storage.mongo.documents import Document, Filter, legible
from storage.pages import end_of, filled
from storage.ports.lists import START, Place
from storage.records import Approval, Kind, Status

_ENDED: Filter = {"$ne": Status.PENDING.value}


class MongoListStore:
    """See `storage.ports.lists.ListStore`.

    Args:
        approvals: The collection of approvals.
    """

    def __init__(self, approvals: Commands) -> None:
        self._approvals = approvals

    async def waiting(
        self, *, now_ms: int, limit: int, after: Place = START
    ) -> tuple[Sequence[Approval], Place | None]:
        return await self._page({}, now_ms, limit, after)

    async def asked_by(
        self, user_id: str, *, now_ms: int, limit: int, after: Place = START
    ) -> tuple[Sequence[Approval], Place | None]:
        return await self._page({"requester_id": user_id}, now_ms, limit, after)

    async def _page(
        self, where: Filter, now_ms: int, limit: int, after: Place
    ) -> tuple[Sequence[Approval], Place | None]:
        expires_ms, approval_id = after
        is_pending: Filter = {**where, "status": Status.PENDING.value}
        same: Filter = {**is_pending, "expires_ms": expires_ms, "_id": {"$gt": approval_id}}
        later: Filter = {**is_pending, "expires_ms": {"$gt": max(expires_ms, now_ms)}}
        order = [("expires_ms", 1), ("_id", 1)]
        found: list[Document] = []
        if expires_ms > now_ms:
            found += await self._approvals.find(same, order, limit)
        found += await self._approvals.find(later, order, limit - len(found))
        return legible(APPROVALS, found), end_of(found, "_id", limit=limit)

    async def ended_of(self, user_id: str, *, limit: int) -> Sequence[Approval]:
        found: dict[str, Approval] = {}
        for name in ("decided_by", "requester_id"):
            where: Filter = {name: user_id, "status": _ENDED}
            for one in await self._filled(where, [("created_ms", -1)], limit):
                found[one.approval_id] = one
        newest_first = sorted(
            found.values(), key=lambda one: (one.created_ms, one.approval_id), reverse=True
        )
        return newest_first[: max(limit, 0)]

    async def named(self, prefix: str, *, limit: int) -> Sequence[Approval]:
        where: Filter = {"_id": {"$regex": f"^{re.escape(prefix)}"}}
        return await self._filled(where, [("_id", 1)], limit)

    async def calls_of(
        self, thread_id: str, *, tool: str, since_ms: int, limit: int
    ) -> Sequence[Approval]:
        where: Filter = {
            "thread_id": thread_id,
            "created_ms": {"$gte": since_ms},
            "tool": tool,
            "kind": Kind.APPROVAL.value,
        }
        order = [("created_ms", -1), ("position", -1)]
        return await self._filled(where, order, limit)

    async def _filled(self, where: Filter, order: Sort, limit: int) -> Sequence[Approval]:
        async def read(rows: int) -> tuple[Sequence[Approval], int]:
            found = await self._approvals.find(where, order, rows)
            return legible(APPROVALS, found), len(found)

        return await filled(limit, read)
