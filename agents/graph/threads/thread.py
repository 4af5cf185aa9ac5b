"""A thread in the checkpoint store: its head, its history and its journal.

The thread's own checkpoint is its head: one document with the state that a resume needs. Before a
head is replaced, it is copied to the immutable id `<thread>@<number>`; these copies are the
thread's history. The claim of a resume stores the answers, and the journal stores finished nodes,
so that a crash in between loses neither. The changes of a partial answer are journaled as well, as
a checkpoint that follows from the head; the copy of the head contains all of these.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from agents.core.checkpoint import (
    CheckpointStatus,
    CheckpointStore,
    GraphThreadStore,
    StoredCheckpoint,
)
from agents.core.codec import Json, from_text, read_back, to_text
from agents.core.errors import AgentConfigError, CheckpointConflictError, CheckpointNotFoundError
from agents.core.journal import Journal
from agents.graph.errors import GraphMismatchError, ThreadBusyError
from agents.graph.state.plan import Topology
from agents.graph.threads.document import GraphClaim, ThreadDocument
from agents.graph.threads.partial import PARTIAL, applied, difference


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


class GraphThread:
    """One thread in a store, as this process knows it.

    Attributes:
        head: The newest checkpoint; None before the first.
        thread_id: Id of the thread; empty if nothing is stored.

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
        self._text = ""
        self._number = 0
        self._partials: list[dict[str, Json]] = []
        self._copy: tuple[ThreadDocument, list[dict[str, Json]]] | None = None
        self.thread_id = thread_id if self._store is not None else ""
        self.head: ThreadDocument | None = None

    async def load(self) -> ThreadDocument | None:
        """Read the head.

        Raises:
            CheckpointError: The head cannot be read.
        """
        stored = await self._store.load(self._key) if self._store else None
        if stored is None:
            return None
        self._stored, self._version, self._base = stored, stored.version, stored.base
        self._text = stored.data
        document = ThreadDocument.from_text(stored.data)
        self._number = document.number
        self._partials = _partials(map(from_text, stored.journal))
        self.head = applied(document, self._partials)
        return self.head

    async def need_head(self, topology: Topology) -> ThreadDocument:
        """Read the head of a thread of this graph.

        Raises:
            CheckpointNotFoundError: The thread never ran.
            GraphMismatchError: The thread belongs to another graph.
        """
        head = await self.any_head()
        self.check_graph(topology)
        return head

    async def any_head(self) -> ThreadDocument:
        """Read the head of a thread of any graph.

        Raises:
            CheckpointNotFoundError: The thread never ran.
        """
        head = await self.load()
        if head is None:
            raise CheckpointNotFoundError(self.thread_id)
        return self.seen(head)

    def seen(self, document: ThreadDocument) -> ThreadDocument:
        """Return the head with its current phase: a claim may have changed it since."""
        return replace(document, phase="running") if self.is_running else document

    def check_graph(self, topology: Topology) -> None:
        """Check that the head, if any, belongs to this graph.

        Raises:
            GraphMismatchError: The head belongs to another graph.
        """
        if self.head is not None and self.head.graph != topology.name:
            raise GraphMismatchError(self.thread_id, self.head.graph, topology.name)

    def refuse_running(self) -> None:
        """Raise if another run works on the thread.

        Raises:
            ThreadBusyError: The thread is busy, or its process died.
        """
        if self.is_running:
            raise ThreadBusyError(self.thread_id)

    @property
    def base(self) -> int:
        """Version of the stored document. Partial answers do not change it."""
        return self._base

    @property
    def is_running(self) -> bool:
        """Whether a run works on the thread, or its process died."""
        return self._stored is not None and self._stored.status is CheckpointStatus.RUNNING

    @property
    def claimed(self) -> GraphClaim:
        """Return the claim of the current run, if any."""
        return GraphClaim.from_text(self._stored.claim if self._stored else "")

    async def claim(self, claim: GraphClaim) -> None:
        """Claim the head for a resume. Only one of two concurrent claims succeeds.

        Raises:
            CheckpointConflictError: Another process claimed the head.
        """
        if self._store is not None:
            text = claim.to_text()
            read_back(text, GraphClaim.from_text)
            self._version = await self._store.claim(self._key, text, expected_version=self._version)

    async def save(self, document: ThreadDocument, *, is_new: bool = True) -> ThreadDocument:
        """Replace the head; the old one becomes a part of the history.

        Args:
            document: The new head; its number and parent are set here.
            is_new: Whether it is another checkpoint than the head, with a number of its own.

        Returns:
            The stored head.

        Raises:
            CheckpointConflictError: Another process wrote first.
        """
        before = self.head
        if before is not None and is_new:
            document = replace(document, number=before.number + 1)
        elif before is not None:
            document = replace(document, number=before.number, parent=before.parent)
        if before is not None and (is_new or self._partials):
            # Copy first: a crash in between leaves an extra copy, but no gap in the history.
            await self._archive()
        if self._store is not None:
            running = document.phase == "running"
            text = document.to_text()
            self._version = await self._store.save(
                self._key,
                text,
                status=CheckpointStatus.RUNNING if running else CheckpointStatus.PENDING,
                expected_version=self._version,
            )
            self._base, self._text = self._version, text
            self._number, self._partials = document.number, []
        self.head = document
        return document

    async def note(self, document: ThreadDocument, journal: Journal) -> ThreadDocument | None:
        """Journal the changes of a partial answer and release the thread.

        Returns:
            The stored head; None if it must be written whole: see `save`.

        Raises:
            CheckpointConflictError: Another process wrote first.
        """
        before, store = self.head, self._store
        if before is None or not isinstance(store, GraphThreadStore):
            return None
        change = difference(before, document)
        # More than one step's nodes changed, which entries cannot express.
        if change is None:
            return None
        # Journal, then release: `is_settled` detects a crash in between.
        await journal.append(PARTIAL, "", {"claim": self._version, **change})
        self._version = await store.release(self._key, expected_version=self._version)
        self.head = replace(document, number=before.number + 1, parent=before.number)
        return self.head

    @property
    def is_settled(self) -> bool:
        """Whether a process died between journaling its work and releasing the thread."""
        is_noted = bool(self._partials) and self._partials[-1].get("claim") == self._version
        return self.is_running and is_noted

    async def settle(self) -> None:
        """Release the thread after a crash of its process.

        Raises:
            CheckpointConflictError: Another process released it, or wrote.
        """
        store = cast("GraphThreadStore", self._store)
        self._version = await store.release(self._key, expected_version=self._version)

    def journal(self, *, every_step: bool, resumed: bool = False) -> Journal:
        """Return the journal of the head, with its existing entries if `resumed`."""
        known = self._stored.journal if resumed and self._stored else ()
        offset = _done(known)
        return Journal(
            self._store,
            self._key,
            base=self._base,
            entries=known[offset:],
            offset=offset,
            every_step=every_step,
        )

    async def read(self, number: int) -> ThreadDocument:
        """Read one checkpoint of the history. The head must be loaded.

        Raises:
            CheckpointNotFoundError: No checkpoint has this number.
        """
        head = self.head
        if head is not None and number == head.number:
            return self.seen(head)
        if head is None or not 1 <= number < head.number:
            raise CheckpointNotFoundError(self._copy_id(number))
        if number >= self._number:
            document = ThreadDocument.from_text(self._text)
            return applied(document, self._partials[: number - document.number])
        document, partials = await self._copied(number)
        return applied(document, partials[: number - document.number])

    async def _copied(self, number: int) -> tuple[ThreadDocument, list[dict[str, Json]]]:
        """Return the copy that contains a checkpoint, and its entries of partial answers."""
        # Partial answers have no copy of their own: the nearest earlier copy contains them.
        for at in range(number, 0, -1):
            if self._copy is not None and _has(self._copy, number):
                return self._copy
            stored = await self._store.load(self._copy_id(at)) if self._store else None
            if stored is not None:
                data = from_text(stored.data)
                partials = cast("list[dict[str, Json]]", data.get("partials", []))
                self._copy = (ThreadDocument.from_text(stored.data), partials)
                if _has(self._copy, number):
                    return self._copy
                break
        raise CheckpointNotFoundError(self._copy_id(number))

    async def _archive(self) -> None:
        """Copy the head, with the checkpoints that followed from it.

        An existing copy was left by a process that died before it replaced the head.
        """
        if self._store is None:
            return
        key, text = self._copy_id(self._number), self._text
        if self._partials:
            data = from_text(text)
            text = to_text({**data, "partials": cast("Json", self._partials)})
        pending = CheckpointStatus.PENDING
        try:
            await self._store.save(key, text, status=pending, expected_version=0)
        # Partial answers only add to a copy, so the longer copy contains the shorter one.
        except CheckpointConflictError:
            left = await self._store.load(key)
            if left is None or len(left.data) >= len(text):
                return
            with contextlib.suppress(CheckpointConflictError):
                await self._store.save(key, text, status=pending, expected_version=left.version)

    def _copy_id(self, number: int) -> str:
        return f"{self._key}@{number}"


def _partials(entries: Iterable[dict[str, Json]]) -> list[dict[str, Json]]:
    return [entry for entry in entries if entry.get("kind") == PARTIAL]


def _done(journal: Sequence[str]) -> int:
    """Count the entries of a journal from before the current work."""
    ends = [at for at, text in enumerate(journal, 1) if from_text(text).get("kind") == PARTIAL]
    return ends[-1] if ends else 0


def _has(copy: tuple[ThreadDocument, list[dict[str, Json]]], number: int) -> bool:
    document, partials = copy
    return document.number <= number <= document.number + len(partials)
