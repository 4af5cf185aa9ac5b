"""The journal of a run: what has happened since its document was written.

Entries of the segment that is going on are appended one by one; entries that a dead process left
are looked up, so that nothing that they tell of is done again.
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
    WorkStarting,
)

T = TypeVar("T")

MODEL = "model"
STARTED = "started"
RELEASED = "released"
FINISHED = "finished"
RECOVERED = "recovered"
NODE = "node"
NODE_FAILED = "node_failed"
ONCE = "once"


class Journal:
    """Appends to the journal of one checkpoint, and answers what it says already.

    Args:
        store: Where it is kept; None keeps nothing.
        checkpoint_id: Whose journal it is.
        base: Version of the document that it belongs to; 0 means that there is none.
        entries: What is in it, and still counts.
        offset: How many entries are before these, and count no more.
        every_step: Whether model answers and the results of tools without a gate are kept, too.
        recorder: Told of what people let run, before it starts and when it is noted.
    """

    def __init__(  # noqa: PLR0913 - two by position, the rest by keyword
        self,
        store: CheckpointStore | None,
        checkpoint_id: str,
        *,
        base: int = 0,
        entries: Sequence[str] = (),
        offset: int = 0,
        every_step: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        self._store = store if base else None
        self._recorder = recorder
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

    async def release(self, at: str) -> None:
        """Take back this process's note of a start: the error that ended it may be tried again.

        Raises:
            CheckpointConflictError: See `append`.
        """
        if self._started.pop(at, None) is not None:
            await self.append(RELEASED, at)

    async def release_answered(self) -> None:
        """Take back the starts of agents and hooks with an answer; see `release`.

        Raises:
            CheckpointConflictError: See `append`.
        """
        for at in [at for at, entry in self._started.items() if "answered" in entry]:
            await self.release(at)

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

    def forget_starts(self, prefix: str) -> None:
        """Forget the starts that a process before this one noted, where an address begins so."""
        for one in [one for one in self._known if one[0] == STARTED and one[1].startswith(prefix)]:
            del self._known[one]

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
            Exception: The recorder could not keep it: stop as well.
        """
        if self._store is not None or self._recorder is not None:
            entry: dict[str, Json] = {"kind": kind, "at": at, **(data or {})}
            # One after the other: a gap in the indexes would hide what comes after it.
            async with self._lock:
                self.raise_failure()
                await self._keep_entry(entry)
        if kind == STARTED:
            self._started[at] = data or {}

    async def tell_doubt(self, at: str) -> None:
        """Let the recorder know that nobody knows what became of what had started there."""
        if self._recorder is not None:
            doubt = WorkInDoubt(checkpoint_id=self._checkpoint_id, address=at)
            try:
                await self._recorder.noted(doubt)
            except Exception as error:  # not a failure of what is in doubt
                self._failure = error
                raise

    async def depend_on(self, work: Awaitable[T]) -> T:
        """Wait for the application, which has to do its part before the run goes on.

        Raises:
            Exception: It could not: stop at once. No tool has failed, and no answer is used up.
        """
        try:
            return await work
        except Exception as error:
            self._failure = error
            raise

    async def _keep_entry(self, entry: dict[str, Json]) -> None:
        if self._is_unsure:
            raise CheckpointConflictError(self._checkpoint_id, "an entry was cut off")
        self._is_unsure = True
        try:
            await self._write(entry)
        except Exception as error:
            self._failure = error
            raise
        self._is_unsure = False

    async def _write(self, entry: dict[str, Json]) -> None:
        recorder = self._recorder
        if recorder is not None and entry["kind"] == STARTED:
            await recorder.starting(_start_of(self._checkpoint_id, entry, self._base))
        if self._store is not None:
            text = to_text(entry)
            await self._store.append(self._checkpoint_id, text, base=self._base, index=self._index)
            self._index += 1
        notice = _notice_of(self._checkpoint_id, entry, is_news=True)
        if recorder is not None and notice is not None:
            await recorder.noted(notice)

    def _learn(self, entry: dict[str, Json]) -> None:
        self._index += 1
        kind, at = cast("str", entry.get("kind")), cast("str", entry.get("at"))
        if kind == RELEASED:
            self._known.pop((STARTED, at), None)
        else:
            self._known[kind, at] = entry


def _is_below(address: str, other: str) -> bool:
    return address.startswith(f"{other};")


def notices_in(checkpoint_id: str, entries: Iterable[str]) -> Iterator[WorkNotice]:
    """Read what the journal of a process that is gone says of calls and nodes, in its order.

    Raises:
        CheckpointDecodeError: It is damaged.
    """
    texts = map(from_text, entries)
    found = (_notice_of(checkpoint_id, entry, is_news=False) for entry in texts)
    return (notice for notice in found if notice is not None)


def _start_of(checkpoint_id: str, entry: dict[str, Json], base: int) -> WorkStarting:
    return WorkStarting(
        checkpoint_id=checkpoint_id,
        address=str(entry["at"]),
        arguments=cast("dict[str, Json]", entry["arguments"]),
        segment=base,
        secret=tuple(cast("list[str]", entry.get("secret", []))),
        shown=tuple(cast("list[str]", entry.get("shown", []))),
    )


def _notice_of(checkpoint_id: str, entry: dict[str, Json], *, is_news: bool) -> WorkNotice | None:
    """Return the notice in an entry; None when it is about neither a call nor a node."""
    kind, at = entry.get("kind"), str(entry.get("at", ""))
    if kind == STARTED:
        return WorkStarted(checkpoint_id=checkpoint_id, address=at, is_news=is_news)
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
    if outcome is ToolOutcome.FAILED:
        text = text.removeprefix(FAILURE)
    return CallFinished(checkpoint_id=checkpoint_id, address=at, outcome=outcome, text=text)
