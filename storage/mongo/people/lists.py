"""Lists that people are shown, in MongoDB."""

from __future__ import annotations

import re
from collections.abc import Sequence

from storage.codec import APPROVALS, GRANTS
from storage.mongo.collection import Collection
from storage.mongo.documents import Filter, legible
from storage.records import Approval, Grant, Kind, Status
from storage.uses import is_used_up

_ENDED: Filter = {"$ne": Status.PENDING.value}


class MongoListStore:
    """See `storage.ports.lists.ListStore`.

    Args:
        approvals: The collection of approvals.
        grants: The collection of standing grants.
    """

    def __init__(self, approvals: Collection, grants: Collection) -> None:
        self._approvals = approvals
        self._grants = grants

    async def waiting(
        self, *, now_ms: int, limit: int, after: tuple[int, str] = (0, "")
    ) -> Sequence[Approval]:
        expires_ms, approval_id = after
        is_pending: Filter = {"status": Status.PENDING.value}
        same: Filter = {**is_pending, "expires_ms": expires_ms, "_id": {"$gt": approval_id}}
        later: Filter = {**is_pending, "expires_ms": {"$gt": max(expires_ms, now_ms)}}
        order = [("expires_ms", 1), ("_id", 1)]
        found = []
        if expires_ms > now_ms:
            found += await self._approvals.find(same, order, limit)
        found += await self._approvals.find(later, order, limit - len(found))
        return legible(APPROVALS, found)

    async def ended_of(self, user_id: str, *, limit: int) -> Sequence[Approval]:
        found = {}
        for name in ("decided_by", "requester_id"):
            where: Filter = {name: user_id, "status": _ENDED}
            for document in await self._approvals.find(where, [("created_ms", -1)], limit):
                found[document["_id"]] = document
        read = legible(APPROVALS, [*found.values()])
        return sorted(read, key=lambda one: (one.created_ms, one.approval_id), reverse=True)[:limit]

    async def named(self, prefix: str, *, limit: int) -> Sequence[Approval]:
        where: Filter = {"_id": {"$regex": f"^{re.escape(prefix)}"}}
        return legible(APPROVALS, await self._approvals.find(where, [("_id", 1)], limit))

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
        return legible(APPROVALS, await self._approvals.find(where, order, limit))

    async def grants(self, team_id: str, *, now_ms: int, limit: int) -> Sequence[Grant]:
        where: Filter = {"team_id": team_id, "until_ms": {"$gt": now_ms}, "ended_ms": None}
        found = legible(GRANTS, await self._grants.find(where, [("until_ms", 1)], limit))
        lasting = [one for one in found if not is_used_up(one)]
        return sorted(lasting, key=lambda one: (one.created_ms, one.grant_id))
