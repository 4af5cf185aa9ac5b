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

from agents.core.checkpoint import (
    AmendingStore,
    CheckpointStatus,
    CheckpointStore,
    StoredCheckpoint,
)
from agents.core.codec import Json, from_text, read_back, to_text
from agents.core.errors import (
    AgentConfigError,
    CheckpointConflictError,
    CheckpointDecodeError,
    CheckpointNotFoundError,
)
from agents.core.journal import Journal
from agents.graph.commands import Command
from agents.graph.errors import GraphMismatchError, ThreadBusyError
from agents.graph.state.plan import Topology
from agents.graph.threads.document import ThreadDocument
from agents.runs.changes import change_text, read_changed
from agents.runs.document import Claim


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
class _Written:
    """A document as it is stored, and the changes that were appended to it.

    Attributes:
        number: Number of the document's checkpoint; each change has the next number.
    """

    text: str
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
        head: The newest checkpoint; None before the first.
        thread_id: Id of the thread; empty if nothing is stored.
        is_running: Whether a run works on the thread, or its process died.

    Raises:
        AgentConfigError: The id is not a text.
    """

    def __init__(self, store: CheckpointStore | None, thread_id: str) -> None:
        if not isinstance(thread_id, str):
            raise AgentConfigError(f"a thread id is a text, got a {type(thread_id).__name__}")
        self._store = store if thread_id else None
        self._key = stored_id(thread_id)
        self._stored: StoredCheckpoint | None = None
        self._version = 0
        self._base = 0
        self._written = self._copy = _Written("")
        self._data: dict[str, Json] = {}
        self.is_running = False
        self.thread_id = thread_id if self._store is not None else ""
        self.head: ThreadDocument | None = None

    async def load(self) -> ThreadDocument | None:
        """Read the head."""
        stored = await self._store.load(self._key) if self._store else None
        if stored is None:
            return None
        self._stored, self._version, self._base = stored, stored.version, stored.base
        self.is_running = stored.status is CheckpointStatus.RUNNING
        self._data = read_changed(stored.data, stored.changes)
        self.head = ThreadDocument.from_json(self._data)
        number = self.head.number - len(stored.changes)
        self._written = _Written(stored.data, tuple(stored.changes), number)
        return self.head

    async def need_head(self, topology: Topology) -> ThreadDocument:
        """Read the head of a thread of this graph."""
        head = await self.any_head()
        self.check_graph(topology)
        return head

    async def any_head(self) -> ThreadDocument:
        """Read the head of a thread of any graph."""
        head = await self.load()
        if head is None:
            raise CheckpointNotFoundError(self.thread_id)
        return self.seen(head)

    def seen(self, document: ThreadDocument) -> ThreadDocument:
        """Return the head with its current phase: a claim may have changed it since."""
        return replace(document, phase="running") if self.is_running else document

    def check_graph(self, topology: Topology) -> None:
        """Check that the head, if any, belongs to this graph."""
        if self.head is not None and self.head.graph != topology.name:
            raise GraphMismatchError(self.thread_id, self.head.graph, topology.name)

    def refuse_running(self) -> None:
        """Raise if another run works on the thread."""
        if self.is_running:
            raise ThreadBusyError(self.thread_id)

    @property
    def origin(self) -> int:
        """Number of the stored document. An answer beside others only appends to it."""
        return self._written.number

    @property
    def claimed(self) -> Claim:
        """Return the claim of the current run, if any."""
        claim = Claim.from_text(self._stored.claim if self._stored else "")
        if not isinstance(claim.command, Command | None):
            raise CheckpointDecodeError("the command of a resume is damaged")
        return claim

    async def claim(self, claim: Claim) -> None:
        """Claim the head for a resume. Only one of two concurrent claims succeeds."""
        if self._store is not None:
            text = claim.to_text()
            read_back(text, Claim.from_text)
            self._version = await self._store.claim(self._key, text, expected_version=self._version)
            self.is_running = True

    async def save(self, document: ThreadDocument, *, is_new: bool = True) -> ThreadDocument:
        """Replace the head; the old one becomes a part of the history.

        Args:
            document: The new head; its number and parent are set here.
            is_new: Whether it is another checkpoint than the head, with a number of its own.

        Returns:
            The stored head.
        """
        before = self.head
        if before is not None and is_new:
            document = replace(document, number=before.number + 1)
        elif before is not None:
            document = replace(document, number=before.number, parent=before.parent)
        if is_new and await self._amend(document):
            return document
        if before is not None and (is_new or self._written.changes):
            # Copy first: a crash in between leaves an extra copy, but no gap in the history.
            await self._archive()
        if self._store is not None:
            self.is_running = document.phase == "running"
            self._data = document.to_json()
            text = to_text(self._data)
            self._version = self._base = await self._store.save(
                self._key,
                text,
                status=CheckpointStatus.RUNNING if self.is_running else CheckpointStatus.PENDING,
                expected_version=self._version,
            )
            self._written = _Written(text, (), document.number)
        self.head = document
        return document

    async def _amend(self, document: ThreadDocument) -> bool:
        """Append the change to a head that waits for people, unless a full write is cheaper."""
        store, written = self._store, self._written
        is_waiting = self.is_running and document.phase == "paused"
        if not is_waiting or not isinstance(store, AmendingStore):
            return False
        data = document.to_json()
        change = change_text(self._data, data, text=written.text, changes=written.changes)
        if not change:
            return False
        self._version = self._base = await store.amend(
            self._key, change, expected_version=self._version
        )
        self._written = replace(written, changes=(*written.changes, change))
        self._data, self.head, self.is_running = data, document, False
        return True

    def journal(self, *, every_step: bool, resumed: bool = False) -> Journal:
        """Return the journal of the head, with its existing entries if `resumed`."""
        known = self._stored.journal if resumed and self._stored else ()
        return Journal(
            self._store, self._key, base=self._base, entries=known, every_step=every_step
        )

    async def read(self, number: int) -> ThreadDocument:
        """Read one checkpoint of the history. The head must be loaded."""
        head = self.head
        if head is not None and number == head.number:
            return self.seen(head)
        if head is None or not 1 <= number < head.number:
            raise CheckpointNotFoundError(self._copy_id(number))
        written = self._written if self._written.has(number) else await self._copied(number)
        return ThreadDocument.from_json(written.data(number))

    async def _copied(self, number: int) -> _Written:
        """Return the copy that contains a checkpoint."""
        # A change has no copy of its own: the nearest earlier copy contains it.
        for at in range(number, 0, -1):
            if self._copy.has(number):
                return self._copy
            stored = await self._store.load(self._copy_id(at)) if self._store else None
            if stored is not None:
                data = from_text(stored.data)
                changes = tuple(cast("list[str]", data.get("changes", [])))
                first = ThreadDocument.from_json(data).number
                self._copy = _Written(stored.data, changes, first)
                if self._copy.has(number):
                    return self._copy
                break
        raise CheckpointNotFoundError(self._copy_id(number))

    async def _archive(self) -> None:
        """Copy the head with its changes.

        An existing copy was left by a process that died before it replaced the head.
        """
        if self._store is None:
            return
        written = self._written
        key, text = self._copy_id(written.number), written.text
        if written.changes:
            text = to_text({**from_text(text), "changes": [*written.changes]})
        pending = CheckpointStatus.PENDING
        try:
            await self._store.save(key, text, status=pending, expected_version=0)
        # Answers only add changes to a copy, so the longer copy contains the shorter one.
        except CheckpointConflictError:
            left = await self._store.load(key)
            if left is None or len(left.data) >= len(text):
                return
            with contextlib.suppress(CheckpointConflictError):
                await self._store.save(key, text, status=pending, expected_version=left.version)

    def _copy_id(self, number: int) -> str:
        return f"{self._key}@{number}"
