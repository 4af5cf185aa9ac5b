"""Events of the bot's work, for metrics and traces, and the context of its log records.

The code that stores a fact reports its event, so the use cases do not know of events. Without a
subscriber, no event is created. Events contain whole records: a subscriber may use ids and fixed
words of them, but no text of people, tools or models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from agents import ToolEvent
from bot.records.approval import Approval, Decision
from bot.records.messages import Message
from storage.audit import AuditEntry

R_co = TypeVar("R_co", covariant=True)

RunStep = Literal["checkpoint", "resume", "end"]
"""A step of a run, as written to its checkpoint."""

WorkedOn = Literal["thread", "approval"]
"""A kind of record that is processed under a lease."""


@dataclass(frozen=True, slots=True)
class TimedWrite(Generic[R_co]):
    """A write to the database: its times and its outcome.

    Attributes:
        began_ns: Start, in nanoseconds since the epoch.
        ended_ns: End, in nanoseconds since the epoch.
        result: The return value; None if the write failed or was cancelled.
        fault: Class name of the exception; empty if the write succeeded or was cancelled.
    """

    began_ns: int
    ended_ns: int
    result: R_co | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class MessageWritten:
    """A write of a person's message, successful or not.

    Attributes:
        write: The write. Its result says whether the message is new.
    """

    message: Message
    write: TimedWrite[bool]


@dataclass(frozen=True, slots=True)
class RunWritten:
    """A write of a run's step, successful or not.

    Attributes:
        checkpoint_id: Id of the run's checkpoint.
    """

    step: RunStep
    checkpoint_id: str
    write: TimedWrite[object]


@dataclass(frozen=True, slots=True)
class RequestsWritten:
    """A write of new approvals, successful or not.

    Attributes:
        new: The approvals that this write created.
    """

    approvals: Sequence[Approval]
    new: Sequence[Approval]
    write: TimedWrite[object]


@dataclass(frozen=True, slots=True)
class Escalated:
    """The first escalation step of an approval began.

    Attributes:
        approval: The stored approval.
    """

    approval: Approval


@dataclass(frozen=True, slots=True)
class Decided:
    """An approval was decided, expired or closed.

    Attributes:
        approval: The stored approval.
        decision: The stored decision.
    """

    approval: Approval
    decision: Decision


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A card shows its decision for the first time.

    The process that stored the decision reports this.

    Attributes:
        approval: The approval as decided.
        after_s: Seconds since the decision.
    """

    approval: Approval
    after_s: float


@dataclass(frozen=True, slots=True)
class GoneOn:
    """A run continued after a decision.

    The process that stored the decision reports this.

    Attributes:
        after_s: Seconds since the decision.
    """

    after_s: float


@dataclass(frozen=True, slots=True)
class EntriesWritten:
    """Entries were appended to the audit.

    Attributes:
        entries: In the order of writing.
    """

    entries: Sequence[AuditEntry]


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn of an agent ended."""


@dataclass(frozen=True, slots=True)
class ModelUsed:
    """An answer of a model of an agent with limits.

    Attributes:
        agent: Name of the agent.
        tokens: Those read and those written.
        cost: In millionths of a US dollar; 0 without a limit of cost.
    """

    agent: str
    tokens: int
    cost: int


@dataclass(frozen=True, slots=True)
class LimitStopped:
    """A turn stopped at a limit of its agent's models.

    Attributes:
        agent: Name of the agent.
        limit: Name of the limit, as a policy's `when.limit` names it.
    """

    agent: str
    limit: str


@dataclass(frozen=True, slots=True)
class LeaseTakenOver:
    """This process acquired a lease that had expired without a release.

    Attributes:
        record: The kind of record.
    """

    record: WorkedOn


@dataclass(frozen=True, slots=True)
class WorkFailed:
    """Work failed and will be retried.

    Attributes:
        record: The kind of record.
    """

    record: WorkedOn


@dataclass(frozen=True, slots=True)
class ThreadStartAsked:
    """A program, a trigger or a schedule asked for a thread of its own.

    Attributes:
        door: Which of them, as in `RequestDoor`.
        result: `started`, or the code of the refusal, such as `held` or `frozen`.
    """

    door: str
    result: str


@dataclass(frozen=True, slots=True)
class PolicyRead:
    """A policy file was read.

    Attributes:
        is_refused: Whether the file has faults, so that the previous policy stays in effect.
    """

    is_refused: bool


@dataclass(frozen=True, slots=True)
class ClickAnswered:
    """A click was acknowledged, or its response could not be sent.

    Attributes:
        after_s: Seconds since the click arrived.
    """

    after_s: float


@dataclass(frozen=True, slots=True)
class ProgramAnswered:
    """A call of a program was answered.

    Attributes:
        operation: Name of the operation in the OpenAPI document; empty for an unknown path.
        code: Code of the problem; `ok` without one.
    """

    operation: str
    code: str


@dataclass(frozen=True, slots=True)
class SlackCalled:
    """A call of Slack's Web API begins.

    Attributes:
        method: Name of the method.
    """

    method: str


@dataclass(frozen=True, slots=True)
class SlackAnswered:
    """A call of Slack's Web API ended.

    Attributes:
        method: Name of the method.
        took_s: Duration in seconds.
        error: Slack's error code, or the class name of the exception; empty after a success.
    """

    method: str
    took_s: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class WebhookSent:
    """An attempt to deliver an event to a program's endpoint.

    Attributes:
        outcome: `delivered`, `failed` (it is tried again) or `given_up`.
    """

    outcome: Literal["delivered", "failed", "given_up"]


WriteEvent: TypeAlias = MessageWritten | RunWritten | RequestsWritten | Decided
RequestEvent: TypeAlias = (
    Escalated | EntriesWritten | Redrawn | GoneOn | TurnEnded | ToolEvent | ModelUsed | LimitStopped
)
AroundEvent: TypeAlias = (
    LeaseTakenOver
    | WorkFailed
    | PolicyRead
    | ClickAnswered
    | ProgramAnswered
    | SlackCalled
    | SlackAnswered
    | WebhookSent
    | ThreadStartAsked
)
BotEvent: TypeAlias = WriteEvent | RequestEvent | AroundEvent
"""An event of the bot. The runtime reports ended tool calls itself."""

TellEvent: TypeAlias = Callable[[BotEvent], None]
"""Receives an event synchronously. It must return quickly and must not raise."""


def nobody(_: BotEvent) -> None:
    """Ignore the event: there is no subscriber."""


def both(first: TellEvent, second: TellEvent) -> TellEvent:
    """Combine two subscribers; `nobody` is left out."""
    if nobody in (first, second):
        return second if first is nobody else first

    def tell(event: BotEvent) -> None:
        first(event)
        second(event)

    return tell


_about: ContextVar[Mapping[str, str]] = ContextVar("log_context")


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Add ids to all log records of the block and of the tasks started in it.

    Args:
        ids: Ids such as `thread_id`. Empty ids are left out.
    """
    known = {name: value for name, value in ids.items() if value}
    token = _about.set({**context(), **known})
    try:
        yield
    finally:
        _about.reset(token)


def context() -> Mapping[str, str]:
    """Return the ids of the current block."""
    return _about.get({})
