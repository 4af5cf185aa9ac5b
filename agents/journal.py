"""The journal of a run: what has happened since its document was written.

Entries of the segment that is going on are appended one by one; entries that a dead process left
are looked up, so that nothing that they tell of is done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from agents.checkpoint import CheckpointStore
from agents.codec import Json, from_text, to_text

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
        entries: What is in it.
        every_step: Whether model answers and the results of tools without a gate are kept, too.
    """

    def __init__(
        self,
        store: CheckpointStore | None,
        checkpoint_id: str,
        *,
        base: int = 0,
        entries: Sequence[str] = (),
        every_step: bool = False,
    ) -> None:
        self._store = store if base else None
        self._checkpoint_id = checkpoint_id
        self._base = base
        self._index = 0
        self._known: dict[tuple[str, str], dict[str, Json]] = {}
        self._started: set[str] = set()
        self._failure: Exception | None = None
        self.every_step = every_step and self._store is not None
        for entry in entries:
            self._learn(from_text(entry))

    @property
    def has_entries(self) -> bool:
        """Whether anything has happened since the document was written."""
        return self._index > 0

    def find(self, kind: str, at: str) -> dict[str, Json] | None:
        """What a process before this one noted; None when it noted nothing."""
        return self._known.get((kind, at))

    def has_started(self, at: str) -> bool:
        """Whether this process noted that a gated call has started."""
        return at in self._started

    def raise_failure(self) -> None:
        """Raise what made the journal fail: after that, nothing that depends on it may go on."""
        if self._failure is not None:
            raise self._failure

    async def append(self, kind: str, at: str, data: dict[str, Json] | None = None) -> None:
        """Note that something has happened.

        Raises:
            CheckpointConflictError: Somebody else works on this run: stop at once.
        """
        if kind == STARTED:
            self._started.add(at)
        if self._store is None:
            return
        self.raise_failure()
        entry = to_text({"kind": kind, "at": at, **(data or {})})
        index, self._index = self._index, self._index + 1
        try:
            await self._store.append(self._checkpoint_id, entry, base=self._base, index=index)
        except Exception as error:
            self._failure = error
            raise

    def _learn(self, entry: dict[str, Json]) -> None:
        self._index += 1
        self._known[cast("str", entry.get("kind")), cast("str", entry.get("at"))] = entry
