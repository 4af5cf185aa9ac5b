"""Stopping a run from outside, at a point from which it can go on later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from agents.core.codec import register
from agents.core.errors import AgentConfigError

__all__ = ["CancelInfo", "CancelMode", "CancelToken"]

CancelMode = Literal["now", "next", "after_model", "after_tools"]


@register("countersign.cancel_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class CancelInfo:
    """Stands where a run was stopped from outside; it goes on without any answer.

    Stored: version 1, must stay readable.

    Attributes:
        mode: Where it stopped: `now`, `next`, `after_model` or `after_tools`.
    """

    mode: str

    def __str__(self) -> str:
        return f"stopped from outside ({self.mode})"


class CancelToken:
    """Cancels a run from outside, at a safe point.

    Agents ask at their safe points whether they shall stop there (`wants`); whoever waits for
    something long is called (`calling`), or waits for `stop_now` as well.

    Attributes:
        mode: Where the run shall stop; None lets it run.
        stop_now: Set as soon as it shall stop at once.
    """

    def __init__(self) -> None:
        self.mode: CancelMode | None = None
        self.stop_now = asyncio.Event()
        self._callers: list[Callable[[], object]] = []

    def cancel(self, mode: CancelMode = "now", *, timeout: timedelta | None = None) -> None:
        """Stop the run. May be called again, to make it more urgent.

        Args:
            mode: `now` gives up what is going on: model calls, and tools, which begin again
                later; of an approved call that had started, people are asked. `next` waits for the
                next safe point, whichever it is, and cuts nothing off. `after_model` and
                `after_tools` wait for the model's answer, or for all calls of that answer. A run
                that ends before that point just ends.
            timeout: After this it is `now`. Needs a running event loop.

        Raises:
            AgentConfigError: There is no such mode.
        """
        if mode not in get_args(CancelMode):
            known = ", ".join(map(repr, get_args(CancelMode)))
            raise AgentConfigError(f"a run cannot be stopped at {mode!r}; use {known}")
        if self.mode != "now":
            self.mode = mode
        if mode == "now":
            self.stop_now.set()
            for call in self._callers:
                call()
        elif timeout is not None:
            asyncio.get_running_loop().call_later(timeout.total_seconds(), self.cancel)

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """Be called, in here, when the run shall stop at once; soon, if it shall already.

        It costs no task, as waiting for `stop_now` does.

        Args:
            call: May be called more than once.
        """
        self._callers.append(call)
        if self.stop_now.is_set():
            asyncio.get_running_loop().call_soon(call)
        try:
            yield
        finally:
            self._callers.remove(call)

    def wants(self, at: CancelMode) -> bool:
        """Whether the run shall stop at this safe point."""
        return self.mode in {at, "now", "next"}


async def stop(*tasks: asyncio.Task[object]) -> None:
    """Cancel tasks that still run, and wait for them."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it once more
