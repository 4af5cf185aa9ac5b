"""Events of a run for observers, in the order in which they happen."""

from __future__ import annotations

from dataclasses import dataclass

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
