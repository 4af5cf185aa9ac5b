"""A recorder: the application's own record of what people let run, kept with the journal.

Observers are told afterwards, and cannot stop anything. A recorder is waited for: what it cannot
put on record does not start, and what has happened is not forgotten before the recorder knows it.
After a crash it is told again what it may not have kept, so that it must bear to hear news twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from agents.core.calls import ToolOutcome
from agents.core.codec import Json


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
