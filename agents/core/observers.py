"""The events that observers of a run receive, in the order in which things happen.

An observer is a plain function, given to the runner; there is no global list of them. It is told
after the fact, must be quick, and cannot change what happens: an error that it raises is logged by
name and dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agents.core.address import Address
from agents.core.calls import ToolCall, ToolOutcome
from agents.core.pending import InterruptContext

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """The base of all events of a run.

    Attributes:
        checkpoint_id: Which run; empty when nothing is kept.
    """

    checkpoint_id: str


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


Observer: TypeAlias = Callable[[RunEvent], object]


@dataclass(frozen=True, slots=True)
class Observers:
    """Tells all observers of a run.

    Attributes:
        all: In the order in which they are told.
    """

    all: Sequence[Observer] = field(default=())

    def tell(self, event: RunEvent) -> None:
        """Tell each of them; one that fails does not disturb the run."""
        for observer in self.all:
            try:
                observer(event)
            except Exception as error:  # noqa: BLE001 - observers are somebody else's code
                logger.warning("an observer failed: %s", type(error).__name__)
