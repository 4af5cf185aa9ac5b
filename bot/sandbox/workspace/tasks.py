"""Background tasks that are awaited at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from bot.sandbox.workspace.changes import Changes


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
