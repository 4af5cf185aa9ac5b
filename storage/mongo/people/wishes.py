"""Single people, in MongoDB: their wishes about messages, and what they were sent."""

from __future__ import annotations

from collections.abc import Collection as Names, Mapping, Sequence
from dataclasses import replace

from storage.codec import PEOPLE
from storage.mongo.collection import Collection
from storage.mongo.documents import Filter, Update, legible, put, to_document
from storage.records import PersonRecord


class MongoPeopleStore:
    """See `storage.ports.people.PeopleStore`."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    async def of(self, team_id: str, user_ids: Names[str]) -> Mapping[str, PersonRecord]:
        keys = [f"{team_id}:{name}" for name in sorted(user_ids)]
        found = await self._collection.find({"_id": {"$in": keys}}, [("_id", 1)])
        return {one.user_id: one for one in legible(PEOPLE, found)}

    async def wishing(self, team_id: str) -> Sequence[PersonRecord]:
        wishes: list[Filter] = [{"quiet_from": {"$gt": ""}}, {"has_copies": True}]
        where: Filter = {"team_id": team_id, "$or": wishes}
        return legible(PEOPLE, await self._collection.find(where, [("_id", 1)]))

    async def put(self, changed: PersonRecord) -> bool:
        stored = replace(changed, revision=changed.revision + 1)
        if changed.revision == 0:
            return await self._collection.insert(to_document(PEOPLE, stored))
        changes: Update = {}
        for name, value in PEOPLE.encode(stored).items():
            if name != PEOPLE.key:
                put(changes, name, value)
        where: Filter = {"_id": changed.person_id, "revision": changed.revision}
        return await self._collection.update(where, changes)

    async def due(self, *, now_ms: int, limit: int) -> Sequence[PersonRecord]:
        where: Filter = {"due_ms": {"$lte": now_ms}}
        return legible(PEOPLE, await self._collection.find(where, [("due_ms", 1)], limit=limit))

    async def erase(self, *, before_ms: int, limit: int) -> int:
        where: Filter = {
            "digest_ms": {"$lt": before_ms},
            "reminded_ms": {"$lt": before_ms},
            "due_ms": None,
            "quiet_from": "",
            "has_digest": True,
            "has_copies": False,
        }
        return await self._collection.remove(await self._collection.keys(where, limit))
