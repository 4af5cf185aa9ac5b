"""Durations and times, between `timedelta` inside and integers in records."""

from __future__ import annotations

import time
import zlib
from datetime import timedelta


def milliseconds(duration: timedelta) -> int:
    """A duration as whole milliseconds."""
    return duration // timedelta(milliseconds=1)


def system_clock() -> int:
    """The time now: milliseconds since the epoch, UTC. Injected by the composition root."""
    return time.time_ns() // 1_000_000


def system_seconds() -> float:
    """The time now: seconds since the epoch."""
    return system_clock() / 1_000


def steady_clock() -> int:
    """Milliseconds since some moment, never set back. Injected by the composition root."""
    return time.monotonic_ns() // 1_000_000


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
