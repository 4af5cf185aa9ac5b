"""Work of our own: started by listeners, kept referenced, drained at the stop."""

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
"""Work that takes longer waits for others, such as a model or Slack: its place goes to the next."""
CANCEL_S = 0.5
"""The longest that cancelled work may take to end."""
CLOSE_S = 1.0
"""The longest that closing one thing may take."""


@dataclass(slots=True)
class _Place:
    """A place among those at work, which is given back once."""

    places: asyncio.Semaphore
    is_taken: bool = True

    def give_back(self) -> None:
        if self.is_taken:
            self.is_taken = False
            self.places.release()


class Tasks:
    """A set of tasks, of which a limited number is at work at a time.

    A burst of decisions keeps neither people nor the connections to the database waiting, and
    whoever clicks alone waits for nobody. What follows an answer does not compete with it: it
    begins when the answer has left. What runs here may be cut off at any time: all of it is also on
    record as due work, and the scheduler of any process repeats it.

    Args:
        at_once: How many tasks are at work at a time; those that wait for others are not counted.
        long_s: From how many seconds on a task is taken to wait for others.
    """

    def __init__(self, at_once: int = AT_ONCE, *, long_s: float = LONG_S) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._long_s = long_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: dict[asyncio.Task[Any], list[Coroutine[Any, Any, None]]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def is_closed(self) -> bool:
        """Whether nothing new is begun any more."""
        return self._is_closed

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work, or hold it back where its spawner asked for that.

        After `drain` has begun it is dropped, as it is on record anyway.
        """
        spawner = asyncio.current_task()
        if spawner in self._held:
            self._held[spawner].append(work)
        else:
            self._start(work)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Start what the current task spawns in this block at its end, however it ends."""
        spawner = asyncio.current_task()
        assert spawner is not None  # noqa: S101 (requests are answered by tasks)
        held = self._held[spawner] = []
        try:
            yield
        finally:
            del self._held[spawner]
            for work in held:
                self._start(work)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        if self._is_closed:
            work.close()
            return
        with for_all():  # what follows speaks no longer to the person who clicked
            task = asyncio.get_running_loop().create_task(self._work(work))
        self._tasks.add(task)
        # A task that is cancelled before its first step runs none of its code.
        task.add_done_callback(lambda _: work.close())
        task.add_done_callback(self._finished)

    async def drain(self, *, patience: timedelta) -> None:
        """Accept nothing new, wait for what is left, and cut off what takes longer."""
        self._is_closed = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience.total_seconds())
        left = list(self._tasks)
        for task in left:
            task.cancel()
        if left:  # what does not let itself be cancelled ends with the process
            await asyncio.wait(left, timeout=CANCEL_S)

    async def idle(self) -> None:
        """Wait until nothing runs; for tests and tools."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def one_ended(self) -> Awaitable[None]:
        """Wait until one of what runs now has ended, also before anybody waits; for rehearsals."""
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
        if isinstance(error, StoreUnavailableError):  # nothing is wrong with our program
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
    """Close something; go on without it when that takes too long, even if it cannot be cancelled.

    Args:
        what: Its name, for the log.
        close: Closes it.
        within_s: How long that may take.
    """
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
    """Closes several things at once, each in its time: none keeps another one open."""

    def __init__(self) -> None:
        self._closings: list[Callable[[], Awaitable[None]]] = []

    def add(
        self, what: str, close: Callable[[], Awaitable[object]], *, within_s: float = CLOSE_S
    ) -> None:
        """Take something along; see `close_in_time`."""
        self._closings.append(lambda: close_in_time(what, close, within_s=within_s))

    async def close(self) -> None:
        """Close all of them; of several errors one is raised, and the others are logged."""
        results = await asyncio.gather(*(one() for one in self._closings), return_exceptions=True)
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
        closing.exception()  # nobody waits for it any more
