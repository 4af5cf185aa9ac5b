"""The journal of a run: what has happened since its document was written.

Entries of the segment that is going on are appended one by one; entries that a dead process left
are looked up, so that nothing that they tell of is done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

from agents.core.checkpoint import CheckpointStore
from agents.core.codec import Json, from_text, to_text
from agents.core.errors import CheckpointConflictError

MODEL = "model"
STARTED = "started"
FINISHED = "finished"
RECOVERED = "recovered"


class Journal:
    """Appends to the journal of one checkpoint, and answers what it says already.

    Args:
        store: Where it is kept; None keeps nothing.
        checkpoint_id: Whose journal it is.
        base: Version of the document that it belongs to; 0 means that there is none.
        entries: What is in it, and still counts.
        offset: How many entries are before these, and count no more.
        every_step: Whether model answers and the results of tools without a gate are kept, too.
    """

    def __init__(
        self,
        store: CheckpointStore | None,
        checkpoint_id: str,
        *,
        base: int = 0,
        entries: Sequence[str] = (),
        offset: int = 0,
        every_step: bool = False,
    ) -> None:
        self._store = store if base else None
        self._checkpoint_id = checkpoint_id
        self._base = base
        self._index = self._offset = offset
        self._known: dict[tuple[str, str], dict[str, Json]] = {}
        self._started: dict[str, dict[str, Json]] = {}
        self._kept: dict[tuple[str, str], object] = {}
        self._failure: Exception | None = None
        self._is_unsure = False
        self._lock = asyncio.Lock()
        self.every_step = every_step and self._store is not None
        for entry in entries:
            self._learn(from_text(entry))

    @property
    def has_entries(self) -> bool:
        """Whether anything has happened since the document was written."""
        return self._index > self._offset

    @property
    def is_from_before(self) -> bool:
        """Whether a process before this one noted anything."""
        return bool(self._known)

    def find(self, kind: str, at: str) -> dict[str, Json] | None:
        """Return the note of a process before this one; None when it noted nothing."""
        return self._known.get((kind, at))

    def known(self, kind: str) -> Iterator[tuple[str, dict[str, Json]]]:
        """All that a process before this one noted of a kind: where, and what."""
        return ((at, entry) for (one, at), entry in self._known.items() if one == kind)

    @property
    def knows_work(self) -> bool:
        """Whether a process before this one noted anything that it did."""
        return any(kind != RECOVERED for kind, _ in self._known)

    def has_started(self, at: str) -> bool:
        """Whether this process noted that a gated call has started."""
        return at in self._started

    def started(self, at: str) -> dict[str, Json] | None:
        """Return this process's note of the start of a gated call; None when it has not started."""
        return self._started.get(at)

    def keep(self, kind: str, at: str, what: object) -> None:
        """Keep what this process noted, for a component that is entered once more in this run."""
        self._kept[kind, at] = what

    def kept(self, kind: str, at: str) -> object | None:
        """Return the value that this process keeps for a component; None when it keeps none."""
        return self._kept.get((kind, at))

    def forget_below(self, kind: str, at: str) -> None:
        """Forget what this process kept of components below an address."""
        for one in [one for one in self._kept if one[0] == kind and _is_below(one[1], at)]:
            del self._kept[one]

    def knows_below(self, at: str) -> bool:
        """Whether a process before this one noted anything of components below an address."""
        return any(_is_below(known, at) for _, known in self._known)

    def has_started_below(self, at: str) -> bool:
        """Whether a gated call below an address has started, in this process or before it."""
        before = (known for kind, known in self._known if kind == STARTED)
        return any(_is_below(known, at) for known in (*self._started, *before))

    @asynccontextmanager
    async def quiet(self) -> AsyncGenerator[None, None]:
        """Wait until no entry is being written; whoever is cancelled in here cuts none off."""
        async with self._lock:
            yield

    @property
    def has_failed(self) -> bool:
        """Whether an entry could not be written: somebody else may work on this run."""
        return self._failure is not None or self._is_unsure

    def raise_failure(self) -> None:
        """Raise what made the journal fail: after that, nothing that depends on it may go on."""
        if self._failure is not None:
            raise self._failure

    async def append(self, kind: str, at: str, data: dict[str, Json] | None = None) -> None:
        """Note that something has happened.

        Raises:
            CheckpointConflictError: Somebody else works on this run, or an entry before this one
                was cut off by a cancellation: stop at once.
        """
        if self._store is not None:
            entry = to_text({"kind": kind, "at": at, **(data or {})})
            # One after the other: a gap in the indexes would hide what comes after it.
            async with self._lock:
                self.raise_failure()
                await self._write(self._store, entry)
        if kind == STARTED:
            self._started[at] = data or {}

    async def _write(self, store: CheckpointStore, entry: str) -> None:
        if self._is_unsure:
            raise CheckpointConflictError(self._checkpoint_id, "an entry was cut off")
        self._is_unsure = True
        try:
            await store.append(self._checkpoint_id, entry, base=self._base, index=self._index)
        except Exception as error:
            self._failure = error
            raise
        self._index += 1
        self._is_unsure = False

    def _learn(self, entry: dict[str, Json]) -> None:
        self._index += 1
        self._known[cast("str", entry.get("kind")), cast("str", entry.get("at"))] = entry


def _is_below(address: str, other: str) -> bool:
    return address.startswith(f"{other};")
