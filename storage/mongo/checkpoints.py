"""Checkpoints and their journals in MongoDB.

A run is one document: its head, and in it the journal since the last save. `entries` is the index
of the next entry: an append that expects another one is the second of two. The journal lies between
two saves, and all of a turn is one document of the log anyway, so that it makes nothing larger than
MongoDB can hold that was not so before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.core.checkpoint import LAST, CheckpointStatus, StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from storage.codec import SCHEMA_VERSION, stored_checkpoint
from storage.errors import RecordFormatError
from storage.mongo.commands import Commands
from storage.mongo.documents import Document, Update

_EMPTY: Mapping[str, object] = {"v": SCHEMA_VERSION, "journal": [], "entries": 0}


class MongoCheckpointStore:
    """See `agents.core.checkpoint.CheckpointStore`, `AmendingStore` and `ThreadStore`.

    `open` in a document says that the run has not ended; it makes the condition an equality.
    """

    def __init__(self, checkpoints: Commands) -> None:
        self._checkpoints = checkpoints

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        head = await self._checkpoints.get(checkpoint_id)
        if head is None:
            return None
        return stored_checkpoint(checkpoint_id, head, _journal(checkpoint_id, head))

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
            **_EMPTY,
        }
        if expected_version == 0:
            head = {"_id": checkpoint_id, "open": True, **changes}
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
            **_EMPTY,
        }
        running = {"status": CheckpointStatus.RUNNING.value}
        if not await self._checkpoints.update(
            {**_expected(checkpoint_id, expected_version), **running},
            {"$set": changes, "$push": {"changes": change}},
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

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        where: Document = {
            "_id": checkpoint_id,
            "base": base,
            "open": True,
            "v": SCHEMA_VERSION,
            "entries": index,
        }
        update: Update = {"$push": {"journal": entry}, "$inc": {"entries": 1}}
        if not await self._checkpoints.update(where, update):
            raise CheckpointConflictError(checkpoint_id)

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        closed = await self._checkpoints.update_and_get(
            _expected(checkpoint_id, expected_version),
            {
                "$set": {"status": CheckpointStatus.CLOSED.value, "open": False},
                "$inc": {"version": 1},
                "$unset": dict.fromkeys(("data", "claim", "changes", "journal", "entries"), ""),
            },
        )
        head = closed or await self._checkpoints.get(checkpoint_id)
        if head is None or head.get("open", True):
            raise CheckpointConflictError(checkpoint_id)


def _journal(checkpoint_id: str, head: Document) -> list[Document]:
    entries = head.get("journal", [])
    if not isinstance(entries, list) or head.get("entries", 0) != len(entries):
        fault = "its journal is damaged"
        raise RecordFormatError("checkpoint", SCHEMA_VERSION, fault, record_id=checkpoint_id)
    return [{"v": SCHEMA_VERSION, "entry": entry} for entry in entries]


def _expected(checkpoint_id: str, version: int) -> Document:
    return {"_id": checkpoint_id, "version": version, "open": True, "v": SCHEMA_VERSION}
