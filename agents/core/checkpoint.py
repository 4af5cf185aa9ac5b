"""Checkpoints: the stored state of an interrupted run, and the ports of its store.

A checkpoint is one small JSON document (`data`) with a version. Events after the document was
written are appended to a journal of small, indexed entries. Nothing is rewritten, so the cost of a
step does not depend on the length of the run. A small change of a large document is appended too.

Fencing needs no lock: a writer appends at the index after the last entry that it knows. If two
processes own the same run, the second one to write gets a conflict.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol, runtime_checkable

__all__ = ["CheckpointStatus", "CheckpointStore", "Durability", "MessageLog", "StoredCheckpoint"]

SCHEMA_VERSION = 1
"""Version of a run's document."""

CLAIM_VERSION = 1
"""Version of a claim."""

LOG_VERSION = 1
"""Version of an entry of the message log."""

LAST = "\U0010ffff"
"""Sorts after every character of an id: the upper bound of a search by prefix."""


Durability = Literal["interrupt", "step"]
"""When a run is stored: only if it waits for people, or after each step."""


def new_uuid() -> str:
    """Return a random, unguessable id."""
    return str(uuid.uuid4())


class CheckpointStatus(StrEnum):
    """Status of a run in its store. Stored: version 1, must stay readable."""

    RUNNING = "running"  # a process works on it, or crashed doing so
    PENDING = "pending"  # interrupted, waits for answers
    CLOSED = "closed"  # finished, can never be resumed


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """A checkpoint as returned by its store.

    Attributes:
        data: The document: versioned JSON text.
        claim: The answers of the last claim: JSON text.
        status: Status of the run.
        version: Number of saves and claims; starts at 1.
        base: Version written by the last `save` or `amend`. Journal entries belong to it.
        journal: Entries appended since that save, in the order of their index.
        changes: Changes that `amend` added to the document since `save`, oldest first.
    """

    data: str
    claim: str
    status: CheckpointStatus
    version: int
    base: int
    journal: Sequence[str]
    changes: Sequence[str] = ()


class CheckpointStore(Protocol):
    """Stores checkpoints. Every write requires the expected version."""

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        """Return a checkpoint with its journal, or None if it does not exist."""
        ...

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        """Write the document if its version is the expected one; 0 means that none exists.

        Empties `claim` and `changes` and begins a new journal; the old journal no longer counts. A
        closed checkpoint stays closed.

        Returns:
            The new version, one higher, which is also the new `base`.

        Raises:
            CheckpointConflictError: Another process wrote first, or the checkpoint is closed.
        """
        ...

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        """Claim a pending checkpoint for a resume. Its status becomes `running`.

        Stores `claim` and keeps the journal.

        Returns:
            The new version, one higher; `base` does not change.

        Raises:
            CheckpointConflictError: It is not pending, or another process wrote first.
        """
        ...

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        """Append an entry to the journal of version `base`, at an index that starts at 0.

        Raises:
            CheckpointConflictError: The index is used: another process works on this run.
        """
        ...

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        """Close the run and delete its document and journal. Idempotent.

        Raises:
            CheckpointConflictError: Another process wrote first.
        """
        ...


@runtime_checkable
class AmendingStore(CheckpointStore, Protocol):
    """A store that can append a change to a document.

    Optional: with any other store, each answer writes the whole document.
    """

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        """Append a change to a running checkpoint and make it pending again, in one write.

        Empties `claim` and begins a new journal, like `save`.

        Returns:
            The new version, one higher, which is also the new `base`.

        Raises:
            CheckpointConflictError: It is not running, or another process wrote first.
        """
        ...


@runtime_checkable
class GraphThreadStore(CheckpointStore, Protocol):
    """A store for graphs: can also list and delete threads."""

    async def ids(self, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        """Return ids with this prefix that sort after `after`, in ascending order."""
        ...

    async def delete(self, checkpoint_id: str, *, expected_version: int) -> None:
        """Delete a checkpoint with its journal. Idempotent.

        Raises:
            CheckpointConflictError: Another process wrote first.
        """
        ...


class MessageLog(Protocol):
    """Stores the messages of a conversation, one entry per turn; append-only."""

    async def append(self, log_id: str, turn: int, data: str) -> None:
        """Store a turn's messages as JSON text. A second append of a turn is ignored."""
        ...

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        """Return the entries of all turns before `before_turn`, oldest first."""
        ...
