"""Back-off: the delay before a retry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeAlias

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
"""Waits for a number of seconds."""

Backoff: TypeAlias = Callable[[int], timedelta]
"""Delay after the first, second, … failure."""


def doubling(failures: int) -> timedelta:
    """Return a delay that starts at 0.5 s, doubles each time, and is at most 30 s."""
    return timedelta(seconds=min(30.0, 0.5 * 2.0 ** min(failures - 1, 10)))
