"""Work of our own: started by listeners, kept referenced, drained at the stop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from itertools import takewhile
from typing import Any

from storage.errors import StoreUnavailableError

logger = logging.getLogger(__name__)


QUIET_S = 0.05
"""Work begins when nobody has waited for an answer for so long."""
LONGEST_S = 1.0
"""After so long, some of it begins although people wait: one piece each `QUIET_S`."""
LATEST_S = 5.0
"""After so long, it yields to people no more."""
AT_ONCE = 24
"""How much of it is at the database and the processor at a time, when nobody waits."""
STEP = 8
"""How much of what was put off begins in one go: somebody may come at any moment."""
FEW = 4
"""The same, while people wait."""
FRESH_S = 0.3
"""Work that takes longer than this waits for others, such as a model: it makes room for more."""
CANCEL_S = 1.0
"""How long cancelled work may take to end."""


def allowance(*, is_quiet: bool, waited_s: float, fresh: int) -> int:
    """How many pieces of work may begin now.

    Args:
        is_quiet: Nobody waits for an answer.
        waited_s: How long the oldest piece has waited, in seconds.
        fresh: How many pieces have begun a moment ago, and still run.
    """
    if is_quiet or waited_s >= LATEST_S:
        return max(min(AT_ONCE - fresh, STEP), 0)
    return 1 if waited_s >= LONGEST_S and fresh < FEW else 0


class Tasks:
    """A set of running tasks, which let people who wait for an answer go first.

    A burst of decisions is answered before what follows from it is done, and that is done a few
    pieces at a time, so that neither people nor the connections to the database have to wait.
    What runs here may be cut off at any time: all of it is also on record as due work, and the
    scheduler of any process repeats it.

    Args:
        now: Seconds since some moment, never set back.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._running: dict[asyncio.Task[None], float] = {}  # when each began; the newest is last
        self._waiting: deque[tuple[float, Coroutine[Any, Any, None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._urgent = 0
        self._answered_at = -QUIET_S
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._running) + len(self._waiting)

    def begin_urgent(self) -> None:
        """Somebody waits for an answer, until `end_urgent`: new work is put off for a moment."""
        self._urgent += 1

    def end_urgent(self) -> None:
        """One of those who waited has the answer."""
        self._urgent -= 1
        self._answered_at = self._now()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work; after `drain` has begun it is dropped, as it is on record anyway."""
        if self._is_closed:
            work.close()
            return
        self._waiting.append((self._now(), work))
        if self._timer is None:
            self._look()

    async def drain(self, *, patience: timedelta) -> None:
        """Accept nothing new, wait for what is left, and cut off what takes longer."""
        self._is_closed = True
        self._look()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience.total_seconds()):
                await self.idle()
        while self._waiting:
            self._waiting.popleft()[1].close()
        left = list(self._running)
        for task in left:
            task.cancel()
        if left:  # what does not let itself be cancelled ends with the process
            await asyncio.wait(left, timeout=CANCEL_S)

    async def idle(self) -> None:
        """Wait until nothing runs; for tests and tools."""
        while len(self):
            if self._running:
                await asyncio.wait(list(self._running), timeout=QUIET_S)
            else:
                await asyncio.sleep(QUIET_S)

    def _is_quiet(self, now: float) -> bool:
        return self._is_closed or (not self._urgent and now - self._answered_at >= QUIET_S)

    def _look(self) -> None:
        """Begin what may begin, and look again while something waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        loop = asyncio.get_running_loop()
        now = self._now()
        begun = reversed(self._running.values())
        fresh = sum(1 for _ in takewhile(lambda at: now - at < FRESH_S, begun))
        most = allowance(
            is_quiet=self._is_quiet(now), waited_s=now - self._waiting[0][0], fresh=fresh
        )
        for _ in range(min(most, len(self._waiting))):
            task = loop.create_task(self._waiting.popleft()[1])
            self._running[task] = now
            task.add_done_callback(self._finished)
        if self._waiting:
            self._timer = loop.call_later(QUIET_S, self._look)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if self._waiting and self._is_quiet(self._now()):
            self._look()
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
