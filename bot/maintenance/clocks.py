"""Compare this machine's clock with the database server's.

Leases and due times are compared between machines. With different clocks, two processes could work
on one thread.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from bot.clock import milliseconds, system_clock
from bot.leases import LEASE
from bot.ports.process import Clock
from bot.stores import Stores
from storage.errors import Fault, StorageError, StoreBrokenError

logger = logging.getLogger(__name__)

ACCEPTED = timedelta(seconds=1)
"""Clock difference up to which nothing is reported."""
LOOK_EVERY = timedelta(hours=1)


async def clock_difference(storage: Stores, clock: Clock = system_clock) -> int:
    """Compare this machine's clock with the database server's clock.

    Returns:
        Minimum milliseconds by which this clock is ahead (negative: behind), whatever the
        latency; 0 for up to one second.

    Raises:
        StoreUnavailableError: The server does not respond.
    """
    before_ms = clock()
    server_ms = await storage.server_ms()
    after_ms = clock()
    if server_ms is None:
        return 0
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
    ahead = await clock_difference(storage, clock)
    if abs(ahead) > milliseconds(LEASE):
        raise StoreBrokenError(say_difference(ahead), Fault.CLOCK)
    if ahead:
        logger.warning("%s", say_difference(ahead), extra={"action": "clock_differs"})


@dataclass(slots=True, kw_only=True)
class ClockWatch:
    """Compares the clocks every hour."""

    storage: Stores
    clock: Clock
    _next_ms: int = 0

    async def step(self) -> None:
        """Compare the clocks once an hour; log a difference."""
        now = self.clock()
        if now < self._next_ms:
            return
        is_first, self._next_ms = not self._next_ms, now + milliseconds(LOOK_EVERY)
        if is_first:
            return  # compared at startup
        try:
            await check_clock(self.storage)
        except StoreBrokenError as error:
            logger.error("%s", error, extra={"action": "clock_differs"})  # noqa: TRY400 - said whole
        except StorageError as error:
            logger.warning(
                "could not compare the clock with the database's: %s",
                error,
                extra={"action": "clock_differs"},
            )
