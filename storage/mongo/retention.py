"""The removal of old records from MongoDB: found by indexes, deleted one document at a time.

Deletes name the `_id` of one document each, so that the driver may repeat them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storage.chain import Seal
from storage.codec import AUDIT, THREADS
from storage.ledger import stripped
from storage.mongo import leases
from storage.mongo.commands import Commands
from storage.mongo.documents import Filter, Update, to_record
from storage.records import SCHEMA_VERSION, MessageStatus, Thread
from storage.retention import key_ranges, place_of

KEYED = ("posts", "log", "checkpoints")
"""Collections whose ids begin with the thread's."""


class MongoRetentionStore:
    """See `storage.ports.retention.RetentionStore`.

    Args:
        collections: All of them, by name.
        seal: How entries of the audit are sealed.
    """

    def __init__(self, collections: Mapping[str, Commands], seal: Seal) -> None:
        self._seal = seal
        self._collections = collections
        self._threads = collections["threads"]

    async def named(self, channel_id: str, thread_ts: str) -> Sequence[str]:
        found: list[str] = []
        team = ""
        # All ids of a workspace are skipped at once: a colon and a semicolon are neighbours.
        while keys := await self._threads.keys({"_id": {"$gte": f"{team};" if team else ""}}, 1):
            team = keys[0].partition(":")[0]
            thread_id = f"{team}:{channel_id}:{thread_ts}"
            if await self._threads.get(thread_id) is not None:
                found.append(thread_id)
        return found

    async def resting(
        self, *, before_ms: int, limit: int, after: tuple[int, str] = (-1, "")
    ) -> Sequence[tuple[int, str]]:
        active_ms, thread_id = after
        at_rest: Filter = {"turn_open": False, "due_ms": None, "v": SCHEMA_VERSION}
        same: Filter = {"active_ms": active_ms, "_id": {"$gt": thread_id}, **at_rest}
        later: Filter = {"active_ms": {"$gt": active_ms, "$lt": before_ms}, **at_rest}
        order = [("active_ms", 1), ("_id", 1)]
        found = await self._threads.find(same, order, limit) if active_ms < before_ms else []
        found += await self._threads.find(later, order, limit - len(found))
        return [(document["active_ms"], document["_id"]) for document in found]

    async def left(self, thread_id: str) -> Mapping[str, int]:
        here: Filter = {"thread_id": thread_id}
        is_due: Filter = {"due_ms": {"$gt": -1}}
        approvals = self._collections["approvals"]
        found = {
            "requests": await approvals.count({**here, "open": True})
            + await approvals.count({**here, "open": False, **is_due}),
            "messages": await self._collections["messages"].count(
                {**here, "turn": 0, "status": MessageStatus.NEW.value}
            ),
            "texts": await self._collections["posts"].count(
                {**here, "posted": False, "failure": ""}
            ),
            "answers": await self._collections["whispers"].count({**place_of(thread_id), **is_due}),
        }
        return {name: number for name, number in found.items() if number}

    async def counts(self, thread_id: str) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for name, wheres in self._wheres(thread_id).items():
            collection = self._collections[name]
            found[name] = sum([await collection.count(where) for where in wheres])
        found["audit"] = await self._collections["audit"].count({"thread_id": thread_id})
        return {name: number for name, number in found.items() if number}

    async def seal(
        self, thread_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Thread | None:
        at_rest: Filter = {
            "_id": thread_id,
            "turn_open": False,
            "due_ms": None,
            "leased_until_ms": {"$lte": now_ms},
            "v": SCHEMA_VERSION,
        }
        sealed = await self._threads.update_and_get(
            at_rest,
            {"$set": {"leased_by": owner, "leased_until_ms": until_ms}, "$inc": {"fence": 1}},
        )
        return None if sealed is None else to_record(THREADS, sealed)

    async def erase(self, thread_id: str, *, limit: int) -> int:
        erased = 0
        for name, wheres in self._wheres(thread_id).items():
            collection = self._collections[name]
            for where in wheres:
                erased += await collection.remove(await collection.keys(where, limit))
        return erased

    async def strip(self, thread_id: str, *, limit: int) -> int:
        audit = self._collections["audit"]
        where: Filter = {"thread_id": thread_id, "erased": {"$in": [False, None]}}
        found = await audit.find(where, [("at_ms", 1)], limit)
        for document in found:
            row = {**document, AUDIT.key: document["_id"]}
            update: Update = {"$set": dict(stripped(row, self._seal))}
            # What is being sealed just now stays as it was read by whoever seals it.
            still: Filter = {"_id": document["_id"], "detail": document.get("detail")}
            await audit.update(still, update)
        return len(found)

    async def drop(self, thread: Thread) -> bool:
        held = leases.held(thread.thread_id, thread.fence)
        return await self._threads.delete({**held, "wakes": thread.wakes})

    async def erase_whispers(self, *, before_ms: int, limit: int) -> int:
        whispers = self._collections["whispers"]
        where: Filter = {"created_ms": {"$lt": before_ms}, "due_ms": None}
        return await whispers.remove(await whispers.keys(where, limit))

    async def clear_log(self) -> bool:
        return True

    @staticmethod
    def _wheres(thread_id: str) -> dict[str, list[Filter]]:
        """Return filters for all that belongs to a thread, by collection."""
        keys: list[Filter] = [
            {"_id": {"$gte": first, "$lt": end}} for first, end in key_ranges(thread_id)
        ]
        return {
            "approvals": [{"thread_id": thread_id}],
            "messages": [{"thread_id": thread_id, "status": MessageStatus.TAKEN.value}],
            "whispers": [{**place_of(thread_id)}],
            "grants": [{"thread_id": thread_id}],
            **dict.fromkeys(KEYED, keys),
        }
