"""Durations and times, between `timedelta` inside and integers in records."""

from __future__ import annotations

import time
from datetime import timedelta


def milliseconds(duration: timedelta) -> int:
    """A duration as whole milliseconds."""
    return duration // timedelta(milliseconds=1)


def system_clock() -> int:
    """The time now: milliseconds since the epoch, UTC. Injected by the composition root."""
    return time.time_ns() // 1_000_000
