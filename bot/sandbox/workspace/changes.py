"""Wait for a change without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

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
            while not (found := predicate()):
                waiter = asyncio.get_running_loop().create_future()
                self._waiting.add(waiter)
                try:
                    await waiter
                finally:
                    self._waiting.discard(waiter)
        return found
