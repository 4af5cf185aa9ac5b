"""Checkpoints: the stored form of an interrupted run, and the ports that keep it.

A checkpoint is one small document (`data`) with a version. Between two versions of the document,
what happened meanwhile is appended to a journal: small entries with an index of their own. Nothing
is ever rewritten, so the cost of a step does not depend on what came before. Nor is a document in
which little has changed: the change is added to it.

Fencing needs no lock: a writer appends with the index that follows the entries it knows. Of two
processes that both think they own the run, one gets the index and the other a conflict.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol, runtime_checkable

__all__ = ["CheckpointStatus", "CheckpointStore", "Durability", "MessageLog", "StoredCheckpoint"]

SCHEMA_VERSION = 1
"""The version of a run's document."""

CLAIM_VERSION = 1
"""The version of a claim's note."""

LOG_VERSION = 1
"""The version of an entry of the message log."""

LAST = "\U0010ffff"
"""Comes after all that an id has: what begins with a text comes before the text with this."""


Durability = Literal["interrupt", "step"]
"""The points at which a run is stored: where it waits for people, or after each step, too."""


def new_uuid() -> str:
    """Make an id that nobody can guess."""
    return str(uuid.uuid4())


class CheckpointStatus(StrEnum):
    """The state of a run, as its store sees it. Stored: version 1, must stay readable."""

    RUNNING = "running"  # somebody works on it, or died doing so
    PENDING = "pending"  # interrupted: it waits for answers
    CLOSED = "closed"  # finished; it can never be resumed again


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """A checkpoint as its store gives it back.

    Attributes:
        data: The document: versioned JSON text.
        claim: What the last claim noted: the answers that the run was resumed with; JSON text.
        status: Where the run stands.
        version: Counts every save and claim; starts at 1.
        base: The version that the last `save` or `amend` made; journal entries belong to it.
        journal: Entries appended since that save, in the order of their index.
        changes: What `amend` added to the document since it was saved, in order.
    """

    data: str
    claim: str
    status: CheckpointStatus
    version: int
    base: int
    journal: Sequence[str]
    changes: Sequence[str] = ()


class CheckpointStore(Protocol):
    """Stores checkpoints. Every write is conditional on the stored version."""

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        """Read a checkpoint with its journal; None when there is none."""
        ...

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        """Write the document, if its version still is the expected one; 0 means: must not exist.

        Empties `claim` and `changes`, and begins a new journal: entries of the old one no longer
        count. A closed checkpoint stays closed.

        Returns:
            The new version, one higher, which is also the new `base`.

        Raises:
            CheckpointConflictError: Somebody else wrote first, or it is closed.
        """
        ...

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        """Take a pending checkpoint for a resume: status `running`, `claim` noted, same journal.

        Returns:
            The new version, one higher; `base` stays.

        Raises:
            CheckpointConflictError: It is not pending, or somebody else wrote first.
        """
        ...

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        """Add a journal entry at an index (from 0) of the journal that belongs to `base`.

        Raises:
            CheckpointConflictError: That index is taken: somebody else works on this run.
        """
        ...

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        """End the run: status `closed`, document and journal dropped; may be repeated.

        Raises:
            CheckpointConflictError: Somebody else wrote first.
        """
        ...


@runtime_checkable
class AmendingStore(CheckpointStore, Protocol):
    """A store that can also add a change to a document in place of writing all of it.

    Optional: with another store the whole document is written for each answer.
    """

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        """Add a change to the document of a running checkpoint, which waits for answers again.

        Status `pending`, no `claim`, and a new journal, as with `save`; in one write.

        Returns:
            The new version, one higher, which is also the new `base`.

        Raises:
            CheckpointConflictError: It is not running, or somebody else wrote first.
        """
        ...


@runtime_checkable
class GraphThreadStore(CheckpointStore, Protocol):
    """A store that can do more for graphs: tell and delete threads, and keep partial answers cheap.

    Optional: a graph whose store has not all of it writes the whole document for each answer.
    """

    async def release(self, checkpoint_id: str, *, expected_version: int) -> int:
        """Give a claimed checkpoint back: status `pending`, no `claim`, same document and journal.

        Returns:
            The new version, one higher; `base` stays.

        Raises:
            CheckpointConflictError: It is not running, or somebody else wrote first.
        """
        ...

    async def ids(self, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        """The first ids that begin with a text and come after another, in their order."""
        ...

    async def delete(self, checkpoint_id: str, *, expected_version: int) -> None:
        """Delete a checkpoint with its journal; may be repeated, also when it is gone.

        Raises:
            CheckpointConflictError: It has another version: somebody else wrote first.
        """
        ...


class MessageLog(Protocol):
    """Keeps the messages of a conversation, one entry per turn; append-only."""

    async def append(self, log_id: str, turn: int, data: str) -> None:
        """Keep a turn's messages (JSON text). A second append of the same turn changes nothing."""
        ...

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        """Entries of all turns before the given one, oldest first."""
        ...
