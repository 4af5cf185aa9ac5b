"""A thread in the checkpoint store: its head, its history and its journal.

The thread's own checkpoint is its head: one document with the state that a resume needs. If people
answer and others are still asked, the change of the document is appended to it, so that the cost
of an answer does not depend on the number of pending nodes. Before a head is replaced, it is copied
with its changes to the immutable id `<thread>@<number>`; each copy and each change is a checkpoint
of the thread's history. The claim of a resume stores the answers, and the journal stores finished
nodes, so that a crash in between loses neither.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from typing import cast

from agents.core.checkpoint import CheckpointStatus, CheckpointStore, StoredCheckpoint
from agents.core.codec import Json, from_text, to_text
from agents.core.errors import (
    AgentConfigError,
    CheckpointClosedError,
    CheckpointConflictError,
    CheckpointDecodeError,
    CheckpointNotFoundError,
)
from agents.core.journal import Journal
from agents.graph.commands import Command
from agents.graph.errors import GraphMismatchError, ThreadBusyError
from agents.graph.state.plan import Topology
from agents.runs.changes import read_changed
from agents.runs.document import Claim, OpenRun, RunDocument

_UNSTORED = StoredCheckpoint(
    data="", claim="", status=CheckpointStatus.PENDING, version=0, base=0, journal=()
)
"""The checkpoint of a thread before its first write."""


def stored_id(thread_id: str) -> str:
    """Return the storage id of a thread: its id, escaped if it looks like a copy's."""
    return f"{thread_id}@" if re.search(r"@\d+@*$", thread_id) else thread_id


def thread_of(stored: str) -> str:
    """Return the thread id of a storage id; empty for a copy."""
    if re.search(r"@\d+$", stored):
        return ""
    return stored[:-1] if re.search(r"@\d+@+$", stored) else stored


def is_copy(stored: str, key: str) -> bool:
    """Whether a storage id is a copy of the thread stored under a key."""
    return re.fullmatch(re.escape(key) + r"@\d+", stored) is not None


@dataclass(frozen=True, slots=True)
class _Copy:
    """A part of the history: a document as it was stored, with the changes that followed.

    Attributes:
        number: Number of the document's checkpoint; each change has the next number.
    """

    text: str = ""
    changes: tuple[str, ...] = ()
    number: int = 0

    def has(self, number: int) -> bool:
        return self.number <= number <= self.number + len(self.changes)

    def data(self, number: int) -> dict[str, Json]:
        """Return one of its checkpoints as JSON data."""
        return read_changed(self.text, self.changes[: number - self.number])


class GraphThread:
    """One thread in a store, as this process knows it.

    Attributes:
        run: The stored run of the thread.
        thread_id: Id of the thread; empty if nothing is stored.

    Raises:
        AgentConfigError: The id is not a text.
    """

    def __init__(self, store: CheckpointStore | None, thread_id: str) -> None:
        if not isinstance(thread_id, str):
            raise AgentConfigError(f"a thread id is a text, got a {type(thread_id).__name__}")
        self._store = store if thread_id else None
        self._copy = _Copy()
        self.thread_id = thread_id if self._store is not None else ""
        self.run = OpenRun(checkpoint_id=stored_id(thread_id), stored=_UNSTORED, document=None)

    @property
    def head(self) -> RunDocument | None:
        """The newest checkpoint; None before the first."""
        return self.run.document

    @property
    def is_running(self) -> bool:
        """Whether a run works on the thread, or its process died."""
        return self.run.is_running

    async def load(self) -> RunDocument | None:
        """Read the head."""
        stored = await self._store.load(self.run.checkpoint_id) if self._store else None
        if stored is None:
            return None
        if stored.status is CheckpointStatus.CLOSED:
            raise CheckpointClosedError(self.thread_id)
        run = OpenRun.of(self.run.checkpoint_id, stored)
        if run.document is not None and not run.document.number:
            raise CheckpointDecodeError("it is the run of an agent, not a thread of a graph")
        self.run = run
        return self.head

    async def need_head(self, topology: Topology) -> RunDocument:
        """Read the head of a thread of this graph."""
        head = await self.any_head()
        self.check_graph(topology)
        return head

    async def any_head(self) -> RunDocument:
        """Read the head of a thread of any graph."""
        head = await self.load()
        if head is None:
            raise CheckpointNotFoundError(self.thread_id)
        return self.seen(head)

    def seen(self, document: RunDocument) -> RunDocument:
        """Return the head with its current phase: a claim may have changed it since."""
        return replace(document, phase="running") if self.is_running else document

    def check_graph(self, topology: Topology) -> None:
        """Check that the head, if any, belongs to this graph."""
        if self.head is not None and self.head.agent != topology.name:
            raise GraphMismatchError(self.thread_id, self.head.agent, topology.name)

    def refuse_running(self) -> None:
        """Raise if another run works on the thread."""
        if self.is_running:
            raise ThreadBusyError(self.thread_id)

    @property
    def origin(self) -> int:
        """Number of the stored document. An answer beside others only appends to it."""
        return self.head.number - len(self.run.stored.changes) if self.head is not None else 0

    @property
    def claimed(self) -> Claim:
        """Return the claim of the current run, if any."""
        claim = Claim.from_text(self.run.stored.claim)
        if not isinstance(claim.command, Command | None):
            raise CheckpointDecodeError("the command of a resume is damaged")
        return claim

    async def claim(self, claim: Claim) -> None:
        """Claim the head for a resume. Only one of two concurrent claims succeeds."""
        if self._store is not None:
            self.run, _ = await self.run.claimed(self._store, claim)

    async def save(self, document: RunDocument, *, is_new: bool = True) -> RunDocument:
        """Replace the head; the old one becomes a part of the history.

        A new checkpoint gets a number of its own, any other document the number of the head.
        """
        before, run, store = self.head, self.run, self._store
        if before is not None and is_new:
            document = replace(document, number=before.number + 1)
        elif before is not None:
            document = replace(document, number=before.number, parent=before.parent)
        if store is None:
            self.run = replace(run, document=document)
            return document
        data = document.to_json()
        # A head that waits for people only gets the change, so that each answer is cheap.
        appends = is_new and document.phase == "paused"
        saved = await run.amended(store, document, data) if appends else None
        if saved is None:
            if before is not None and (is_new or run.stored.changes):
                # Copy first: a crash in between leaves an extra copy, but no gap in the history.
                await self._archive(store)
            saved = await run.replaced(store, document, data)
        self.run = saved
        return document

    def journal(self, *, every_step: bool) -> Journal:
        """Return the journal of the head, with the entries of a dead process."""
        stored = self.run.stored
        return Journal(
            self._store,
            self.run.checkpoint_id,
            base=stored.base,
            entries=stored.journal,
            every_step=every_step,
        )

    async def read(self, number: int) -> RunDocument:
        """Read one checkpoint of the history. The head must be loaded."""
        head = self.head
        if head is not None and number == head.number:
            return self.seen(head)
        if head is None or not 1 <= number < head.number:
            raise CheckpointNotFoundError(self._copy_id(number))
        copy = self._current()
        if not copy.has(number):
            copy = await self._copied(number)
        return RunDocument.from_json(copy.data(number))

    def _current(self) -> _Copy:
        stored = self.run.stored
        return _Copy(stored.data, tuple(stored.changes), self.origin)

    async def _copied(self, number: int) -> _Copy:
        """Return the copy that contains a checkpoint."""
        if self._copy.has(number):
            return self._copy
        # A change has no copy of its own: the nearest earlier copy contains it.
        for at in range(number, 0, -1):
            stored = await self._store.load(self._copy_id(at)) if self._store else None
            if stored is not None:
                changes = cast("list[str]", from_text(stored.data).get("changes", []))
                self._copy = _Copy(stored.data, tuple(changes), at)
                break
        if not self._copy.has(number):
            raise CheckpointNotFoundError(self._copy_id(number))
        return self._copy

    async def _archive(self, store: CheckpointStore) -> None:
        """Copy the head with its changes.

        An existing copy was left by a process that died before it replaced the head.
        """
        current = self._current()
        key, text = self._copy_id(current.number), current.text
        if current.changes:
            text = to_text({**from_text(text), "changes": [*current.changes]})
        pending = CheckpointStatus.PENDING
        try:
            await store.save(key, text, status=pending, expected_version=0)
        # Answers only add changes to a copy, so the longer copy contains the shorter one.
        except CheckpointConflictError:
            left = await store.load(key)
            if left is None or len(left.data) >= len(text):
                return
            with contextlib.suppress(CheckpointConflictError):
                await store.save(key, text, status=pending, expected_version=left.version)

    def _copy_id(self, number: int) -> str:
        return f"{self.run.checkpoint_id}@{number}"
