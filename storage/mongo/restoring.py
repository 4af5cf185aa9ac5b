"""Going back to a copy, in MongoDB."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from storage.codec import APPROVALS, THREADS
from storage.errors import StoreUnavailableError
from storage.mongo import leases
from storage.mongo.commands import Commands
from storage.mongo.documents import Document, Filter, Update, decider, legible, put
from storage.ports.restoring import era_step
from storage.records import Approval, MessageStatus, Status, Thread

logger = logging.getLogger(__name__)

_ERA = "era"
"""The key of the document that has the number of the era."""

_NOTE = "collection"
"""The key of the document that says which collection it was written beside."""


class MongoRestoreStore:
    """See `storage.ports.restoring.RestoreStore`.

    Args:
        collections: All of them, by name.
        identity: Finds the server's own id of the approvals' collection, which is another one once
            they were put back; empty where there is none.
    """

    def __init__(
        self, collections: Mapping[str, Commands], identity: Callable[[], Awaitable[str]]
    ) -> None:
        self._identity = identity
        self._collections = collections
        self._threads = collections["threads"]
        self._approvals = collections["approvals"]
        self._eras = collections["eras"]

    async def begin_era(self) -> int:
        await self._eras.insert({"_id": _ERA, "number": 0})
        raised = {"$inc": {"number": era_step()}}
        head = await self._eras.update_and_get({"_id": _ERA}, raised)
        if head is None:
            raise StoreUnavailableError("another process removed the number of the era")
        era = int(head["number"])
        # Of the copy is all that stands in the database now: no clock is asked.
        for is_so in ({"open": True}, {"due_ms": {"$gt": -1}}):
            await self._approvals.patient.update_all(is_so, {"$set": {"restored_era": era}})
        return era

    async def era(self) -> int:
        head = await self._eras.patient.get(_ERA)
        return int(head["number"]) if head else 0

    async def is_copy(self) -> bool:
        present = await self._identity()
        if not present:
            return False
        noted = await self._eras.find({"_id": _NOTE}, [("_id", 1)], 1)
        if not noted:
            await self._eras.insert({"_id": _NOTE, "collection": present})
        return any(one["collection"] != present for one in noted)

    async def end(self) -> None:
        present = await self._identity()
        if present and not await self._eras.insert({"_id": _NOTE, "collection": present}):
            await self._eras.update({"_id": _NOTE}, {"$set": {"collection": present}})

    async def newest_ms(self) -> int:
        found = [
            await self._newest("audit", "at_ms", {"action": {"$lt": "restored"}}),
            await self._newest("audit", "at_ms", {"action": {"$gt": "restored"}}),
            await self._newest("messages", "received_ms", {"received_ms": {"$gt": 0}}),
            await self._newest("threads", "active_ms", {"active_ms": {"$gt": 0}}),
        ]
        return max(found)

    async def leased(self, *, now_ms: int) -> int:
        is_leased: Filter = {"leased_until_ms": {"$gt": now_ms}}
        stores = (self._threads.patient, self._approvals.patient)
        return sum([await store.count(is_leased) for store in stores])

    async def pending(self, *, limit: int, after: str = "") -> tuple[Sequence[Approval], str]:
        where: Filter = {"_id": {"$gt": after}, "open": True, "status": Status.PENDING.value}
        found = await self._approvals.patient.find(where, [("_id", 1)], limit)
        return legible(APPROVALS, found), _last(found)

    async def unfinished(self, *, limit: int, after: str = "") -> tuple[Sequence[Thread], str]:
        later: Filter = {"_id": {"$gt": after}}
        found: dict[str, Document] = {}
        for is_so in ({"turn_open": True}, {"due_ms": {"$gt": -1}}):
            where: Filter = {**later, **is_so}
            for document in await self._threads.patient.find(where, [("_id", 1)], limit):
                found[document["_id"]] = document
        page = [found[key] for key in sorted(found)][:limit]
        return legible(THREADS, page), _last(page)

    async def rewrite(self, approval: Approval) -> bool:
        row = APPROVALS.encode(approval)
        key = row.pop(APPROVALS.key)
        update: Update = {"$set": {"decided_by": decider(approval)}}
        for name, value in row.items():
            put(update, name, value)
        return await self._approvals.update({"_id": key, "revision": approval.revision - 1}, update)

    async def mark(self, thread_id: str, *, era: int, now_ms: int, to_ms: int) -> None:
        unread: Filter = {"thread_id": thread_id, "turn": 0, "status": MessageStatus.NEW.value}
        taken = {"status": MessageStatus.TAKEN.value, "turn": -era}
        await self._collections["messages"].patient.update_all(unread, {"$set": taken})
        changes = {
            "restored_era": era,
            "restored_to_ms": to_ms,
            "due_ms": now_ms,
            "leased_by": "",
            "leased_until_ms": 0,
        }
        update: Update = {"$set": changes, "$inc": {"fence": 1}}
        await self._threads.update({"_id": thread_id}, update)

    async def settle(self, thread_id: str, *, fence: int, turn: int) -> bool:
        changes = {"restored_era": 0, "restored_turn": turn}
        return await self._threads.update(leases.held(thread_id, fence), {"$set": changes})

    async def _newest(self, name: str, field: str, where: Filter) -> int:
        found = await self._collections[name].patient.find(where, [(field, -1)], 1)
        return max((int(document[field]) for document in found), default=0)


def _last(documents: Sequence[Document]) -> str:
    return str(documents[-1]["_id"]) if documents else ""
