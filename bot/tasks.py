"""Work of our own: started by listeners, kept referenced, drained at the stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

logger = logging.getLogger(__name__)


class Tasks:
    """A set of running tasks.

    What runs here may be cut off at any time: all of it is also on record as due work, and the
    scheduler of any process repeats it.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._running)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work; after `drain` has begun it is dropped, as it is on record anyway."""
        if self._is_closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)

    async def drain(self, *, patience: timedelta) -> None:
        """Accept nothing new, wait for what runs, and cancel what takes longer."""
        self._is_closed = True
        if self._running:
            await asyncio.wait(self._running, timeout=patience.total_seconds())
        left = list(self._running)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until nothing runs; for tests and tools."""
        while self._running:
            await asyncio.wait(self._running)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error(
                "work failed; the scheduler repeats it",
                exc_info=error,
                extra={"action": "work_failed"},
            )
