"""Clocks, back-off, and the conversion of durations to milliseconds."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol


def milliseconds(duration: timedelta) -> int:
    """Return a duration in whole milliseconds."""
    return duration // timedelta(milliseconds=1)


def is_waiting(at_ms: int, now_ms: int, longest: timedelta) -> bool:
    """Return whether a wait goes on: its end is ahead, but no further than its whole length.

    An end that is further ahead was set before somebody put the clock back.
    """
    return now_ms < at_ms <= now_ms + milliseconds(longest)


def system_clock() -> int:
    """Return milliseconds since the epoch, UTC. Injected by the composition root."""
    return time.time_ns() // 1_000_000


def system_seconds() -> float:
    """Return seconds since the epoch."""
    return system_clock() / 1_000


def system_nanoseconds() -> int:
    """Return nanoseconds since the epoch, for the spans of traces."""
    return time.time_ns()


def steady_clock() -> int:
    """Return milliseconds of a clock that is never set back. Injected by the composition root."""
    return time.monotonic_ns() // 1_000_000


class ClockFollower(Protocol):
    """A program that runs on a clock which people can advance."""

    async def rest(self) -> bool:
        """Wait some seconds for running work to end; return whether no work is running.

        No work begins between the return and the caller's next `await`.
        """
        ...

    async def run_due(self) -> None:
        """Do all work that is due now."""
        ...

    async def next_due_ms(self) -> int | None:
        """When the next thing is due; None when nothing is."""
        ...


@dataclass(slots=True)
class MovableClock:
    """A clock that can be advanced, and otherwise follows another clock.

    Attributes:
        of: The other clock.
        ahead_ms: Milliseconds by which this clock is ahead of the other one.
        follower: The program that runs on this clock; None before it has started.
    """

    of: Callable[[], int] = system_clock
    ahead_ms: int = 0
    follower: ClockFollower | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __call__(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        return self.of() + self.ahead_ms

    def seconds(self) -> float:
        """Return seconds since the epoch."""
        return self() / 1_000

    async def skip_to(self, at_ms: int) -> bool:
        """Advance the clock to a time, and let the follower do the work that is due then.

        The clock is advanced only while no work is running, because the leases of running work
        would expire at once.

        Returns:
            False, with an unchanged clock, if the follower is busy or missing.
        """
        async with self._turn:
            if self.follower is None or not await self.follower.rest():
                return False
            self.ahead_ms += max(at_ms - self(), 0)
            await self.follower.run_due()
            return True

    async def next_due_ms(self) -> int | None:
        """When the next thing is due; None when nothing is."""
        return None if self.follower is None else await self.follower.next_due_ms()


def backoff(attempts: int, *, first: timedelta, most: timedelta, key: str) -> int:
    """Return the delay after a temporary fault, in milliseconds.

    The delay doubles each time up to a limit, plus up to a quarter more, so that records that
    failed together are not due together. The addition depends only on the key and the number of
    attempts: every process computes the same delay.

    Args:
        attempts: Number of failed attempts before this one.
        first: The delay after the first failure.
        most: The longest delay, before the addition.
        key: Id of the record.
    """
    wait = min(milliseconds(first) << min(attempts, 20), milliseconds(most))
    return wait + wait * (zlib.crc32(f"{key}:{attempts}".encode()) % 1_000) // 4_000
