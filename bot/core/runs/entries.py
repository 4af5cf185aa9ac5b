"""Entries of the audit that wait for a moment, so that one write takes all of them along.

That something is decided, that its run is told of it, and that its call starts is mostly one
moment. What is held here stands on another record already: the decision on its approval, what the
run is told in its claim. So whoever goes on after a crash can note it once more; and until it is in
the audit, no call starts, and nothing of the run is kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from agents.core.checkpoint import AmendingStore, CheckpointStatus, StoredCheckpoint
from bot.core.work import Retry
from bot.ports.process import Spawn
from storage.base import SameStorage, Storage
from storage.errors import StorageError
from storage.ports.audit import AuditStore
from storage.records import AuditEntry

logger = logging.getLogger(__name__)

SOON_S = 0.8
"""After this, held entries are written by themselves: a start may wait for look-ups."""
AGAIN = Retry(timedelta(seconds=SOON_S), timedelta(seconds=30))
"""Entries that cannot be written are tried again like all else."""


class WriteTimer(Protocol):
    """A call that comes after a while."""

    def cancel(self) -> None:
        """Keep it from coming."""


Later = Callable[[float, Callable[[], None]], WriteTimer]
"""Calls a function after some seconds."""


def _later(seconds: float, call: Callable[[], None]) -> WriteTimer:
    return asyncio.get_running_loop().call_later(seconds, call)


@dataclass(slots=True)
class _ThreadEntries:
    """The held entries of one thread.

    Attributes:
        entries: By id: what is noted again is the same.
        timer: Writes them when nothing else has.
        failures: How often that was tried in vain.
    """

    entries: dict[str, AuditEntry] = field(default_factory=dict)
    timer: WriteTimer | None = None
    failures: int = 0


@dataclass(frozen=True, slots=True)
class HeldEntries:
    """The audit, by which an entry takes along what is held of its thread.

    Args:
        audit: Where they go.
        spawn: Starts the writing of what nothing else has taken along.
        later: Waits for that.
    """

    audit: AuditStore
    spawn: Spawn
    later: Later = _later
    _held: dict[str, _ThreadEntries] = field(default_factory=dict)
    _writing: dict[str, asyncio.Event] = field(default_factory=dict)

    def hold(self, thread_id: str, entries: Sequence[AuditEntry]) -> None:
        """Keep entries for the next write of their thread, or for a second.

        Args:
            thread_id: Of the thread whose lease this process has.
            entries: What can be told anew of other records, should the process die.
        """
        if not entries:
            return
        held = self._held.setdefault(thread_id, _ThreadEntries())
        held.entries.update((one.entry_id, one) for one in entries)
        if held.timer is None:
            wait_s = AGAIN.wait_ms(held.failures, thread_id) / 1_000 if held.failures else SOON_S
            held.timer = self.later(wait_s, lambda: self.spawn(self.write(thread_id)))

    async def write(self, thread_id: str) -> None:
        """Write what is held of a thread.

        Raises:
            StoreUnavailableError: It is still held.
        """
        if thread_id in self._held or thread_id in self._writing:
            await self._write(thread_id, ())

    async def write_all(self) -> None:
        """Write what is held of all threads, side by side: nothing more is begun here."""
        await asyncio.gather(*map(self._write_last, {**self._held, **self._writing}))

    async def _write_last(self, thread_id: str) -> None:
        try:
            await self.write(thread_id)
        except StorageError as error:  # whoever goes on notes it
            logger.warning("not in the audit: %s", error, extra={"action": "stopping"})

    async def append(self, entry: AuditEntry) -> None:
        """Keep an entry, after what is held of its thread; see `AuditStore.append`."""
        if entry.thread_id in self._held or entry.thread_id in self._writing:
            await self._write(entry.thread_id, (entry,))
        else:
            await self.audit.append(entry)

    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        """Keep entries of one thread, after what is held of it; see `AuditStore.append_all`."""
        for thread_id in {one.thread_id for one in entries}:
            await self._write(thread_id, [one for one in entries if one.thread_id == thread_id])

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        """Read what is kept, with what was held, if that can be; see `AuditStore.of_thread`."""
        with suppress(StorageError):  # a database that takes nothing may still be read
            await self.write(thread_id)
        return await self.audit.of_thread(thread_id, limit=limit)

    async def _write(self, thread_id: str, more: Sequence[AuditEntry]) -> None:
        """Write what is held, and more; what comes meanwhile waits: it follows from that."""
        while (writing := self._writing.get(thread_id)) is not None:
            await writing.wait()
        held = self._held.pop(thread_id, None)
        if held is None:  # all that it follows from is there: nobody has to wait for it
            if more:
                await self.audit.append_all(more)
            return
        if held.timer is not None:
            held.timer.cancel()
        is_over = self._writing[thread_id] = asyncio.Event()
        try:
            new = [one for one in more if one.entry_id not in held.entries]
            await self.audit.append_all([*held.entries.values(), *new])
        except BaseException:
            self._hold_again(thread_id, held)
            raise
        finally:
            del self._writing[thread_id]
            is_over.set()

    def _hold_again(self, thread_id: str, held: _ThreadEntries) -> None:
        """Keep what could not be written, before what came meanwhile, for a longer while."""
        since = self._held.pop(thread_id, None)
        if since is not None:
            held.entries.update(since.entries)
            if since.timer is not None:
                since.timer.cancel()
        entries = list(held.entries.values())
        self._held[thread_id] = _ThreadEntries(failures=held.failures + 1)
        self.hold(thread_id, entries)


class NotingStorage(SameStorage):
    """A database whose audit takes along what this process holds of a thread.

    So what follows from a decision stands behind it in the audit, whoever notes it here.

    Args:
        storage: The database.
        entries: What is held.
    """

    def __init__(self, storage: Storage, entries: HeldEntries) -> None:
        super().__init__(storage)
        self.audit = entries


class NotedFirst:
    """Checkpoints of which nothing is kept before what is held of their thread is in the audit.

    A claim is not among that: it says which decisions the run was told of, so that whoever recovers
    the run can note that.

    Args:
        store: The checkpoints.
        entries: What is held.
    """

    def __init__(self, store: AmendingStore, entries: HeldEntries) -> None:
        self._store, self._entries = store, entries

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        """See `CheckpointStore.load`."""
        return await self._store.load(checkpoint_id)

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        """See `CheckpointStore.save`."""
        await self._entries.write(_thread_of(checkpoint_id))
        return await self._store.save(
            checkpoint_id, data, status=status, expected_version=expected_version
        )

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        """See `CheckpointStore.claim`."""
        return await self._store.claim(checkpoint_id, claim, expected_version=expected_version)

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        """See `CheckpointStore.append`."""
        await self._entries.write(_thread_of(checkpoint_id))
        await self._store.append(checkpoint_id, entry, base=base, index=index)

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        """See `AmendingStore.amend`."""
        await self._entries.write(_thread_of(checkpoint_id))
        return await self._store.amend(checkpoint_id, change, expected_version=expected_version)

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        """See `CheckpointStore.close`."""
        await self._entries.write(_thread_of(checkpoint_id))
        await self._store.close(checkpoint_id, expected_version=expected_version)


def _thread_of(checkpoint_id: str) -> str:
    return checkpoint_id.rpartition("#")[0]
