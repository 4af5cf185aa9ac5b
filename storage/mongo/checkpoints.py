"""Checkpoints and their journals in MongoDB.

A journal entry is a document whose `_id` is made of checkpoint, base and index: the unique key is
the fence. When a run ends, its entries lose their content but stay as keys; otherwise a process
that slept meanwhile could append at an index that was long taken, and act a second time. These are
two writes: when the second one is cut off, whoever reads the ended run next repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.core.checkpoint import LAST, CheckpointStatus, StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from storage.codec import stored_checkpoint
from storage.mongo.collection import Collection
from storage.mongo.documents import Document
from storage.records import SCHEMA_VERSION

_AT_ONCE = 500
"""Journal entries that are deleted at a time."""


class MongoCheckpointStore:
    """See `agents.core.checkpoint.CheckpointStore`, `AmendingStore` and `ThreadStore`.

    `open` in a document says that the run has not ended; it makes the condition an equality.
    """

    def __init__(self, checkpoints: Collection, journal: Collection) -> None:
        self._checkpoints = checkpoints
        self._journal = journal

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        head = await self._checkpoints.get(checkpoint_id)
        if head is None:
            return None
        if head.get("open", True):
            entries = await self._entries(checkpoint_id, head.get("base"))
            return stored_checkpoint(checkpoint_id, head, entries)
        # Whoever ended the run may have been cut off before the last step.
        left = {"checkpoint_id": checkpoint_id, "entry": {"$gte": ""}}
        if await self._journal.find(left, [("index", 1)], 1):
            await self._empty(checkpoint_id)
        return stored_checkpoint(checkpoint_id, head, ())

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        version = expected_version + 1
        changes = {
            "data": data,
            "claim": "",
            "status": status.value,
            "version": version,
            "base": version,
        }
        if expected_version == 0:
            head = {"_id": checkpoint_id, "v": SCHEMA_VERSION, "open": True, **changes}
            saved = await self._checkpoints.insert(head)
        else:
            saved = await self._checkpoints.update(
                _expected(checkpoint_id, expected_version),
                {"$set": changes, "$unset": {"changes": ""}},
            )
        if not saved:
            raise CheckpointConflictError(checkpoint_id)
        return version

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        version = expected_version + 1
        pending = {"status": CheckpointStatus.PENDING.value}
        changes = {"claim": claim, "status": CheckpointStatus.RUNNING.value, "version": version}
        if not await self._checkpoints.update(
            {**_expected(checkpoint_id, expected_version), **pending}, {"$set": changes}
        ):
            raise CheckpointConflictError(checkpoint_id)
        return version

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        version = expected_version + 1
        changes = {
            "claim": "",
            "status": CheckpointStatus.PENDING.value,
            "version": version,
            "base": version,
        }
        running = {"status": CheckpointStatus.RUNNING.value}
        if not await self._checkpoints.update(
            {**_expected(checkpoint_id, expected_version), **running},
            {"$set": changes, "$push": {"changes": change}},
        ):
            raise CheckpointConflictError(checkpoint_id)
        return version

    async def release(self, checkpoint_id: str, *, expected_version: int) -> int:
        running = {"status": CheckpointStatus.RUNNING.value}
        version = expected_version + 1
        changes = {"claim": "", "status": CheckpointStatus.PENDING.value, "version": version}
        if not await self._checkpoints.update(
            {**_expected(checkpoint_id, expected_version), **running}, {"$set": changes}
        ):
            raise CheckpointConflictError(checkpoint_id)
        return version

    async def ids(self, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        # Of two lower bounds the higher one counts.
        lower = {"$gt": after} if after >= prefix else {"$gte": prefix}
        return await self._checkpoints.keys({"_id": {**lower, "$lt": f"{prefix}{LAST}"}}, limit)

    async def delete(self, checkpoint_id: str, *, expected_version: int) -> None:
        where: Document = {"_id": checkpoint_id, "version": expected_version}
        is_gone = await self._checkpoints.delete(where)
        if not is_gone and await self._checkpoints.get(checkpoint_id) is not None:
            raise CheckpointConflictError(checkpoint_id)
        while keys := await self._journal.keys({"checkpoint_id": checkpoint_id}, _AT_ONCE):
            await self._journal.remove(keys)

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        document = {
            "_id": f"{checkpoint_id}/{base}/{index}",
            "v": SCHEMA_VERSION,
            "checkpoint_id": checkpoint_id,
            "base": base,
            "index": index,
            "entry": entry,
        }
        if not await self._journal.insert(document):
            raise CheckpointConflictError(checkpoint_id)

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        if not await self._checkpoints.update(
            _expected(checkpoint_id, expected_version),
            {
                "$set": {"status": CheckpointStatus.CLOSED.value, "open": False},
                "$inc": {"version": 1},
                "$unset": {"data": "", "claim": "", "changes": ""},
            },
        ):
            head = await self._checkpoints.get(checkpoint_id)
            if head is None or head.get("open", True):
                raise CheckpointConflictError(checkpoint_id)
        await self._empty(checkpoint_id)

    async def _empty(self, checkpoint_id: str) -> None:
        await self._journal.update_all({"checkpoint_id": checkpoint_id}, {"$unset": {"entry": ""}})

    async def _entries(self, checkpoint_id: str, base: object) -> list[Document]:
        where = {"checkpoint_id": checkpoint_id, "base": base}
        found = await self._journal.find(where, [("index", 1)])
        # The run may have been ended after its head was read.
        return [document for document in found if "entry" in document]


def _expected(checkpoint_id: str, version: int) -> Document:
    return {"_id": checkpoint_id, "version": version, "open": True, "v": SCHEMA_VERSION}
