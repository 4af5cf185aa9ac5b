"""Deletes the entries of a thread that are no documents, one at a time, in MongoDB.

Deletes name the `_id` of one document each, so that the driver may repeat them.
"""

from __future__ import annotations

from collections.abc import Mapping

from storage.chain import Seal
from storage.codec import AUDIT
from storage.ledger import stripped
from storage.mongo.commands import Commands
from storage.mongo.documents import Filter, Update
from storage.retention import key_ranges

KEYED = ("log", "checkpoints")
"""Collections whose ids begin with the thread's."""


class MongoLedgers:
    """See `storage.base.Ledgers`.

    Args:
        commands: The server's collections, by name.
        seal: How entries of the audit are sealed.
    """

    def __init__(self, commands: Mapping[str, Commands], seal: Seal) -> None:
        self._seal = seal
        self._commands = commands

    async def counts(self, thread_id: str) -> Mapping[str, int]:
        found = {
            name: sum([await self._commands[name].count(where) for where in _keys(thread_id)])
            for name in KEYED
        }
        audit = await self._commands["audit"].count({"thread_id": thread_id})
        return {**found, "audit": audit}

    async def erase(self, thread_id: str, *, limit: int) -> int:
        erased = 0
        for name in KEYED:
            commands = self._commands[name]
            for where in _keys(thread_id):
                erased += await commands.remove(await commands.keys(where, limit))
        return erased

    async def strip(self, thread_id: str, *, limit: int) -> int:
        audit = self._commands["audit"]
        where: Filter = {"thread_id": thread_id, "erased": {"$in": [False, None]}}
        found = await audit.find(where, [("at_ms", 1)], limit)
        for document in found:
            row = {**document, AUDIT.key: document["_id"]}
            update: Update = {"$set": dict(stripped(row, self._seal))}
            # What is being sealed just now stays as it was read by whoever seals it.
            still: Filter = {"_id": document["_id"], "detail": document.get("detail")}
            await audit.update(still, update)
        return len(found)

    async def clear_log(self) -> bool:
        return True


def _keys(thread_id: str) -> list[Filter]:
    return [{"_id": {"$gte": first, "$lt": end}} for first, end in key_ranges(thread_id)]
