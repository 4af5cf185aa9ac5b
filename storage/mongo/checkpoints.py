"""Checkpoints and their journals in MongoDB.

A run is one document: its head, and in it the journal since the last save. `entries` is the index
of the next entry: an append that expects another one is the second of two. The journal lies between
two saves, and all of a turn is one document of the log anyway, so that it makes nothing larger than
MongoDB can hold that was not so before.

Earlier releases kept each entry as a document of its own (version 1): such a run is read from
there, and taken over with its next entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.core.checkpoint import LAST, CheckpointStatus, StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from storage.codec import stored_checkpoint
from storage.errors import RecordFormatError
from storage.mongo.collection import Collection
from storage.mongo.documents import Document, Update
from storage.records import SCHEMA_VERSION

HEAD_VERSION = 2
"""The version of a head that holds its journal. A release that does not know it reads no such run:
it would take a call that has begun for one that has not."""

_AT_ONCE = 500
"""Journal entries of an earlier release that are deleted at a time."""

_EMPTY: Mapping[str, object] = {"v": HEAD_VERSION, "journal": [], "entries": 0}


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
        if head.get("v") == SCHEMA_VERSION:
            return stored_checkpoint(checkpoint_id, head, await self._old_journal(head))
        if head.get("v") == HEAD_VERSION:
            head["v"] = SCHEMA_VERSION
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
        here = {"_id": checkpoint_id, "base": base, "open": True}
        where = {**here, "v": HEAD_VERSION, "entries": index}
        update: Update = {"$push": {"journal": entry}, "$inc": {"entries": 1}}
        if await self._checkpoints.update(where, update):
            return
        await self._take_over(here, index)
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
        if head.get("v") == SCHEMA_VERSION:
            await self._empty(checkpoint_id)

    async def _old_journal(self, head: Document) -> list[Document]:
        """The journal of a run of an earlier release."""
        checkpoint_id = head["_id"]
        if head.get("open", True):
            where = {"checkpoint_id": checkpoint_id, "base": head.get("base")}
            found = await self._journal.find(where, [("index", 1)])
            # The run may have been ended after its head was read.
            return [document for document in found if "entry" in document]
        # Whoever ended the run may have been cut off before the last step.
        left = {"checkpoint_id": checkpoint_id, "entry": {"$gte": ""}}
        if await self._journal.find(left, [("index", 1)], 1):
            await self._empty(checkpoint_id)
        return []

    async def _take_over(self, here: Document, index: int) -> None:
        """Move the journal of a run of an earlier release into its head, if this is one.

        The key of the next entry is taken first: a process of that release, which would append
        there, has lost the run then.
        """
        checkpoint_id, base = here["_id"], here["base"]
        head = await self._checkpoints.get(checkpoint_id)
        if head is None or head.get("v") != SCHEMA_VERSION or not head.get("open", True):
            return
        entries = await self._old_journal(head)
        key = f"{checkpoint_id}/{base}/{index}"
        mark = {"v": SCHEMA_VERSION, "checkpoint_id": checkpoint_id, "base": base, "index": index}
        if head.get("base") != base or len(entries) != index:
            return
        if not await self._journal.insert({"_id": key, **mark}):
            taken = await self._journal.get(key)
            if taken is None or "entry" in taken:
                return
        texts = [document["entry"] for document in entries]
        moved = {"v": HEAD_VERSION, "journal": texts, "entries": index}
        where = {**here, "v": SCHEMA_VERSION, "version": head["version"]}
        await self._checkpoints.update(where, {"$set": moved})

    async def _empty(self, checkpoint_id: str) -> None:
        """Take the content out of the entries of a run of an earlier release.

        They stay as keys: a process of that release, asleep meanwhile, could append there else.
        """
        await self._journal.update_all({"checkpoint_id": checkpoint_id}, {"$unset": {"entry": ""}})


def _journal(checkpoint_id: str, head: Document) -> list[Document]:
    entries = head.get("journal", [])
    if not isinstance(entries, list) or head.get("entries", 0) != len(entries):
        fault = "its journal is damaged"
        raise RecordFormatError("checkpoint", HEAD_VERSION, fault, record_id=checkpoint_id)
    return [{"v": SCHEMA_VERSION, "entry": entry} for entry in entries]


def _expected(checkpoint_id: str, version: int) -> Document:
    known = {"$in": [SCHEMA_VERSION, HEAD_VERSION]}
    return {"_id": checkpoint_id, "version": version, "open": True, "v": known}
