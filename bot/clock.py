"""Durations and times, between `timedelta` inside and integers in records."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol


def milliseconds(duration: timedelta) -> int:
    """A duration as whole milliseconds."""
    return duration // timedelta(milliseconds=1)


def system_clock() -> int:
    """The time now: milliseconds since the epoch, UTC. Injected by the composition root."""
    return time.time_ns() // 1_000_000


def system_seconds() -> float:
    """The time now: seconds since the epoch."""
    return system_clock() / 1_000


def system_nanoseconds() -> int:
    """The time now: nanoseconds since the epoch, as spans of traces have it."""
    return time.time_ns()


def steady_clock() -> int:
    """Milliseconds since some moment, never set back. Injected by the composition root."""
    return time.monotonic_ns() // 1_000_000


class ClockFollower(Protocol):
    """Somebody who goes by a clock that is put forward."""

    async def rest(self) -> bool:
        """Wait for a moment without work, for some seconds; return whether there is one now.

        Nothing begins between its end and the caller's next `await`.
        """
        ...

    async def look(self) -> None:
        """Do what is due now."""
        ...

    async def next_due_ms(self) -> int | None:
        """When the next thing is due; None when nothing is."""
        ...


@dataclass(slots=True)
class MovableClock:
    """A clock that can be put forward, never back, and else goes as another one does.

    Attributes:
        of: The other one.
        ahead_ms: How far it is before that.
        follower: Goes by it; nobody yet when None.
    """

    of: Callable[[], int] = system_clock
    ahead_ms: int = 0
    follower: ClockFollower | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __call__(self) -> int:
        """The time that it shows: milliseconds since the epoch, UTC."""
        return self.of() + self.ahead_ms

    def seconds(self) -> float:
        """The same in seconds."""
        return self() / 1_000

    async def skip_to(self, at_ms: int) -> bool:
        """Put it forward to a moment, and let the follower do what is due then.

        The leases of work under way would run out at once: it is put forward between two works.

        Returns:
            False, and it stays as it is, when the follower found no rest, or there is none yet.
        """
        async with self._turn:
            if self.follower is None or not await self.follower.rest():
                return False
            self.ahead_ms += max(at_ms - self(), 0)
            await self.follower.look()
            return True

    async def next_due_ms(self) -> int | None:
        """When the next thing is due; None when nothing is."""
        return None if self.follower is None else await self.follower.next_due_ms()


def backoff(attempts: int, *, first: timedelta, most: timedelta, key: str) -> int:
    """Return the time to wait after a fault that may pass, in milliseconds.

    Twice as long each time, up to a limit, and up to a quarter more, so that records that failed
    together are not due together. The part that is added depends on the key alone: whoever asks
    gets the same answer.

    Args:
        attempts: How many tries failed before this one.
        first: The wait after the first.
        most: The longest wait.
        key: The record's id.
    """
    wait = min(milliseconds(first) << min(attempts, 20), milliseconds(most))
    return wait + wait * (zlib.crc32(f"{key}:{attempts}".encode()) % 1_000) // 4_000
