"""Leases, time-outs and retries: work on due records, one process at a time.

A lease must outlive the work done under it, and a click must
be acknowledged within Slack's limit of 3 seconds. `check_order` verifies this at import.
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
from storage.documents import LONGEST_LEASE_MS

logger = logging.getLogger(__name__)

RECORD_PATIENCE = timedelta(milliseconds=400)
"""Longest time to store a reply to a click. Later replies are sent unstored."""
LOOKUP_PATIENCE = timedelta(seconds=1.5)
"""Longest time to retry a user look-up while a click waits."""
CLICK_PATIENCE = timedelta(seconds=2.5)
"""Longest time to handle a click. Slack shows an error after 3 seconds."""
LOOK_PATIENCE = timedelta(seconds=3)
"""Longest part of a pass that checks whether any approver is left."""
TURN_PATIENCE = timedelta(seconds=6)
"""Longest time a Slack call waits for its rate limit while a lease is held."""
BEAT = timedelta(seconds=5)
"""Interval at which long work renews its lease."""
ATTENDANCE = timedelta(seconds=12)
"""Longest pass over one approval: shorter than a lease, so passes never overlap."""
LEASE = timedelta(seconds=15)
"""Longest time for which a crashed process blocks a record."""
TEXT_PATIENCE = timedelta(seconds=20)
"""Longest time to post an agent's text, while the thread's lease is renewed."""
FORGETTING_LEASE = timedelta(seconds=60)
"""Duration of the lease under which a thread is deleted in batches."""


def check_order(*durations: timedelta) -> None:
    """Check that the durations increase.

    Raises:
        ValueError: A duration is not shorter than the next one.
    """
    if any(first >= second for first, second in pairwise(durations)):
        raise ValueError(f"durations out of order: {', '.join(map(str, durations))}")


check_order(RECORD_PATIENCE, LOOKUP_PATIENCE, CLICK_PATIENCE)
check_order(LOOK_PATIENCE, TURN_PATIENCE, ATTENDANCE, LEASE, FORGETTING_LEASE)
check_order(FORGETTING_LEASE, timedelta(milliseconds=LONGEST_LEASE_MS + 1))
check_order(
    2 * BEAT, LEASE, TEXT_PATIENCE
)  # one renewal may fail; texts are posted under renewed leases


@dataclass(frozen=True, slots=True)
class Retry:
    """Back-off after failed work."""

    first: timedelta
    longest: timedelta

    def wait_ms(self, attempts: int, key: str, wish: timedelta | None = None) -> int:
        """Return the delay before the next attempt, in milliseconds.

        Args:
            attempts: Number of failed attempts.
            key: Id of the record; spreads the delays of different records.
            wish: Delay that the server asked for (`Retry-After`). Overrides the back-off.
        """
        if wish is not None:
            return milliseconds(wish)
        return backoff(attempts, first=self.first, most=self.longest, key=key)


THREAD_RETRY = Retry(timedelta(seconds=5), timedelta(minutes=5))
CARD_RETRY = Retry(timedelta(seconds=8), timedelta(minutes=5))
EPHEMERAL_RETRY = Retry(timedelta(seconds=5), timedelta(minutes=2))


class Leased(Protocol):
    """A record with a lease."""

    @property
    def fence(self) -> int:
        """Fencing token: how often the record was claimed."""
        ...

    @property
    def leased_until_ms(self) -> int:
        """End of the lease."""
        ...


R = TypeVar("R", bound=Leased)
R_co = TypeVar("R_co", bound=Leased, covariant=True)

Extend = Callable[[int], Awaitable[bool]]
"""Renews a lease until a time. Returns False if the lease was lost."""


class TakeLease(Protocol[R_co]):
    """Claims a record; see `ThreadStore.claim`."""

    async def __call__(
        self, record_id: str, /, *, owner: str, now_ms: int, until_ms: int
    ) -> R_co | None:
        """Return the claimed record, or None if it is not due or another process owns it."""
        ...


@dataclass(frozen=True, slots=True)
class ClaimedRecord(Generic[R]):
    """A record that this process has claimed."""

    record: R
    since_ms: int
    deadline: float


class ThreadWorker(Protocol):
    """Processes threads; see `bot.threads.worker.Threads`."""

    async def work(self, thread_id: str) -> None:
        """Process a thread under its lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedWork(Generic[R]):
    """Claims due records, runs the work, and releases them.

    Args:
        claim: Claims a record.
        owner: Name of this process in leases.
        clock: The time now.
        lease: Duration of a lease.
        attendance: Longest work under a lease that is not renewed.
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
        """Process a record while it is due, unless another process owns it.

        Args:
            record_id: Id of the record.
            work: Does the due work and releases the lease; returns whether nothing more is due.

        Raises:
            StoreUnavailableError: The lease expires, and the record is due again.
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

    def already_claimed(self, record: R) -> ClaimedRecord[R] | None:
        """Return a new record with a lease of this process; None if it ends too soon."""
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
        """Renew the lease while the block runs; cancel the block if the lease is lost."""
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
            # The result is unknown: retry soon, the lease may still be valid.
            pause_ms = beat_ms if is_kept else max(beat_ms // 10, 1)
        lost()
        if worker is not None:
            worker.cancel("the lease was lost")


async def _extend(extend: Extend, until_ms: int, *, patience: int) -> bool | None:
    """Renew a lease; None if the result is unknown."""
    if patience <= 0:
        return None
    try:
        async with asyncio.timeout(patience / 1_000):
            return await extend(until_ms)
    except Exception as error:  # noqa: BLE001 (whatever it is, the lease has its end)
        logger.warning("lease renewal failed: %s", error, extra={"action": "lease_failed"})
        return None
