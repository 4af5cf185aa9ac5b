"""Wait for a change without polling, and run tasks in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Changes:
    """Tells everybody who waits that something has changed."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def tell(self) -> None:
        """Let each waiter look again."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    async def until(self, predicate: Callable[[], T], timeout: float) -> T:
        """Wait until `predicate` gives something true, and return it.

        Raises:
            TimeoutError: It did not, within `timeout` seconds.
        """
        async with asyncio.timeout(timeout):
            while not (value := predicate()):
                waiter = asyncio.get_running_loop().create_future()
                self._waiting.add(waiter)
                try:
                    await waiter
                finally:
                    self._waiting.discard(waiter)
        return value


class BackgroundTasks:
    """Keeps running tasks alive until they are done or `stop` is called."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something in the background."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    @property
    def count(self) -> int:
        """The number of tasks that still run."""
        return len(self._running)

    async def idle(self) -> None:
        """Wait until nothing runs."""
        while self._running:
            await asyncio.wait(self._running)

    async def stop(self) -> None:
        """Cancel what still runs, and wait for its end."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._changes.tell()
