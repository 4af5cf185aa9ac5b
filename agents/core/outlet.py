"""The outlet for events that cannot be yielded: those of code deep inside of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeAlias

Outlet: TypeAlias = Callable[[object], None]
"""Takes an event; in whatever thread it is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EventReader:
    outlet: Outlet | None = None
    passes_on: bool = False


_NOBODY = _EventReader()
_reader: ContextVar[_EventReader] = ContextVar("agents_reader", default=_NOBODY)


def current_outlet() -> Outlet | None:
    """Return the outlet of the code that runs now; None when nobody reads events."""
    return _reader.get().outlet


def passes_on() -> bool:
    """Whether somebody reads, and events of agents that are run here go there by themselves."""
    reader = _reader.get()
    return reader.passes_on and reader.outlet is not None


@contextmanager
def telling(take: Callable[[object], None], *, passes_on: bool) -> Iterator[None]:
    """Take the events that are told in here.

    Args:
        take: Takes them, always in the thread of this loop.
        passes_on: Whether events of agents that are run in here are told by themselves. An agent
            yields those of its own agents, a graph node cannot.
    """
    loop = asyncio.get_running_loop()

    def outlet(event: object) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # a tool or a node in a thread of its own
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
    """Have events of agents that are run in here told by themselves, to whoever reads now."""
    token = _reader.set(replace(_reader.get(), passes_on=True))
    try:
        yield
    finally:
        _reader.reset(token)
