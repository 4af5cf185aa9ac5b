"""Claimed work: all that is due, done under a lease by one process at a time, and given back.

Here, too, is how long everything may take: a lease must outlive what is done under it, and an
answer must leave before Slack gives up. The order is checked when this is imported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from bot.clock import backoff, milliseconds
from bot.ports.process import Clock

logger = logging.getLogger(__name__)

RECORD_PATIENCE = timedelta(milliseconds=400)
"""Somebody waits for an acknowledgement: an answer that cannot be recorded is told without."""
LOOKUP_PATIENCE = timedelta(seconds=1.5)
"""In which a call may be tried again that says who somebody is: a click waits for it."""
CLICK_PATIENCE = timedelta(seconds=2.5)
"""Longest time to handle a click. Slack shows an error after 3 seconds."""
LOOK_PATIENCE = timedelta(seconds=3)
"""The part of an attendance for finding out whether anybody can decide."""
TURN_PATIENCE = timedelta(seconds=6)
"""Longest time a Slack call waits for its rate limit while a lease is held."""
BEAT = timedelta(seconds=5)
"""From one prolongation of a lease to the next, while work lasts that may take for ever."""
ATTENDANCE = timedelta(seconds=12)
"""Longest pass over one approval: shorter than a lease, so passes never overlap."""
LEASE = timedelta(seconds=15)
"""Longest time for which a process that has died blocks a record."""
TEXT_PATIENCE = timedelta(seconds=20)
"""Longest time to post an agent's text, while the thread's lease is renewed."""
FORGETTING_LEASE = timedelta(seconds=60)
"""The same for a thread that is deleted, piece by piece."""


def check_order(*durations: timedelta) -> None:
    """Check that each is shorter than the next.

    Raises:
        ValueError: One is not.
    """
    if any(first >= second for first, second in pairwise(durations)):
        raise ValueError(f"durations out of order: {', '.join(map(str, durations))}")


check_order(RECORD_PATIENCE, LOOKUP_PATIENCE, CLICK_PATIENCE)
check_order(LOOK_PATIENCE, TURN_PATIENCE, ATTENDANCE, LEASE, FORGETTING_LEASE)
check_order(2 * BEAT, LEASE, TEXT_PATIENCE)  # one beat may fail; texts live on them


@dataclass(frozen=True, slots=True)
class Retry:
    """The plan by which failed work is tried again.

    Attributes:
        first: The wait after the first failure.
        longest: The longest wait.
    """

    first: timedelta
    longest: timedelta

    def wait_ms(self, attempts: int, key: str, wish: timedelta | None = None) -> int:
        """Return the time to wait, in milliseconds.

        Args:
            attempts: How many tries failed before this one.
            key: The record's id.
            wish: How long whoever refused wants to be left alone, which goes before.
        """
        if wish is not None:
            return milliseconds(wish)
        return backoff(attempts, first=self.first, most=self.longest, key=key)


THREAD_RETRY = Retry(timedelta(seconds=5), timedelta(minutes=5))
CARD_RETRY = Retry(timedelta(seconds=8), timedelta(minutes=5))
EPHEMERAL_RETRY = Retry(timedelta(seconds=5), timedelta(minutes=2))


class Leased(Protocol):
    """A record that one process at a time works on."""

    @property
    def fence(self) -> int:
        """The number of times that it was claimed."""
        ...

    @property
    def leased_until_ms(self) -> int:
        """The end of the lease."""
        ...


R = TypeVar("R", bound=Leased)
R_any = TypeVar("R_any")
R_co = TypeVar("R_co", bound=Leased, covariant=True)

Extend = Callable[[int], Awaitable[bool]]
"""Prolongs a lease until a time; False when it was lost."""


class TakeLease(Protocol[R_co]):
    """Takes the lease of a record; see `ThreadStore.claim`."""

    async def __call__(
        self, record_id: str, /, *, owner: str, now_ms: int, until_ms: int
    ) -> R_co | None:
        """Return the record as claimed; None when nothing is due, or somebody else has it."""
        ...


@dataclass(frozen=True, slots=True)
class ClaimedRecord(Generic[R]):
    """A record that this process has claimed.

    Attributes:
        record: As claimed.
        since_ms: When it was asked for: what it says is no older.
        deadline: When an attendance must be over, in the loop's time.
    """

    record: R
    since_ms: int
    deadline: float


class ThreadWorker(Protocol):
    """The work of the agents in their threads: `bot.threads.worker.Threads`."""

    async def work(self, thread_id: str) -> None:
        """Do all that is due in a thread, under its lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedWork(Generic[R]):
    """Claim, work, give back; and again while there is more to do.

    Args:
        claim: Takes the lease.
        owner: Name of this process in leases.
        clock: The time now.
        lease: How long a record is taken for.
        attendance: How long work may take of it whose lease is not prolonged.
        sleep: Waits for some seconds.
    """

    claim: TakeLease[R]
    owner: str
    clock: Clock
    lease: timedelta = LEASE
    attendance: timedelta = ATTENDANCE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def do(
        self,
        record_id: str,
        work: Callable[[ClaimedRecord[R]], Awaitable[bool]],
    ) -> None:
        """Do all that is due for a record; nothing when another process has it.

        Args:
            record_id: Which.
            work: Does what is due and gives the lease back; returns whether nothing more is due.

        Raises:
            StoreUnavailableError: The lease ends by itself, and the work is due again.
        """
        while True:
            asked = asyncio.get_running_loop().time()  # the work must end before its lease does
            now = self.clock()
            until_ms = now + milliseconds(self.lease)
            record = await self.claim(record_id, owner=self.owner, now_ms=now, until_ms=until_ms)
            if record is None:
                return
            if await work(ClaimedRecord(record, now, asked + self.attendance.total_seconds())):
                return

    def born(self, record: R) -> ClaimedRecord[R] | None:
        """A new record that has a lease of this process; None when too little of it is left."""
        now = self.clock()
        left = timedelta(milliseconds=record.leased_until_ms - now)
        if left < self.attendance:
            return None
        spare = self.lease - self.attendance
        deadline = asyncio.get_running_loop().time() + (left - spare).total_seconds()
        since_ms = record.leased_until_ms - milliseconds(self.lease)
        return ClaimedRecord(record, since_ms, deadline)

    @asynccontextmanager
    async def kept(
        self, record: R, extend: Extend, *, lost: Callable[[], None]
    ) -> AsyncIterator[None]:
        """Prolong the lease while the block lasts; cancel it when the lease is lost or ends.

        Args:
            record: As claimed.
            extend: Prolongs the lease.
            lost: Called before the block is cancelled, which may take its time to end.
        """
        beat = asyncio.create_task(self._keep(record, extend, lost, asyncio.current_task()))
        try:
            yield
        finally:
            beat.cancel()

    async def _keep(
        self,
        record: R,
        extend: Extend,
        lost: Callable[[], None],
        worker: asyncio.Task[object] | None,
    ) -> None:
        held_until_ms = record.leased_until_ms
        beat_ms = milliseconds(self.lease * (BEAT / LEASE))
        pause_ms = beat_ms
        is_kept: bool | None = True
        while is_kept is not False and (left_ms := held_until_ms - self.clock()) > 0:
            await self.sleep(min(pause_ms, left_ms) / 1_000)
            until_ms = self.clock() + milliseconds(self.lease)
            is_kept = await _extend(extend, until_ms, patience=held_until_ms - self.clock())
            if is_kept:
                held_until_ms = until_ms
            # When nobody knows, ask again soon: the lease may still be had.
            pause_ms = beat_ms if is_kept else max(beat_ms // 10, 1)
        lost()
        if worker is not None:
            worker.cancel("the lease was lost")


async def _extend(extend: Extend, until_ms: int, *, patience: int) -> bool | None:
    """Prolong a lease; None when it is not known whether that was done.

    Args:
        extend: Does it.
        until_ms: The new end.
        patience: Milliseconds until the end of the lease.
    """
    if patience <= 0:
        return None
    try:
        async with asyncio.timeout(patience / 1_000):
            return await extend(until_ms)
    except Exception as error:  # noqa: BLE001 (whatever it is, the lease has its end)
        logger.warning("lease renewal failed: %s", error, extra={"action": "lease_failed"})
        return None
