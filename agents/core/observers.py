"""Those who are told of a run: observers of its events, and the application's recorder.

An observer is a plain function, given to the runner; there is no global list of them. It is told
after the fact, must be quick, and cannot change what happens: an error that it raises is logged by
name and dropped.

A recorder keeps the application's own record of what people let run, and is waited for: what it
cannot put on record does not start, and what has happened is not forgotten before it knows. After a
crash it is told again what it may not have kept, so that it must bear to hear news twice.
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
    "WorkStarting",
]

logger = logging.getLogger(__name__)

FAILURE = "The tool failed: "
"""Begins the result of a call that failed; the error follows."""


class ToolOutcome(StrEnum):
    """The outcome of a tool call. Stored: version 1, must stay readable."""

    RAN = "ran"
    REJECTED = "rejected"  # a person said no
    EXPIRED = "expired"  # nobody answered in time
    CANCELLED = "cancelled"  # the question was taken back
    FAILED = "failed"  # it ran and raised an error, or nobody knows whether it ran
    ANSWERED = "answered"  # it asked people, and they answered
    REFUSED = "refused"  # no such tool, or wrong arguments: nothing ran


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """The base of all events of a run.

    Attributes:
        checkpoint_id: Which run; empty when nothing is kept.
    """

    checkpoint_id: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkNotice:
    """A notice about a tool call or a graph's node.

    Attributes:
        checkpoint_id: Which run; empty when nothing is kept.
        address: Of the tool call, or of the graph's node, as text.
    """

    checkpoint_id: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStarting(WorkNotice):
    """A gated call, or a node behind a breakpoint, is about to start.

    Attributes:
        arguments: What runs, exactly; none of a node.
        segment: Tells apart starts at one address: it is the same when a start is repeated, and
            another when people let it run once more.
        secret: Names of arguments that the tool's author calls secret.
        shown: Names of those that only look like secrets, says the author.
    """

    arguments: Mapping[str, Json]
    segment: int
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStarted(WorkNotice):
    """Its start is in the journal.

    Attributes:
        is_news: Whether it starts now; otherwise its process is gone, and may have told of it.
    """

    is_news: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished(WorkNotice):
    """The result of a call is in the journal. Calls of which nobody was asked may be among them.

    Attributes:
        outcome: What came of it.
        text: Its result, without what a gate adds for the model; its error when it failed.
    """

    outcome: ToolOutcome
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished(WorkNotice):
    """A node of a graph has finished. Nodes that nobody let run may be among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailed(WorkNotice):
    """A node that people let run has failed, and does not run again.

    Attributes:
        error: Why.
    """

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkInDoubt(WorkNotice):
    """It had started, and nobody knows whether it ran: people are about to be asked."""


class Recorder(Protocol):
    """Keeps the application's own record; given to the runner."""

    async def starting(self, start: WorkStarting) -> None:
        """Put a start on record, before it is in the journal and before anything runs.

        An error means: it does not start, the run ends with the error, and nobody is in doubt.
        """
        ...

    async def noted(self, notice: WorkNotice) -> None:
        """Take note of what is in the journal, as it gets there; or once more, after a crash.

        An error ends the run before it goes on from there; `Runner.recover` tells it again.
        """
        ...
