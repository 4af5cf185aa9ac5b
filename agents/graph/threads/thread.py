"""Threads: how a graph's checkpoints are stored.

The thread's own checkpoint is its head: one document with all that is needed to go on. Before a
head is replaced, it is copied under an id of its own, `<thread>@<number>`, and never changed any
more: that is the thread's history. Answers are noted by the claim that takes the head, and nodes
that finish in its journal, so that a process that dies in between loses neither. What a partial
answer changed is noted in the journal as well, as a checkpoint that follows from the head; the copy
of the head has all of these.
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
    """Return the id that a thread is stored under: its own, unless that ends like a copy's."""
    return f"{thread_id}@" if re.search(r"@\d+@*$", thread_id) else thread_id


def thread_of(stored: str) -> str:
    """Return the id of the thread that is stored under an id; empty when it is a copy of one."""
    if re.search(r"@\d+$", stored):
        return ""
    return stored[:-1] if re.search(r"@\d+@+$", stored) else stored


def is_copy(stored: str, key: str) -> bool:
    """Whether an id is that of a copy of the thread that is stored under a key."""
    return re.fullmatch(re.escape(key) + r"@\d+", stored) is not None


class GraphThread:
    """One thread in a store, as this process knows it.

    Args:
        store: Where it is kept; None keeps nothing.
        thread_id: Its id; empty keeps nothing.

    Attributes:
        head: Its head; None when it has none yet.
        thread_id: Its id; empty when nothing is kept.

    Raises:
        AgentConfigError: The id is no text.
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
            CheckpointError: It cannot be read.
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
            CheckpointNotFoundError: There is none: it never ran.
            GraphMismatchError: It is of another graph.
        """
        head = await self.any_head()
        self.check_graph(topology)
        return head

    async def any_head(self) -> ThreadDocument:
        """Read the head of a thread, of whatever graph.

        Raises:
            CheckpointNotFoundError: There is none: it never ran.
        """
        head = await self.load()
        if head is None:
            raise CheckpointNotFoundError(self.thread_id)
        return self.seen(head)

    def seen(self, document: ThreadDocument) -> ThreadDocument:
        """The head as it is now: somebody may have claimed it since it was written."""
        return replace(document, phase="running") if self.is_running else document

    def check_graph(self, topology: Topology) -> None:
        """Make sure that the head, if there is one, is of this graph.

        Raises:
            GraphMismatchError: It is of another.
        """
        if self.head is not None and self.head.graph != topology.name:
            raise GraphMismatchError(self.thread_id, self.head.graph, topology.name)

    def refuse_running(self) -> None:
        """Make sure that nobody works on it.

        Raises:
            ThreadBusyError: Somebody does, or died doing so.
        """
        if self.is_running:
            raise ThreadBusyError(self.thread_id)

    @property
    def base(self) -> int:
        """The version of the stored document; answers that leave others waiting keep it."""
        return self._base

    @property
    def is_running(self) -> bool:
        """Whether somebody works on it, or died doing so."""
        return self._stored is not None and self._stored.status is CheckpointStatus.RUNNING

    @property
    def claimed(self) -> GraphClaim:
        """Return the claim that it was resumed with, if somebody works on it."""
        return GraphClaim.from_text(self._stored.claim if self._stored else "")

    async def claim(self, claim: GraphClaim) -> None:
        """Take the head for a resume; of two that try, one does.

        Raises:
            CheckpointConflictError: Somebody else did.
        """
        if self._store is not None:
            text = claim.to_text()
            read_back(text, GraphClaim.from_text)
            self._version = await self._store.claim(self._key, text, expected_version=self._version)

    async def save(self, document: ThreadDocument, *, is_new: bool = True) -> ThreadDocument:
        """Replace the head, which becomes a part of the history.

        Args:
            document: The new head; its number and parent are set here.
            is_new: Whether it is another checkpoint than the head, with a number of its own.

        Returns:
            The head, as it is stored.

        Raises:
            CheckpointConflictError: Somebody else wrote first.
        """
        before = self.head
        if before is not None and is_new:
            document = replace(document, number=before.number + 1)
        elif before is not None:
            document = replace(document, number=before.number, parent=before.parent)
        if before is not None and (is_new or self._partials):
            # The copy comes first: a crash in between leaves a copy too many, and no gap.
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
        """Note what a partial answer changed, and give the thread back.

        Args:
            document: The thread as it is now.
            journal: Of the run that changed it.

        Returns:
            The head, as it is stored; None when it must be written whole: see `save`.

        Raises:
            CheckpointConflictError: Somebody else wrote first.
        """
        before, store = self.head, self._store
        if before is None or not isinstance(store, GraphThreadStore):
            return None
        change = difference(before, document)
        if change is None:
            return None
        # Noted, then given back: `is_settled` finds out when a process died in between.
        await journal.append(PARTIAL, "", {"claim": self._version, **change})
        self._version = await store.release(self._key, expected_version=self._version)
        self.head = replace(document, number=before.number + 1, parent=before.number)
        return self.head

    @property
    def is_settled(self) -> bool:
        """Whether a process died when its work was noted, but the thread not yet given back."""
        is_noted = bool(self._partials) and self._partials[-1].get("claim") == self._version
        return self.is_running and is_noted

    async def settle(self) -> None:
        """Give the thread back for somebody who died.

        Raises:
            CheckpointConflictError: Somebody else did, or wrote.
        """
        store = cast("GraphThreadStore", self._store)
        self._version = await store.release(self._key, expected_version=self._version)

    def journal(self, *, every_step: bool, resumed: bool = False) -> Journal:
        """The journal that belongs to the head.

        Args:
            every_step: Whether each node that finishes is noted.
            resumed: Whether entries that are there already count.
        """
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
        """Read one checkpoint of the history; the head has been loaded.

        Raises:
            CheckpointNotFoundError: There is none of that number.
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
        """The copy that has a checkpoint: its own, or the one that it followed from."""
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
        """Copy the head before it is replaced, with all that followed from it.

        A copy that is there already was left by somebody who died before the head was replaced.
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
    """Count the entries of a journal from before the work that goes on now."""
    ends = [at for at, text in enumerate(journal, 1) if from_text(text).get("kind") == PARTIAL]
    return ends[-1] if ends else 0


def _has(copy: tuple[ThreadDocument, list[dict[str, Json]]], number: int) -> bool:
    document, partials = copy
    return document.number <= number <= document.number + len(partials)
