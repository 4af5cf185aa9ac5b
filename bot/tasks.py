"""Work of our own: started by listeners, kept referenced, drained at the stop."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from storage.errors import StoreUnavailableError

logger = logging.getLogger(__name__)


QUIET_S = 0.02
"""Work begins when nobody has waited for an answer for so long."""
LONGEST_S = 1.0
"""But it is not put off for longer than this."""
CANCEL_S = 1.0
"""How long cancelled work may take to end."""
AT_ONCE = 50
"""How much of it begins at once; the rest a moment later."""


class Tasks:
    """A set of running tasks, which let people who wait for an answer go first.

    What runs here may be cut off at any time: all of it is also on record as due work, and the
    scheduler of any process repeats it.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[float, Coroutine[Any, Any, None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._urgent = 0
        self._answered_at = 0.0
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._running) + len(self._waiting)

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """Somebody waits for an answer while this lasts: new work is put off for a moment."""
        self._urgent += 1
        try:
            yield
        finally:
            self._urgent -= 1
            self._answered_at = asyncio.get_running_loop().time()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work; after `drain` has begun it is dropped, as it is on record anyway."""
        if self._is_closed:
            work.close()
            return
        self._waiting.append((asyncio.get_running_loop().time(), work))
        if self._timer is None:
            self._look()

    async def drain(self, *, patience: timedelta) -> None:
        """Accept nothing new, wait for what runs, and cancel what takes longer."""
        self._is_closed = True
        self._begin(len(self._waiting))
        if self._running:
            await asyncio.wait(self._running, timeout=patience.total_seconds())
        left = list(self._running)
        for task in left:
            task.cancel()
        if left:  # what does not let itself be cancelled ends with the process
            await asyncio.wait(left, timeout=CANCEL_S)

    async def idle(self) -> None:
        """Wait until nothing runs; for tests and tools."""
        while len(self):
            if self._running:
                await asyncio.wait(self._running, timeout=QUIET_S)
            else:
                await asyncio.sleep(QUIET_S)

    def _look(self) -> None:
        """Begin what waits, now or as soon as it is quiet."""
        self._timer = None
        if not self._waiting:
            return
        loop = asyncio.get_running_loop()
        now, (since, _) = loop.time(), self._waiting[0]
        is_quiet = not self._urgent and now - self._answered_at >= QUIET_S
        if is_quiet or now - since >= LONGEST_S:
            self._begin(AT_ONCE)
        if self._waiting:
            self._timer = loop.call_later(QUIET_S, self._look)

    def _begin(self, most: int) -> None:
        for _ in range(min(most, len(self._waiting))):
            _, work = self._waiting.popleft()
            task = asyncio.get_running_loop().create_task(work)
            self._running.add(task)
            task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, StoreUnavailableError):  # nothing is wrong with our program
            logger.warning(
                "work put off; the scheduler repeats it: %s",
                error,
                extra={"action": "work_put_off"},
            )
        else:
            logger.error(
                "work failed; the scheduler repeats it",
                exc_info=error,
                extra={"action": "work_failed"},
            )
