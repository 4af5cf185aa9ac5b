"""Compare this machine's clock with the database server's, and mend what a wrong clock left.

Leases and due times are compared between machines. With different clocks, two processes could work
on one thread. A process whose clock was wrong leaves leases and due times in the future.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from bot.clock import is_waiting, milliseconds, system_clock
from bot.leases import LEASE
from bot.ports.process import Clock
from bot.stores import Stores
from storage.errors import Fault, StorageError, StoreBrokenError

logger = logging.getLogger(__name__)

ACCEPTED = timedelta(seconds=1)
"""Clock difference up to which nothing is reported."""
LOOK_EVERY = timedelta(minutes=1)
SAY_EVERY = timedelta(hours=1)
"""Interval at which a clock difference is logged."""


async def clock_difference(storage: Stores, clock: Clock = system_clock) -> int | None:
    """Compare this machine's clock with the database server's clock.

    Returns:
        Minimum milliseconds by which this clock is ahead (negative: behind), whatever the
        latency; 0 for up to one second; None if the database has no clock of its own.

    Raises:
        StoreUnavailableError: The server does not respond.
    """
    before_ms = clock()
    server_ms = await storage.server_ms()
    after_ms = clock()
    if server_ms is None:
        return None
    ahead = before_ms - server_ms if server_ms < before_ms else min(after_ms - server_ms, 0)
    return ahead if abs(ahead) > milliseconds(ACCEPTED) else 0


def say_difference(ahead_ms: int) -> str:
    """Format a clock difference as text."""
    where = "ahead of" if ahead_ms > 0 else "behind"
    return f"the clock of this machine is {abs(ahead_ms) / 1_000:.1f} s {where} the database's"


async def check_clock(storage: Stores, clock: Clock = system_clock) -> None:
    """Refuse a clock that differs by more than a lease; log a smaller difference.

    Raises:
        StoreBrokenError: The difference would let two processes work on one thread.
        StoreUnavailableError: The server does not respond.
    """
    ahead = await clock_difference(storage, clock) or 0
    if abs(ahead) > milliseconds(LEASE):
        raise StoreBrokenError(say_difference(ahead), Fault.CLOCK)
    if ahead:
        logger.warning("%s", say_difference(ahead), extra={"action": "clock_differs"})


@dataclass(slots=True, kw_only=True)
class ClockWatch:
    """Compares the clocks every minute. While they differ by a lease, nothing is claimed here."""

    storage: Stores
    clock: Clock
    _next_ms: int = 0
    _say_ms: int = 0
    _last_ms: int = 0
    _before_ms: int = 0
    """The time before somebody put the clock back; 0 if all due times are mended."""

    async def step(self) -> None:
        """Compare the clocks once a minute, and as soon as the clock was put back."""
        now, last = self.clock(), self._last_ms
        self._last_ms = now
        if last - now > milliseconds(ACCEPTED):
            self._before_ms = max(self._before_ms, last)
        elif is_waiting(self._next_ms, now, LOOK_EVERY):
            return
        is_first, self._next_ms = not self._next_ms, now + milliseconds(LOOK_EVERY)
        if is_first:
            return  # compared at startup
        try:
            await self._compare(now)
        except StorageError as error:
            logger.warning(
                "could not compare the clock with the database's: %s",
                error,
                extra={"action": "clock_differs"},
            )

    async def _compare(self, now: int) -> None:
        ahead = await clock_difference(self.storage)
        is_right = abs(ahead or 0) <= milliseconds(LEASE)
        self.storage.allow_claims(allowed=is_right)
        if ahead and not is_waiting(self._say_ms, now, SAY_EVERY):
            self._say_ms = now + milliseconds(SAY_EVERY)
            say = logger.warning if is_right else logger.error
            say("%s", say_difference(ahead), extra={"action": "clock_differs"})
        if before_ms := self._before_ms:
            await self.storage.hasten(now_ms=now, before_ms=before_ms)
            self._before_ms = 0
        # An embedded database has the leases of this process only. They are right, unless the
        # clock was put back.
        if is_right and (before_ms or ahead is not None):
            await self.storage.end_false_leases(now_ms=now)
