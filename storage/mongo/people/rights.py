"""Rights that people hand on, in MongoDB: delegations, absences, standing grants."""

from __future__ import annotations

from collections.abc import Sequence

from storage.codec import DELEGATIONS, GRANTS
from storage.errors import RecordNotFoundError
from storage.mongo.collection import Collection
from storage.mongo.documents import Filter, legible, put, to_document, to_record
from storage.records import DelegationRecord, Grant
from storage.uses import used


class MongoDelegationStore:
    """See `storage.ports.rights.DelegationStore`."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    async def add(self, delegation: DelegationRecord) -> bool:
        return await self._collection.insert(to_document(DELEGATIONS, delegation))

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        found = await self._collection.find(
            {"team_id": team_id, "until_ms": {"$gt": now_ms}, "ended_ms": None},
            [("created_ms", 1), ("_id", 1)],
        )
        return legible(DELEGATIONS, found)

    async def end(self, delegation_id: str, *, now_ms: int) -> bool:
        where = {"_id": delegation_id, "ended_ms": None}
        return await self._collection.update(where, {"$set": {"ended_ms": now_ms}})

    async def end_all(self, *, now_ms: int) -> int:
        return await _end_all(self._collection, now_ms)

    async def erase(self, *, before_ms: int, limit: int) -> int:
        keys = await self._collection.keys({"until_ms": {"$lt": before_ms}}, limit)
        return await self._collection.remove(keys)


_PAGE = 100


async def _end_all(collection: Collection, now_ms: int, **more: int) -> int:
    """End all rights of a collection that nobody has ended, page by page."""
    ended = 0
    while keys := await collection.patient.keys({"ended_ms": None}, _PAGE):
        wheres: list[Filter] = [{"_id": key} for key in keys]
        await collection.update_each(wheres, {"$set": {"ended_ms": now_ms, **more}})
        ended += len(keys)
    return ended


def _due(due_ms: int | None) -> dict[str, int]:
    """The change of a due time; no change when it is None."""
    return {} if due_ms is None else {"due_ms": due_ms}


class MongoGrantStore:
    """See `storage.ports.rights.GrantStore`."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    async def add(self, grant: Grant) -> bool:
        return await self._collection.insert(to_document(GRANTS, grant))

    async def get(self, grant_id: str) -> Grant:
        found = await self._collection.get(grant_id)
        if found is None:
            raise RecordNotFoundError("grant", grant_id)
        return to_record(GRANTS, found)

    async def current(self, thread_id: str, *, now_ms: int) -> Sequence[Grant]:
        found = await self._collection.find(
            {"thread_id": thread_id, "until_ms": {"$gt": now_ms}, "ended_ms": None},
            [("created_ms", 1), ("_id", 1)],
        )
        return legible(GRANTS, found)

    async def use(
        self, grant: Grant, *, call: str, now_ms: int, due_ms: int | None = None
    ) -> Grant | None:
        uses = used(grant, call)
        if uses is None:
            return None
        where: Filter = {
            "_id": grant.grant_id,
            "uses_json": grant.uses_json,
            "ended_ms": None,
            "until_ms": {"$gt": now_ms},
        }
        is_new = uses != grant.uses_json
        at = {"used_ms": now_ms} if is_new else {}
        changes = {"uses_json": uses, **at, **_due(due_ms)}
        changed = await self._collection.update_and_get(where, {"$set": changes})
        return None if changed is None else to_record(GRANTS, changed)

    async def end(
        self, grant_id: str, *, by: str, now_ms: int, due_ms: int | None = None
    ) -> Grant | None:
        changed = await self._collection.update_and_get(
            {"_id": grant_id, "ended_ms": None},
            {"$set": {"ended_ms": now_ms, "ended_by": by, **_due(due_ms)}},
        )
        return None if changed is None else to_record(GRANTS, changed)

    async def end_all(self, *, now_ms: int) -> int:
        return await _end_all(self._collection, now_ms, **_due(now_ms))

    async def mark_card(self, drawn: Grant, *, due_ms: int | None) -> None:
        card = {"card_ts": drawn.card_ts}
        changes = put({"$set": {**card}}, "due_ms", due_ms)
        as_drawn: Filter = {
            "_id": drawn.grant_id,
            "uses_json": drawn.uses_json,
            "ended_ms": drawn.ended_ms,
        }
        if not await self._collection.update(as_drawn, changes):
            await self._collection.update({"_id": drawn.grant_id}, {"$set": card})

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Grant]:
        where: Filter = {"due_ms": {"$lte": now_ms}}
        return legible(GRANTS, await self._collection.find(where, [("due_ms", 1)], limit=limit))

    async def take(self, grant: Grant, *, until_ms: int) -> bool:
        if grant.due_ms is None:
            return False  # to MongoDB, that would be whatever is not due
        where: Filter = {"_id": grant.grant_id, "due_ms": grant.due_ms}
        return await self._collection.update(where, {"$set": {"due_ms": until_ms}})
