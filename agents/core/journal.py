"""The journal of a run: what happened since its document was written.

Entries are appended while the run is in progress. After a crash, the entries of the dead process
are looked up, so that recorded work is not repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar, cast

from agents.core.checkpoint import CheckpointStore
from agents.core.codec import Json, from_text, to_text
from agents.core.errors import CheckpointConflictError, CheckpointDecodeError
from agents.core.observers import (
    FAILURE,
    CallFinished,
    NodeFailed,
    NodeFinished,
    Recorder,
    ToolOutcome,
    WorkInDoubt,
    WorkNotice,
    WorkStarted,
)

T = TypeVar("T")

MODEL = "model"
STARTED = "started"
RELEASED = "released"
FINISHED = "finished"
RECOVERED = "recovered"
NODE = "node"
NODE_FAILED = "node_failed"
TASK = "task"


class Journal:
    """Appends to the journal of one checkpoint and looks up its entries.

    Args:
        store: Store of the journal; None stores nothing.
        checkpoint_id: Id of the run.
        base: Version of the document that the journal belongs to; 0 if no document exists.
        entries: Existing entries that still count.
        every_step: Whether model answers and results of tools without a gate are stored, too.
        recorder: Called for approved work, after it is stored.
    """

    def __init__(
        self,
        store: CheckpointStore | None,
        checkpoint_id: str,
        *,
        base: int = 0,
        entries: Sequence[str] = (),
        every_step: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        # Entries belong to a version of the document, so they need one.
        self._store = store if base else None
        self._recorder = recorder
        self._checkpoint_id = checkpoint_id
        self._base = base
        self._index = 0
        self._known: dict[tuple[str, str], dict[str, Json]] = {}
        self._started: dict[str, dict[str, Json]] = {}
        self._started_at: dict[str, float] = {}
        self._kept: dict[tuple[str, str], object] = {}
        self._failure: Exception | None = None
        self._is_unsure = False
        self._lock = asyncio.Lock()
        self.every_step = every_step and self._store is not None
        for entry in entries:
            self._learn(from_text(entry))

    @property
    def segment(self) -> int:
        """Version of the document that the journal belongs to; 0 if no document exists."""
        return self._base

    @property
    def has_entries(self) -> bool:
        """Whether the journal has any entry since the document was written."""
        return self._index > 0

    @property
    def is_from_before(self) -> bool:
        """Whether an earlier process stored any entry."""
        return bool(self._known)

    def find(self, kind: str, at: str) -> dict[str, Json] | None:
        """Return the entry of an earlier process, or None."""
        return self._known.get((kind, at))

    def known(self, kind: str) -> Iterator[tuple[str, dict[str, Json]]]:
        """Yield address and entry of everything of a kind that an earlier process stored."""
        return (
            (at, entry) for (entry_kind, at), entry in self._known.items() if entry_kind == kind
        )

    @property
    def knows_work(self) -> bool:
        """Whether an earlier process stored an entry about its work."""
        return any(kind != RECOVERED for kind, _ in self._known)

    def has_started(self, at: str) -> bool:
        """Whether this process has stored the start of a gated call."""
        return at in self._started

    def started(self, at: str) -> dict[str, Json] | None:
        """Return this process's start entry of a gated call, or None if not started."""
        return self._started.get(at)

    def started_at(self, at: str) -> float | None:
        """Return the event loop's time at which this process stored a start, or None."""
        return self._started_at.get(at)

    async def release(self, at: str) -> None:
        """Withdraw this process's start entry: the call failed and may be retried."""
        if self._started.pop(at, None) is not None:
            await self.append(RELEASED, at)

    async def release_answered(self) -> None:
        """Withdraw the start entries of agents and hooks with an answer; see `release`."""
        for at in [at for at, entry in self._started.items() if "answered" in entry]:
            await self.release(at)

    def keep(self, kind: str, at: str, what: object) -> None:
        """Remember a value in memory for a component that runs again in this run."""
        self._kept[kind, at] = what

    def kept(self, kind: str, at: str) -> object | None:
        """Return the value remembered for a component, or None."""
        return self._kept.get((kind, at))

    def forget_below(self, kind: str, at: str) -> None:
        """Forget the values remembered for components below an address."""
        for key in [kept for kept in self._kept if kept[0] == kind and _is_below(kept[1], at)]:
            del self._kept[key]

    def forget_starts(self, prefix: str) -> None:
        """Forget the starts that an earlier process stored for addresses with a prefix."""
        for key in [
            known for known in self._known if known[0] == STARTED and known[1].startswith(prefix)
        ]:
            del self._known[key]

    def knows_below(self, at: str) -> bool:
        """Whether an earlier process stored an entry for a component below an address."""
        return any(_is_below(known, at) for _, known in self._known)

    def has_started_below(self, at: str) -> bool:
        """Whether a gated call below an address has started, in any process."""
        before = (known for kind, known in self._known if kind == STARTED)
        return any(_is_below(known, at) for known in (*self._started, *before))

    @asynccontextmanager
    async def quiet(self) -> AsyncGenerator[None, None]:
        """Wait for a pending write. A cancellation in the block interrupts no write."""
        async with self._lock:
            yield

    @property
    def has_failed(self) -> bool:
        """Whether a write failed, so that another process may own this run."""
        return self._failure is not None or self._is_unsure

    def raise_failure(self) -> None:
        """Raise the error of a failed write. Work that depends on the journal must stop."""
        if self._failure is not None:
            raise self._failure

    async def append(self, kind: str, at: str, data: dict[str, Json] | None = None) -> None:
        """Store an entry.

        Raises:
            CheckpointConflictError: Another process works on this run, or a cancellation
                interrupted an earlier write. The run must stop at once.
            Exception: The recorder failed. The run must stop as well.
        """
        if self._store is not None or self._recorder is not None:
            entry: dict[str, Json] = {"kind": kind, "at": at, **(data or {})}
            # Sequential: a gap in the indexes would hide all later entries.
            async with self._lock:
                self.raise_failure()
                if self._is_unsure:
                    raise CheckpointConflictError(
                        self._checkpoint_id, "an entry was cut off; load it again"
                    )
                # Stays set if a cancellation interrupts the write: the entry may or may not exist.
                self._is_unsure = True
                try:
                    await self._write(entry)
                except Exception as error:
                    self._failure = error
                    raise
                self._is_unsure = False
        # Only after the write: a start that is not stored must not count.
        if kind == STARTED:
            self._started[at] = data or {}
            self._started_at[at] = asyncio.get_running_loop().time()

    async def tell_doubt(self, at: str) -> None:
        """Tell the recorder that the outcome of a started call or node is unknown."""
        if self._recorder is not None:
            doubt = WorkInDoubt(checkpoint_id=self._checkpoint_id, address=at)
            try:
                await self._recorder.noted(doubt)
            except Exception as error:
                self._failure = error
                raise

    async def depend_on(self, work: Awaitable[T]) -> T:
        """Wait for work of the application that must succeed before the run continues.

        Raises:
            Exception: The work failed: stop at once. No tool failed, and no answer was used.
        """
        try:
            return await work
        except Exception as error:
            # Remembered, because code of a tool or agent may catch the error.
            self._failure = error
            raise

    async def _write(self, entry: dict[str, Json]) -> None:
        recorder = self._recorder
        if self._store is not None:
            text = to_text(entry)
            await self._store.append(self._checkpoint_id, text, base=self._base, index=self._index)
            self._index += 1
        # After the write: a crash in between repeats the notice on recovery and does not lose it.
        notice = _notice_of(self._checkpoint_id, entry, is_news=True)
        if recorder is not None and notice is not None:
            await recorder.noted(notice)

    def _learn(self, entry: dict[str, Json]) -> None:
        self._index += 1
        kind, at = cast("str", entry.get("kind")), cast("str", entry.get("at"))
        # A withdrawn start must not put the call in doubt.
        if kind == RELEASED:
            self._known.pop((STARTED, at), None)
        else:
            self._known[kind, at] = entry


def _is_below(address: str, other: str) -> bool:
    # With the separator: `tool:pay:c1` must not match `tool:pay:c10`.
    return address.startswith(f"{other};")


def notices_in(checkpoint_id: str, entries: Iterable[str]) -> Iterator[WorkNotice]:
    """Read the notices about calls and nodes from a dead process's journal, in order."""
    texts = map(from_text, entries)
    notices = (_notice_of(checkpoint_id, entry, is_news=False) for entry in texts)
    return (notice for notice in notices if notice is not None)


def _notice_of(checkpoint_id: str, entry: dict[str, Json], *, is_news: bool) -> WorkNotice | None:
    """Return the notice of an entry, or None if it is about neither a call nor a node."""
    kind, at = entry.get("kind"), str(entry.get("at", ""))
    if kind == STARTED:
        return WorkStarted(
            checkpoint_id=checkpoint_id,
            address=at,
            is_news=is_news,
            is_cancellable=bool(entry.get("cancellable")),
            frozen=cast("dict[str, Json]", entry.get("frozen", {})),
        )
    if kind == FINISHED:
        return _result_of(checkpoint_id, at, entry)
    if kind == NODE:
        return NodeFinished(checkpoint_id=checkpoint_id, address=at)
    if kind == NODE_FAILED:
        error = str(entry.get("error", ""))
        return NodeFailed(checkpoint_id=checkpoint_id, address=at, error=error)
    return None


def _result_of(checkpoint_id: str, at: str, entry: dict[str, Json]) -> CallFinished:
    try:
        outcome = ToolOutcome(str(entry.get("outcome")))
    except ValueError:
        raise CheckpointDecodeError(f"the result of {at} has no known outcome") from None
    text = str(entry.get("said") or entry.get("text", ""))
    # The prefix is for the model; the recorder gets the outcome separately.
    if outcome is ToolOutcome.FAILED:
        text = text.removeprefix(FAILURE)
    return CallFinished(checkpoint_id=checkpoint_id, address=at, outcome=outcome, text=text)
