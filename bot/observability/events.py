"""Events of the bot's work, for metrics and traces.

Each is told where it is on record, by whoever put it there; what nobody listens to costs nothing.
They carry records as they are: a subscriber takes ids and fixed words of them, and nothing that
people, tools or models wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from agents import ToolEvent
from bot.approvals.model import Approval, Decision
from bot.threads.messages import Message
from storage.audit import AuditEntry

R_co = TypeVar("R_co", covariant=True)

RunStep = Literal["checkpoint", "resume", "end"]
"""A step of a run that its checkpoint shows."""

WorkedOn = Literal["thread", "approval"]
"""A kind of record that processes take leases of."""


@dataclass(frozen=True, slots=True)
class TimedWrite(Generic[R_co]):
    """A write to the database, as it went.

    Attributes:
        began_ns: Its begin, in nanoseconds since the epoch.
        ended_ns: Its end.
        result: What it returned; None when it failed, or was cut off.
        fault: The kind of error that it failed with; empty when it did not.
    """

    began_ns: int
    ended_ns: int
    result: R_co | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class MessageWritten:
    """A person's message was to be kept.

    Attributes:
        message: The message.
        write: How it went; whether it is new.
    """

    message: Message
    write: TimedWrite[bool]


@dataclass(frozen=True, slots=True)
class RunWritten:
    """A step of a run was to be kept.

    Attributes:
        step: Which.
        checkpoint_id: Of the run.
        write: How it went.
    """

    step: RunStep
    checkpoint_id: str
    write: TimedWrite[object]


@dataclass(frozen=True, slots=True)
class RequestsWritten:
    """People were to be asked.

    Attributes:
        approvals: What they decide.
        new: Those that are on record now, and were not before.
        write: How it went.
    """

    approvals: Sequence[Approval]
    new: Sequence[Approval]
    write: TimedWrite[object]


@dataclass(frozen=True, slots=True)
class Escalated:
    """The backup people may decide, too.

    Attributes:
        approval: As stored.
    """

    approval: Approval


@dataclass(frozen=True, slots=True)
class Decided:
    """An approval is no longer pending.

    Attributes:
        approval: As stored.
        decision: What decided it.
    """

    approval: Approval
    decision: Decision


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A card shows for the first time how it was decided, in the process that saw it decided.

    Attributes:
        approval: As decided.
        after_s: Seconds since then.
    """

    approval: Approval
    after_s: float


@dataclass(frozen=True, slots=True)
class GoneOn:
    """The agent has gone on from a decision, in the process that saw it decided.

    Attributes:
        after_s: Seconds since then.
    """

    after_s: float


@dataclass(frozen=True, slots=True)
class EntriesWritten:
    """Entries are in the audit.

    Attributes:
        entries: In the order in which they were written.
    """

    entries: Sequence[AuditEntry]


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn of an agent is over."""


@dataclass(frozen=True, slots=True)
class LeaseTakenOver:
    """This process has taken a lease that ended without a release.

    Attributes:
        record: Of what.
    """

    record: WorkedOn


@dataclass(frozen=True, slots=True)
class WorkFailed:
    """Work has failed, and is due again.

    Attributes:
        record: On what.
    """

    record: WorkedOn


@dataclass(frozen=True, slots=True)
class PolicyRead:
    """A policy file was read.

    Attributes:
        is_refused: Whether it is faulty: the one before stays in force.
    """

    is_refused: bool


@dataclass(frozen=True, slots=True)
class ClickAnswered:
    """A click has its acknowledgement, if it is still waited for.

    Attributes:
        after_s: Seconds since it arrived.
    """

    after_s: float


@dataclass(frozen=True, slots=True)
class SlackCalled:
    """A call of Slack's Web API begins.

    Attributes:
        method: Which.
    """

    method: str


@dataclass(frozen=True, slots=True)
class SlackAnswered:
    """A call of Slack's Web API is over.

    Attributes:
        method: Which.
        took_s: Seconds.
        error: Slack's word for why not, or the kind of error; empty when it went well.
    """

    method: str
    took_s: float
    error: str = ""


WriteEvent: TypeAlias = MessageWritten | RunWritten | RequestsWritten | Decided
RequestEvent: TypeAlias = Escalated | EntriesWritten | Redrawn | GoneOn | TurnEnded | ToolEvent
AroundEvent: TypeAlias = (
    LeaseTakenOver | WorkFailed | PolicyRead | ClickAnswered | SlackCalled | SlackAnswered
)
BotEvent: TypeAlias = WriteEvent | RequestEvent | AroundEvent
"""An event; that a tool call is over, the runtime tells."""

TellEvent: TypeAlias = Callable[[BotEvent], None]
"""Takes an event, in the moment when it happens: it must be quick, and must not fail."""


def nobody(_: BotEvent) -> None:
    """Does not listen."""


def both(first: TellEvent, second: TellEvent) -> TellEvent:
    """Tell two, or the one of them that listens."""
    if nobody in (first, second):
        return second if first is nobody else first

    def tell(event: BotEvent) -> None:
        first(event)
        second(event)

    return tell
