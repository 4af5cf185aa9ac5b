"""Programs that wait for a change of their requests and threads.

This process sees its own writes at once. It looks for those of other processes at intervals, and
asks the database only for what has changed, however many programs wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

from bot.api.requests import is_of
from bot.api.shapes import ApiRequest
from bot.ports.process import Clock
from bot.records.approval import Approval
from bot.records.starts import revisions_of
from bot.stores import Stores
from storage.errors import StorageError

LOOK_S = 0.05
"""Seconds between two looks for changes of other processes."""
OVERLAP_MS = 100
"""How much earlier than the look before it a look begins: a change is stored after its time."""
LONG_OVERLAP_MS = 2_000
"""The same for one look in `LOOKS`: clocks of processes differ."""
LOOKS = 20
"""Looks of which one has the long overlap."""
MOST_CHANGED = 1_000
"""How many changed requests a slow reader may have before it; with more, its feed ends."""

C = TypeVar("C")


@dataclass(eq=False, slots=True)
class RequestChange:
    """A changed request, for all who wait for it.

    Attributes:
        approval: The request after the change.
    """

    approval: Approval
    _state: asyncio.Future[ApiRequest] | None = None

    async def state(self, make: Callable[[Approval], Awaitable[ApiRequest]]) -> ApiRequest:
        """Return the state of the request; it is built once, whoever else waits or leaves."""
        if self._state is None:
            self._state = asyncio.ensure_future(make(self.approval))
        return await asyncio.shield(self._state)


@dataclass(eq=False, slots=True)
class ChangeWatch(Generic[C]):
    """Changes of one request or thread, for one call that waits.

    Attributes:
        program: Id of the program.
    """

    program: str
    _newest: C | None = None
    _event: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, change: C | None) -> None:
        """Wake the call with a change; with None because nothing is held any more."""
        self._newest = change
        self._event.set()

    async def next(self, *, timeout_s: float) -> C | None:
        """Return the newest change since the last call; None after the time, or at a stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        change, self._newest = self._newest, None
        self._event.clear()
        return change


@dataclass(eq=False, slots=True)
class Feed:
    """The changed requests of one program, each once, in the order of their first change.

    Attributes:
        program: Id of the program.
        is_over: Whether the feed has ended: the bot stops, or its reader is too slow.
    """

    program: str
    is_over: bool = False
    _names: dict[str, None] = field(default_factory=dict)
    _has_some: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, approval_id: str) -> None:
        """Add a changed request."""
        self._names[approval_id] = None
        self.is_over = self.is_over or len(self._names) > MOST_CHANGED
        self._has_some.set()

    def end(self) -> None:
        """End the feed at once."""
        self.is_over = True
        self._has_some.set()

    async def next(self, *, timeout_s: float) -> str | None:
        """Return the id of a changed request; None after the time, or at the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._has_some.wait()
        name = next(iter(self._names), None)
        if name is not None:
            del self._names[name]
        if not self._names and not self.is_over:
            self._has_some.clear()
        return None if self.is_over else name


@dataclass(slots=True, kw_only=True)
class Waiters:
    """Wakes programs when their requests and threads change.

    Args:
        storage: The database.
        clock: The time now.
        sleep: Waits for some seconds.
    """

    storage: Stores
    clock: Clock
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _watches: dict[str, set[ChangeWatch[RequestChange]]] = field(default_factory=dict)
    _thread_watches: dict[str, set[ChangeWatch[int]]] = field(default_factory=dict)
    _feeds: set[Feed] = field(default_factory=set)
    _looking: asyncio.Task[None] | None = None
    _is_stopped: bool = False

    @property
    def is_stopped(self) -> bool:
        """Whether nothing is held any more."""
        return self._is_stopped

    @property
    def held(self) -> int:
        """Number of calls that wait."""
        of_requests, of_threads = self._watches.values(), self._thread_watches.values()
        return sum(map(len, of_requests)) + sum(map(len, of_threads))

    def changed(self, approval: Approval) -> None:
        """Wake those who wait for a request, and tell the feeds of its program."""
        change = RequestChange(approval)
        for watch in self._watches.get(approval.approval_id, ()):
            watch.tell(change)
        for feed in self._feeds:
            if is_of(approval, feed.program):
                feed.add(approval.approval_id)

    @contextmanager
    def watch(self, approval_id: str, *, program: str) -> Iterator[ChangeWatch[RequestChange]]:
        """Watch a request. Read it only then, so that no change falls between."""
        watch = ChangeWatch[RequestChange](program)
        with _kept(self._watches, approval_id, watch):
            self._look_on()
            yield watch

    @contextmanager
    def watch_thread(self, start_id: str, *, program: str) -> Iterator[ChangeWatch[int]]:
        """Watch the thread of a start for other revisions; see `watch`."""
        watch = ChangeWatch[int](program)
        with _kept(self._thread_watches, start_id, watch):
            self._look_on()
            yield watch

    @asynccontextmanager
    async def feed(self, program: str, *, since_ms: int | None) -> AsyncIterator[Feed]:
        """Open a feed of a program's requests, from a time on, or from now on."""
        feed = Feed(program=program, is_over=self._is_stopped)
        self._feeds.add(feed)
        self._look_on()
        try:
            if since_ms is not None:
                for approval in await self._changed_since({program}, since_ms):
                    feed.add(approval.approval_id)
            yield feed
        finally:
            self._feeds.discard(feed)

    def stop(self) -> None:
        """Wake all who wait, and hold nobody from now on."""
        self._is_stopped = True
        for watches in self._watches.values():
            for watch in watches:
                watch.tell(None)
        for thread_watches in self._thread_watches.values():
            for thread_watch in thread_watches:
                thread_watch.tell(None)
        for feed in self._feeds:
            feed.end()

    def _look_on(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._poll_changes())

    async def _poll_changes(self) -> None:
        """Look for changes while somebody waits."""
        since_ms = self.clock()
        seen: dict[str, int] = {}
        revisions: dict[str, int] = {}
        for number in count():
            if self._is_stopped or not (self._watches or self._thread_watches or self._feeds):
                break
            programs = {watch.program for watches in self._watches.values() for watch in watches}
            programs |= {feed.program for feed in self._feeds}
            is_long = number % LOOKS == 0
            overlap_ms = LONG_OVERLAP_MS if is_long else OVERLAP_MS
            now = self.clock()
            with suppress(StorageError):
                newest: dict[str, int] = {}
                for approval in await self._changed_since(programs, since_ms - overlap_ms):
                    name, revision = approval.approval_id, approval.shown_revision
                    newest[name] = revision
                    if seen.get(name) != revision:
                        self.changed(approval)
                seen, since_ms = newest if is_long else seen | newest, now
                revisions = await self._threads_changed_since(revisions)
            await self.sleep(LOOK_S)

    async def _threads_changed_since(self, seen: dict[str, int]) -> dict[str, int]:
        """Wake those whose threads have another revision than seen; return the present ones."""
        if not self._thread_watches:
            return {}
        newest = await revisions_of(
            self.storage.starts, self.storage.threads, list(self._thread_watches)
        )
        for start_id, revision in newest.items():
            if seen.get(start_id) != revision:
                for watch in self._thread_watches.get(start_id, ()):
                    watch.tell(revision)
        return newest

    async def _changed_since(self, programs: set[str], since_ms: int) -> list[Approval]:
        changed: list[Approval] = []
        for program in sorted(programs):
            where = {"asker.program": program, "shown_ms": {"$gte": since_ms}}
            page = await self.storage.approvals.find(where, sort=["shown_ms"], limit=MOST_CHANGED)
            changed += page.documents
        return changed


@contextmanager
def _kept(
    watches: dict[str, set[ChangeWatch[C]]], key: str, watch: ChangeWatch[C]
) -> Iterator[None]:
    """Keep a watch among those of its request or thread until the block ends."""
    watches.setdefault(key, set()).add(watch)
    try:
        yield
    finally:
        watches[key].remove(watch)
        if not watches[key]:
            del watches[key]
