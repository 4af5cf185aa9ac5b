"""Cancel a run at a safe point, so that it can be resumed later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from agents.core.codec import register
from agents.core.errors import AgentConfigError

__all__ = ["CancelInfo", "CancelMode", "CancelToken"]

CancelMode = Literal["now", "finish_tools", "next", "after_model", "after_tools", "models"]
_URGENT: tuple[CancelMode, ...] = ("now", "finish_tools", "models")
"""Modes that cancel something at once. A later call cannot make them less urgent."""


@register("countersign.cancel_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class CancelInfo:
    """The info of an interrupt where a run was cancelled. It needs no answer.

    Stored: version 1, must stay readable.

    Attributes:
        mode: Where the run stopped; see `CancelToken.cancel`.
    """

    mode: str

    def __str__(self) -> str:
        return f"stopped from outside ({self.mode})"


class CancelToken:
    """Cancels a run from outside, at a safe point.

    Agents check `wants` at their safe points. Long waits register a callback (`calling`) or wait
    for `stop_now`.

    Args:
        is_halted: Awaited before each request to a model: whether to cancel the run there.

    Attributes:
        mode: The requested safe point, or None while the run is not cancelled.
        stop_now: Set when the run must stop at once.
    """

    def __init__(self, *, is_halted: Callable[[], Awaitable[bool]] | None = None) -> None:
        self._is_halted = is_halted
        self.mode: CancelMode | None = None
        self.stop_now = asyncio.Event()
        self._callers: list[Callable[[], object]] = []

    def cancel(self, mode: CancelMode = "now", *, timeout: timedelta | None = None) -> None:
        """Cancel the run. A later call can make the request more urgent.

        Args:
            mode: `now` cancels running model calls and tools. Tools start again on resume. If an
                approved call had started, people are asked. `finish_tools` cancels model calls, and
                tools that are `cancellable`. Other tools that have started finish, and none starts.
                `models` cancels model calls only: all tools that have started finish, none starts.
                `next` waits for the next safe point of any kind and cancels nothing. `after_model`
                and `after_tools` wait for the model's answer or for all calls of that answer. A run
                that ends before that point ends normally.
            timeout: Time after which the mode becomes `now`. Needs a running event loop.

        Raises:
            AgentConfigError: The mode is unknown.
        """
        if mode not in get_args(CancelMode):
            known = ", ".join(map(repr, get_args(CancelMode)))
            raise AgentConfigError(f"a run cannot be stopped at {mode!r}; use {known}")
        current = self.mode
        if current not in _URGENT or mode in _URGENT[: _URGENT.index(current)]:
            self.mode = mode
        if mode == "now":
            self.stop_now.set()
        if mode in _URGENT:
            for call in self._callers:
                call()
        elif timeout is not None:
            asyncio.get_running_loop().call_later(timeout.total_seconds(), self.cancel)

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """Register a callback for an urgent stop, while the block runs.

        If the stop is already urgent, the callback is scheduled at once. Waiting for `stop_now`
        would need a task; this does not.

        Args:
            call: May be called more than once.
        """
        self._callers.append(call)
        if self.is_urgent:
            asyncio.get_running_loop().call_soon(call)
        try:
            yield
        finally:
            self._callers.remove(call)

    async def check_halted(self) -> None:
        """Ask the application whether to cancel the run before a request to a model."""
        if self._is_halted is not None and await self._is_halted():
            self.cancel("models")

    def wants(self, at: CancelMode) -> bool:
        """Whether the run should stop at this safe point."""
        return self.mode in {at, *_URGENT, "next"}

    @property
    def is_urgent(self) -> bool:
        """Whether model calls are cancelled, and no further tool may start."""
        return self.mode in _URGENT


async def stop(*tasks: asyncio.Task[object], patience: timedelta | None = None) -> None:
    """Cancel unfinished tasks and wait for them, at most for `patience`."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=None if patience is None else patience.total_seconds())
    for task in tasks:
        if task.done():
            _mark_retrieved(task)
        else:
            task.add_done_callback(_mark_retrieved)


def _mark_retrieved(task: asyncio.Task[object]) -> None:
    """Mark the exception of a task as retrieved, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
