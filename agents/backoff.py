"""Retries: how often, after which errors, and how long to wait before each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
"""Waits for a number of seconds."""

Backoff: TypeAlias = Callable[[int], timedelta]
"""Delay after the first, second, … failure."""

Only: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]
"""The errors to retry: their types, or a predicate."""


def doubling(failures: int) -> timedelta:
    """Return a delay that starts at 0.5 s, doubles each time, and is at most 30 s."""
    return timedelta(seconds=min(30.0, 0.5 * 2.0 ** min(failures - 1, 10)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPlan:
    """A plan of retries: how often, after which errors, and with which delays.

    Attributes:
        attempts: Maximum number of runs.
        only: Errors to retry.
        backoff: Delay after the first, second, … failure.
        sleep: Waits for a number of seconds.
    """

    attempts: int = 3
    only: Only = Exception
    backoff: Backoff = doubling
    sleep: Sleep = asyncio.sleep

    def wants(self, error: Exception, failures: int) -> bool:
        """Whether to retry after an error. `failures` includes this one."""
        if failures >= self.attempts:
            return False
        if isinstance(self.only, type | tuple):
            return isinstance(error, self.only)
        return self.only(error)

    async def wait(self, failures: int) -> None:
        """Wait before the next attempt."""
        await self.sleep(self.backoff(failures).total_seconds())
