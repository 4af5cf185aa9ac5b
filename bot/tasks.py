"""Background tasks: started by listeners, limited, drained at shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bot.words import for_all
from storage.errors import StoreUnavailableError

logger = logging.getLogger(__name__)

AT_ONCE = 24
"""Maximum number of tasks of a process that use the database or the processor at a time."""
LONG_S = 0.3
"""Seconds after which a task counts as waiting and frees its place."""
CANCEL_S = 0.5
"""Longest time for a cancelled task to end, in seconds."""
CLOSE_S = 1.0
"""Longest time to close one resource, in seconds."""


@dataclass(slots=True)
class _Place:
    """A place of a running task, released once."""

    places: asyncio.Semaphore
    is_taken: bool = True

    def give_back(self) -> None:
        if self.is_taken:
            self.is_taken = False
            self.places.release()


class Tasks:
    """Runs background tasks, a limited number at a time.

    The limit keeps bursts from delaying clicks and database connections. Tasks that follow a click
    start after its acknowledgement. Tasks may be cancelled at any time: all work is also stored as
    due, and the scheduler of any process repeats it.

    Args:
        at_once: Maximum number of running tasks; waiting tasks do not count.
        long_s: Seconds after which a task counts as waiting.
    """

    def __init__(self, at_once: int = AT_ONCE, *, long_s: float = LONG_S) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._long_s = long_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: dict[asyncio.Task[Any] | None, list[Coroutine[Any, Any, None]]] = {}
        """Deferred tasks by the task that spawned them; by None those of all tasks."""
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task, or defer it inside `held_back`.

        After `drain` has begun, the task is dropped: its work is stored as due.
        """
        spawner = asyncio.current_task()
        held = self._held.get(spawner if spawner in self._held else None)
        if held is None:
            self._start(work)
        else:
            held.append(work)

    @contextmanager
    def held_back(self, *, of_all: bool = False) -> Iterator[None]:
        """Defer tasks that the current task spawns until the block ends.

        Args:
            of_all: Whether to defer those that any task spawns; for rehearsals.
        """
        spawner = None if of_all else asyncio.current_task()
        held = self._held[spawner] = []
        try:
            yield
        finally:
            del self._held[spawner]
            for work in held:
                self.spawn(work)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        if self._is_closed:
            work.close()
            return
        with for_all():  # deferred tasks no longer write in the language of the person who clicked
            task = asyncio.get_running_loop().create_task(self._work(work))
        self._tasks.add(task)
        # A task that is cancelled before its first step never runs its code.
        task.add_done_callback(lambda _: work.close())
        task.add_done_callback(self._finished)

    async def drain(self, *, patience: timedelta) -> None:
        """Refuse new tasks, wait for running tasks, and cancel those that take longer."""
        self._is_closed = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience.total_seconds())
        left = list(self._tasks)
        for task in left:
            task.cancel()
        if left:  # tasks that ignore the cancellation end with the process
            await asyncio.wait(left, timeout=CANCEL_S)

    async def idle(self) -> None:
        """Wait until no task runs; for tests and tools."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def one_ended(self) -> Awaitable[None]:
        """Return an awaitable for the next task end, counted from now; for rehearsals."""
        return _until_one_ended(frozenset(self._tasks))

    async def _work(self, work: Coroutine[Any, Any, None]) -> None:
        await self._places.acquire()
        place = _Place(self._places)
        timer = asyncio.get_running_loop().call_later(self._long_s, place.give_back)
        try:
            await work
        finally:
            timer.cancel()
            place.give_back()

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, StoreUnavailableError):  # a database outage is no fault of the program
            logger.warning(
                "task postponed, will retry: %s",
                error,
                extra={"action": "work_put_off"},
            )
        else:
            logger.error(
                "task failed, will retry",
                exc_info=error,
                extra={"action": "work_failed"},
            )


async def _until_one_ended(tasks: Collection[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def close_in_time(
    what: str, close: Callable[[], Awaitable[object]], *, within_s: float = CLOSE_S
) -> None:
    """Close a resource; continue after `within_s` seconds even if it still hangs."""
    closing = asyncio.ensure_future(close())
    try:
        done, _ = await asyncio.wait({closing}, timeout=within_s)
    finally:
        closing.cancel()
    if done:
        await closing
    else:
        closing.add_done_callback(_forget_error)
        logger.warning("%s did not close in time", what, extra={"action": "stopping"})


class Closings:
    """Closes several resources concurrently, each within its time."""

    def __init__(self) -> None:
        self._closings: list[Callable[[], Awaitable[None]]] = []

    def add(
        self, what: str, close: Callable[[], Awaitable[object]], *, within_s: float = CLOSE_S
    ) -> None:
        """Add a resource; see `close_in_time`."""
        self._closings.append(lambda: close_in_time(what, close, within_s=within_s))

    async def close(self) -> None:
        """Close all resources. Raises one of several errors and logs the others."""
        results = await asyncio.gather(
            *(closing() for closing in self._closings), return_exceptions=True
        )
        errors = [error for error in results if error is not None]
        for error in errors[1:]:
            logger.error(
                "could not close a resource at shutdown",
                exc_info=error,
                extra={"action": "stopping"},
            )
        if errors:
            raise errors[0]


def _forget_error(closing: asyncio.Future[object]) -> None:
    if not closing.cancelled():
        closing.exception()  # retrieve the exception, so asyncio does not log it
