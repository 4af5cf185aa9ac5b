"""The events of a run that observers receive, in the order in which things happen."""

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
        agent_name: Of the root agent.
    """

    agent_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed(RunEvent):
    """A run goes on: after answers, or after its process died.

    Attributes:
        targets: Ids of the interrupts that were answered.
        is_recovery: Whether it goes on after a crash.
    """

    targets: tuple[str, ...] = ()
    is_recovery: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInterrupted(RunEvent):
    """A run waits for people; its checkpoint is stored.

    Attributes:
        contexts: Everything that waits.
    """

    contexts: tuple[InterruptContext, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelled(RunEvent):
    """A run was stopped from outside; its checkpoint is stored, so that it can go on.

    Attributes:
        contexts: Everything that waits.
    """

    contexts: tuple[InterruptContext, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(RunEvent):
    """A run has come to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed(RunEvent):
    """A run cannot go on.

    Attributes:
        error: Why.
    """

    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(RunEvent):
    """A call begins, or goes on after an answer.

    Attributes:
        address: Where.
        call: Which.
    """

    address: Address
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(RunEvent):
    """A call has its result.

    Attributes:
        address: Where.
        call: Which.
        outcome: What came of it.
    """

    address: Address
    call: ToolCall
    outcome: ToolOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInterrupted(RunEvent):
    """A call waits for people.

    Attributes:
        address: Where.
        call: Which.
    """

    address: Address
    call: ToolCall
