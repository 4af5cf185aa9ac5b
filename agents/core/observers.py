"""Observers of a run's events, and the recorder of the application.

An observer is a plain function that is passed to the runner. It is called after the event, must be
fast and cannot change the run: its errors are logged by name and ignored.

A recorder stores what became of approved work in the application's own record, and the run waits
for it. After a crash it receives notices again that it may have missed. It must therefore be
idempotent. What the application records before a start is `agents.core.scope.BeforeStart`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from agents.core.kinds import Json

__all__ = [
    "CallFinished",
    "NodeFailed",
    "NodeFinished",
    "Observer",
    "Recorder",
    "RunEvent",
    "ToolOutcome",
    "WorkInDoubt",
    "WorkNotice",
    "WorkStarted",
]

logger = logging.getLogger(__name__)

FAILURE = "The tool failed: "
"""Prefix of the result of a failed call; the error follows."""


class ToolOutcome(StrEnum):
    """The outcome of a tool call. Stored: version 1, must stay readable."""

    RAN = "ran"
    REJECTED = "rejected"  # an approver rejected it
    EXPIRED = "expired"  # not answered in time
    CANCELLED = "cancelled"  # the request was cancelled
    FAILED = "failed"  # it raised an error, or it is unknown whether it ran
    ANSWERED = "answered"  # it asked people, who answered
    REFUSED = "refused"  # unknown tool or invalid arguments; nothing ran


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """Base of all events of a run.

    Attributes:
        checkpoint_id: Id of the run; empty if the run is not stored.
    """

    checkpoint_id: str


Observer: TypeAlias = Callable[[RunEvent], object]


@dataclass(frozen=True, slots=True)
class Observers:
    """Calls all observers of a run."""

    all: Sequence[Observer] = field(default=())

    def tell(self, event: RunEvent) -> None:
        """Call each observer. An error of an observer does not affect the run."""
        for observer in self.all:
            try:
                observer(event)
            except Exception as error:  # noqa: BLE001 - observers are code of the application
                logger.warning("an observer failed: %s", type(error).__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkNotice:
    """A notice about a tool call or a graph's node.

    Attributes:
        checkpoint_id: Id of the run; empty if the run is not stored.
        address: Address of the tool call or node, as text.
    """

    checkpoint_id: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStarted(WorkNotice):
    """The start of a call or node is stored in the journal.

    Attributes:
        is_news: Whether it starts now. False repeats a notice of a process that crashed.
        is_cancellable: Whether a person's stop cancels it.
        frozen: What the application stored with the start; see `BeforeStart`.
    """

    is_news: bool = True
    is_cancellable: bool = False
    frozen: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished(WorkNotice):
    """The result of a call is stored in the journal. The call may have had no gate.

    Attributes:
        outcome: Outcome of the call.
        text: The result without additions of a gate, or the error.
    """

    outcome: ToolOutcome
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished(WorkNotice):
    """A node of a graph has finished. The node may have had no breakpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailed(WorkNotice):
    """An approved node has failed and does not run again.

    Attributes:
        error: The error as text.
    """

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkInDoubt(WorkNotice):
    """The outcome of a started call or node is unknown. People are asked next."""


class Recorder(Protocol):
    """Stores the application's own record of a run; passed to the runner."""

    async def noted(self, notice: WorkNotice) -> None:
        """Record a journal entry, when it is written or again after a crash.

        If this raises, the run ends before it continues. `Runner.recover` then repeats the notice.
        """
        ...
