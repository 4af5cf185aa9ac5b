"""The process: its time, and work of our own that goes on in it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

Clock = Callable[[], int]
"""The time now: milliseconds since the epoch, UTC."""


Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""Starts work of our own that outlives the caller, and keeps it referenced until it ends."""
