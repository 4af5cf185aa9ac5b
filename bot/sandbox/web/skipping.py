"""Skip time, if the sandbox has a movable clock."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Protocol

from bot.sandbox.errors import RefusedError
from bot.sandbox.workspace.records import Payload

MOST: Final = timedelta(days=30)
"""The longest skip."""


class Skippable(Protocol):
    """A clock that the sandbox and its app share."""

    @property
    def ahead_ms(self) -> int:
        """How far it was put forward in all."""
        ...

    def __call__(self) -> int:
        """The time that it shows, in milliseconds since 1970."""
        ...

    async def skip_to(self, at_ms: int) -> bool:
        """Put it forward; False when the app is in the middle of something."""
        ...

    async def next_due_ms(self) -> int | None:
        """When the app has something to do; None when it waits for nothing."""
        ...


async def told(clock: Skippable | None) -> Payload:
    """Say how late it is, in seconds, and when the next thing is due.

    Raises:
        RefusedError: Time goes by itself here.
    """
    if clock is None:
        raise RefusedError("no_time_skip")
    due_ms = await clock.next_due_ms()
    return {
        "now": clock() / 1_000,
        "ahead": clock.ahead_ms / 1_000,
        "next": None if due_ms is None else due_ms / 1_000,
    }


async def skip(clock: Skippable | None, seconds: float | None) -> None:
    """Let time pass: some seconds, or until the next thing is due.

    Raises:
        RefusedError: Time goes by itself here, nothing is due, or the app is at work.
    """
    if clock is None:
        raise RefusedError("no_time_skip")
    if seconds is None:
        at_ms = await clock.next_due_ms()
    else:
        at_ms = clock() + round(min(seconds, MOST.total_seconds()) * 1_000)
    if at_ms is None:
        raise RefusedError("nothing_due")
    if not await clock.skip_to(at_ms):
        raise RefusedError("app_busy")
