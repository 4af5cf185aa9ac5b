"""Events of a run for observers, in their order, and the outlet for events of nested code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeAlias

from agents.core.address import Address
from agents.core.calls import ToolCall
from agents.core.observers import RunEvent, ToolOutcome
from agents.core.pending import InterruptContext

__all__ = [
    "RunCancelled",
    "RunFailed",
    "RunFinished",
    "RunInterrupted",
    "RunResumed",
    "RunStarted",
    "ToolFinished",
    "ToolInterrupted",
    "ToolStarted",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(RunEvent):
    """A run begins.

    Attributes:
        agent_name: Name of the root agent.
    """

    agent_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed(RunEvent):
    """A run resumes, after answers or after its process crashed.

    Attributes:
        targets: Ids of the answered interrupts.
        is_recovery: Whether the run resumes after a crash.
    """

    targets: tuple[str, ...] = ()
    is_recovery: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInterrupted(RunEvent):
    """A run is interrupted, and its checkpoint is stored.

    Attributes:
        contexts: All pending interrupts.
    """

    contexts: tuple[InterruptContext, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelled(RunEvent):
    """A run was cancelled, and its checkpoint is stored for a resume.

    Attributes:
        contexts: All pending interrupts.
    """

    contexts: tuple[InterruptContext, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(RunEvent):
    """A run has finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed(RunEvent):
    """A run failed.

    Attributes:
        error: The exception that ended it.
    """

    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(RunEvent):
    """A call starts, or resumes after an answer.

    Attributes:
        address: Address of the call.
        call: The call.
    """

    address: Address
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(RunEvent):
    """A call has its result.

    Attributes:
        address: Address of the call.
        call: The call.
        outcome: Outcome of the call.
    """

    address: Address
    call: ToolCall
    outcome: ToolOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInterrupted(RunEvent):
    """A call is interrupted.

    Attributes:
        address: Address of the call.
        call: The call.
    """

    address: Address
    call: ToolCall


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
