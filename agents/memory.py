"""Checkpoint store and message log in memory, for trials and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.core.checkpoint import CheckpointStatus, StoredCheckpoint
from agents.core.errors import CheckpointConflictError

__all__ = ["MemoryCheckpointStore", "MemoryMessageLog"]


@dataclass(slots=True)
class _Stored:
    data: str
    status: CheckpointStatus
    version: int
    base: int
    claim: str = ""
    journal: list[str] = field(default_factory=list)
    changes: tuple[str, ...] = ()


class MemoryCheckpointStore:
    """Stores checkpoints in memory; see `CheckpointStore`, `AmendingStore`, `ThreadStore`."""

    def __init__(self) -> None:
        self._stored: dict[str, _Stored] = {}

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        """Read a checkpoint with its journal."""
        stored = self._stored.get(checkpoint_id)
        if stored is None:
            return None
        return StoredCheckpoint(
            data=stored.data,
            claim=stored.claim,
            status=stored.status,
            version=stored.version,
            base=stored.base,
            journal=tuple(stored.journal),
            changes=stored.changes,
        )

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        """Write the document if its version is still the expected one."""
        stored = self._stored.get(checkpoint_id)
        if (stored.version if stored else 0) != expected_version:
            raise CheckpointConflictError(checkpoint_id)
        if stored is not None and stored.status is CheckpointStatus.CLOSED:
            raise CheckpointConflictError(checkpoint_id, "it is closed; use a new id")
        version = expected_version + 1
        self._stored[checkpoint_id] = _Stored(data, status, version, version)
        return version

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        """Claim a pending checkpoint for a resume."""
        stored = self._expect(checkpoint_id, expected_version)
        if stored.status is not CheckpointStatus.PENDING:
            raise CheckpointConflictError(checkpoint_id, "it is not pending; load it again")
        stored.status, stored.claim = CheckpointStatus.RUNNING, claim
        stored.version += 1
        return stored.version

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        """Add a change to the document of a running checkpoint."""
        stored = self._expect(checkpoint_id, expected_version)
        if stored.status is not CheckpointStatus.RUNNING:
            raise CheckpointConflictError(checkpoint_id, "it is not running; load it again")
        version, pending = expected_version + 1, CheckpointStatus.PENDING
        changes = (*stored.changes, change)
        self._stored[checkpoint_id] = _Stored(
            stored.data, pending, version, version, changes=changes
        )
        return version

    async def ids(self, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        """Return the first ids with a prefix and after another id, sorted."""
        ids = sorted(key for key in self._stored if key.startswith(prefix) and key > after)
        return ids[:limit]

    async def delete(self, checkpoint_id: str, *, expected_version: int) -> None:
        """Delete a checkpoint with its journal."""
        if checkpoint_id in self._stored:
            self._expect(checkpoint_id, expected_version)
            del self._stored[checkpoint_id]

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        """Add a journal entry at an index of the journal of version `base`."""
        stored = self._stored.get(checkpoint_id)
        if stored is None or stored.base != base or len(stored.journal) != index:
            raise CheckpointConflictError(checkpoint_id)
        stored.journal.append(entry)

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        """End the run. Idempotent."""
        stored = self._stored.get(checkpoint_id)
        if stored is not None and stored.status is CheckpointStatus.CLOSED:
            return
        stored = self._expect(checkpoint_id, expected_version)
        version = expected_version + 1
        self._stored[checkpoint_id] = _Stored("", CheckpointStatus.CLOSED, version, version)

    def _expect(self, checkpoint_id: str, version: int) -> _Stored:
        stored = self._stored.get(checkpoint_id)
        if stored is None or stored.version != version:
            raise CheckpointConflictError(checkpoint_id)
        return stored


class MemoryMessageLog:
    """Stores conversations in memory; see `MessageLog`."""

    def __init__(self) -> None:
        self._turns: dict[str, dict[int, str]] = {}

    async def append(self, log_id: str, turn: int, data: str) -> None:
        """Store a turn's messages. A second append of the same turn changes nothing."""
        self._turns.setdefault(log_id, {}).setdefault(turn, data)

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        """Return the entries of all turns before the given one, oldest first."""
        turns = self._turns.get(log_id, {})
        return tuple(turns[turn] for turn in sorted(turns) if turn < before_turn)
