"""Back-off: how long to wait before something that failed is tried again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeAlias

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
"""Waits for so many seconds."""

Backoff: TypeAlias = Callable[[int], timedelta]
"""The pause after the first, second, … failure."""


def doubling(failures: int) -> timedelta:
    """Wait half a second, then twice as long each time, at most half a minute."""
    return timedelta(seconds=min(30.0, 0.5 * 2.0 ** min(failures - 1, 10)))
