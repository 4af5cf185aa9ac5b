"""The ports to the process: the time, and background tasks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

Clock = Callable[[], int]
"""The time now: milliseconds since the epoch, UTC."""


Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""Starts a background task that outlives the caller.

The process keeps a reference to the task: asyncio itself would not keep the task alive."""
