"""The outlet for events of nested code, such as agents that a tool or a node runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeAlias

Outlet: TypeAlias = Callable[[object], None]
"""Receives an event; may be called in any thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EventReader:
    outlet: Outlet | None = None
    passes_on: bool = False


_NOBODY = _EventReader()
_reader: ContextVar[_EventReader] = ContextVar("agents_reader", default=_NOBODY)


def current_outlet() -> Outlet | None:
    """Return the outlet of the current code, or None if events are not read."""
    return _reader.get().outlet


def passes_on() -> bool:
    """Whether events of agents that are run here are passed on automatically."""
    reader = _reader.get()
    return reader.passes_on and reader.outlet is not None


@contextmanager
def telling(take: Callable[[object], None], *, passes_on: bool) -> Iterator[None]:
    """Receive the events that are emitted in the block, in the thread of this event loop.

    `passes_on` passes on events of agents that are run in the block automatically. An agent yields
    those of its own agents; a graph node cannot.
    """
    loop = asyncio.get_running_loop()

    def outlet(event: object) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # a tool or node in another thread
            loop.call_soon_threadsafe(take, event)
        else:
            take(event)

    token = _reader.set(_EventReader(outlet=outlet, passes_on=passes_on))
    try:
        yield
    finally:
        _reader.reset(token)


@contextmanager
def passing_on() -> Iterator[None]:
    """Pass on events of agents that are run in the block to the current reader."""
    token = _reader.set(replace(_reader.get(), passes_on=True))
    try:
        yield
    finally:
        _reader.reset(token)
