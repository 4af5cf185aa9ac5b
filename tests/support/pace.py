"""Slack's pace, ten times as fast: what scenarios and the browser do not wait for.

The bot and the stand-in for Slack go by one clock, on which a minute takes six seconds, and by
Slack's own limits. Calls still wait for their turn, in their order, and read what they say only
then; and what comes soon after something else still comes later. What is shorter than a second
stays as it is: work that is over soon still shows no status.
"""

from __future__ import annotations

import asyncio
import time

import pytest

from bot.main import Outside
from bot.slack.ratelimit import Pacer

_TIMES = 10


def brisk_clock() -> int:
    """Milliseconds since some moment, ten in each real one."""
    return time.monotonic_ns() * _TIMES // 1_000_000


def brisk_seconds() -> float:
    """The same in seconds."""
    return brisk_clock() / 1_000


async def _ten_times_as_fast(seconds: float) -> None:
    await asyncio.sleep(seconds / _TIMES)


def pass_over(seconds: float, patch: pytest.MonkeyPatch) -> None:
    """Let so many seconds pass at once for all that waits in an event loop."""
    clock = time.monotonic
    patch.setattr(time, "monotonic", lambda: clock() + seconds)


def hasty_seconds() -> float:
    """Seconds of which a thousand are in each real one."""
    return time.monotonic_ns() / 1_000_000


def hasty() -> Pacer:
    """Slack's limits, where a minute takes 60 ms: two hundred threads would take an hour."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 1_000)

    return Pacer(lambda: time.monotonic_ns() // 1_000, sleep)


async def _briefly(seconds: float) -> None:
    await asyncio.sleep(seconds / _TIMES if seconds >= 1 else seconds)


def brisk() -> Outside:
    """The database and Slack that the settings name, at that pace."""
    return Outside(pacer=Pacer(brisk_clock, _ten_times_as_fast), sleep=_briefly)
