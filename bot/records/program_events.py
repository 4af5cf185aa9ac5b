"""The events of a program's request, derived from each change that people can see."""

from __future__ import annotations

from bot.records.approval import (
    Approval,
    Execution,
    ExecutionState,
    Kind,
    ProgramEvent,
    ProgramEventType,
    Status,
)
from bot.records.origin import ProgramCall

_ENDS = frozenset({ExecutionState.ENDED, ExecutionState.FAILED, ExecutionState.LAPSED})


def with_event(before: Approval, after: Approval) -> Approval:
    """Return a changed request of a program with the event that the change makes, if any.

    Of several updates that nobody has been told, the newest stays.
    """
    event_type = _type_of(before, after)
    return after if event_type is None else _with(after, event_type)


def with_birth(approval: Approval) -> Approval:
    """Return a new request of a program with its first events, also if it is over at once."""
    is_over = approval.status is not Status.PENDING
    pending = approval.changed(status=Status.PENDING)
    events = _with(pending, ProgramEventType.CREATED).events
    if not is_over:
        return approval.changed(events=events)
    ended = approval.changed(shown_revision=approval.shown_revision + 1, events=events)
    return _with(ended, ProgramEventType.DECIDED)


def is_settled(approval: Approval) -> bool:
    """Whether a program's request was over when it was made, and has no card."""
    return (
        isinstance(approval.asker, ProgramCall)
        and not approval.open
        and not approval.messages
        and approval.execution.state is ExecutionState.READY
    )


def _with(approval: Approval, event_type: ProgramEventType) -> Approval:
    event = ProgramEvent(
        type=event_type,
        sequence=approval.shown_revision,
        at_ms=approval.shown_ms or approval.created_ms,
        status=approval.status,
        execution=approval.execution,
    )
    is_update = event_type is ProgramEventType.UPDATED
    earlier = (known for known in approval.events if not is_update or known.type is not event_type)
    return approval.changed(events=(*earlier, event))


def _type_of(before: Approval, after: Approval) -> ProgramEventType | None:
    if after.kind is Kind.DOUBT:  # asked of people for the bot; the program asked for its call
        return None
    if before.status is Status.PENDING and after.status is not Status.PENDING:
        return ProgramEventType.DECIDED
    if run := _type_of_run(before.execution, after.execution):
        return run
    is_new = after.status is Status.PENDING and _progress(before) != _progress(after)
    return ProgramEventType.UPDATED if is_new else None


def _type_of_run(before: Execution, after: Execution) -> ProgramEventType | None:
    """Return the event of a changed execution. A start counts once it has its number."""
    if before.state is not after.state:
        if after.state in _ENDS:
            return ProgramEventType.ENDED
        if after.state is ExecutionState.DOUBT:
            return ProgramEventType.UNKNOWN
        if after.state is ExecutionState.READY:
            return ProgramEventType.UPDATED  # people let it run again
    is_numbered = after.state is ExecutionState.STARTED and bool(after.number)
    return ProgramEventType.STARTED if is_numbered and after.number != before.number else None


def _progress(approval: Approval) -> tuple[object, ...]:
    escalation = approval.escalation
    return approval.votes, approval.stage, approval.digest, escalation.steps, escalation.reminders
