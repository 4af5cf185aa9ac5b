"""Checkpoints and their journals in MongoDB.

A run is one document: its head and the journal since the last save. `entries` is the index of the
next entry; an append with another index is a duplicate or stale, and is refused. The journal does
not make documents larger than before: a whole turn is one document of the log anyway.
"""

from __future__ import annotations

from typing import ClassVar

from agents.core.checkpoint import StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from storage.checkpoints import IS_OPEN, Checkpoints, stored_checkpoint
from storage.errors import RecordFormatError
from storage.log import SCHEMA_VERSION, Row


class MongoCheckpoints(Checkpoints):
    """See `storage.checkpoints.Checkpoints`."""

    no_journal: ClassVar[Row] = {"journal": [], "entries": 0}
    no_changes: ClassVar[Row] = {"changes": None}
    no_content: ClassVar[Row] = dict.fromkeys(("data", "claim", "changes", "journal", "entries"))

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        found = await self._heads.read({self._heads.key: checkpoint_id}, [], limit=1)
        return _stored(checkpoint_id, found[0]) if found else None

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        where = {self._heads.key: checkpoint_id, "base": base, "v": SCHEMA_VERSION, **IS_OPEN}
        is_next = {**where, "entries": index}
        if not await self._heads.change(is_next, {"entries": index + 1}, push=("journal", entry)):
            raise CheckpointConflictError(checkpoint_id)


def _stored(checkpoint_id: str, head: Row) -> StoredCheckpoint:
    entries = head.get("journal", [])
    if not isinstance(entries, list) or head.get("entries", 0) != len(entries):
        fault = "its journal is damaged"
        raise RecordFormatError("checkpoint", SCHEMA_VERSION, fault, record_id=checkpoint_id)
    return stored_checkpoint(checkpoint_id, head, entries)
