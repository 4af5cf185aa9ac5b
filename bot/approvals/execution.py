"""The execution of an approved call: its rules, as pure functions of the stored approval.

What may start is decided here, in the very write that starts it. Each function that changes an
approval returns None if the change is not permitted; see `storage.documents.update`. A process
whose lease of the thread is older than the stored execution writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from agents.core.errors import CheckpointConflictError
from bot.approvals.changes import shown
from bot.config.durations import format_duration
from bot.records.approval import (
    Approval,
    CastVote,
    Decision,
    Execution,
    ExecutionMode,
    ExecutionState,
    Kind,
    ParkedCall,
    Status,
)
from bot.words import say

_LETTING_RUN = frozenset({Status.APPROVED, Status.ANSWERED})
_BEGUN = frozenset({ExecutionState.ENDED, ExecutionState.FAILED})

ENDED = frozenset({ExecutionState.ENDED, ExecutionState.FAILED, ExecutionState.LAPSED})
"""Final states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFacts:
    """Facts about a call right before it starts.

    Attributes:
        now_ms: The time now.
        runner: Name of the process that would run it.
        fence: Fencing token of the thread's lease that this process has; 0 without one.
        is_gone: Whether a person who approved it has lost the right since.
        decided_ms: Time of the last decision that the call needs; 0 for the approval's own.
        only_checks: Whether the call does not start yet. A step that has failed is not asked about
            again: its run finds the failure in its journal.
        repeats: Whether an idempotent call runs again after a crash. Its decision was judged before
            the crash.
        is_again: Whether people decided that a call in doubt runs again.
        mode: How often the call may run.
        is_cancellable: Whether a stop of the agent cancels the running call.
    """

    now_ms: int
    runner: str = ""
    fence: int = 0
    is_gone: bool = False
    decided_ms: int = 0
    only_checks: bool = False
    repeats: bool = False
    is_again: bool = False
    mode: ExecutionMode = ExecutionMode.ONCE
    is_cancellable: bool = False


def why_not(approval: Approval, facts: StartFacts) -> str:
    """Return why an approval does not let its call start; empty if it does.

    A call whose start is on record, but not in the journal of its run, has not begun: its process
    died in between. It may start.
    """
    decision, state = approval.decision, approval.execution.state
    if decision is None or not has_yes(approval):
        return say("reason.no_record")
    # Without a sign: a decision of the future has a wrong clock, and is as old as it is ahead.
    max_age_s = approval.terms.max_age_s
    age_ms = abs(facts.now_ms - (facts.decided_ms or decision.at_ms))
    has_failed = state is ExecutionState.FAILED and facts.only_checks
    in_doubt = state is ExecutionState.DOUBT and not facts.is_again
    reasons = {
        "reason.has_run": state in _BEGUN and not has_failed,
        "reason.lapsed": state is ExecutionState.LAPSED,
        "reason.in_doubt": in_doubt and not facts.repeats,
        "reason.too_late": age_ms > max_age_s * 1_000 and not facts.repeats,
        "reason.gone": facts.is_gone,
    }
    key = next((key for key, holds in reasons.items() if holds), "")
    return say(key, time=format_duration(timedelta(seconds=max_age_s))) if key else ""


def started(approval: Approval, facts: StartFacts) -> Approval | None:
    """Return the approval with the start of its call, before the call begins.

    Cards do not change yet: most calls end before a card could show the start.

    Raises:
        CheckpointConflictError: The lease was lost.
    """
    _check_lease(approval, facts.fence)
    if why_not(approval, facts):
        return None
    execution = Execution(
        mode=facts.mode,
        state=ExecutionState.STARTED,
        runner=facts.runner,
        started_ms=facts.now_ms,
        fence=facts.fence,
        at_ms=facts.now_ms,
        is_cancellable=facts.is_cancellable,
    )
    return approval.changed(execution=execution)


def parked(
    approval: Approval, call: ParkedCall, *, begun: Execution, now_ms: int
) -> Approval | None:
    """Return the approval whose call waits for the end of a freeze, instead of this start."""
    if approval.execution != begun or not has_yes(approval):
        return None
    execution = Execution(mode=begun.mode, fence=begun.fence, parked=call)
    return shown(approval, execution=execution, now_ms=now_ms)


def held(approval: Approval, call: ParkedCall, *, fence: int, now_ms: int) -> Approval | None:
    """Return the approval whose run does not hear of it yet, because a freeze covers its work.

    Raises:
        CheckpointConflictError: The lease was lost.
    """
    _check_lease(approval, fence)
    execution = approval.execution
    is_same = execution.parked is not None and execution.parked.freeze == call.freeze
    if execution.state is not ExecutionState.READY or not has_yes(approval) or is_same:
        return None
    execution = execution.changed(parked=call, fence=fence)
    return shown(approval, execution=execution, now_ms=now_ms)


def can_take_back(approval: Approval) -> bool:
    """Whether people may still end an approved call, because it waits for the end of a freeze.

    A call that may have run before is a doubt, which only its own answers settle.
    """
    call = approval.execution.parked
    return (
        has_yes(approval)
        and approval.execution.state is ExecutionState.READY
        and call is not None
        and not call.may_have_run
    )


def taken_back(
    approval: Approval, decision: Decision, *, revision: int, vote: CastVote | None = None
) -> Approval | None:
    """Return the approval whose parked call was withdrawn or rejected; None once it has started.

    Its thread is told again. The execution keeps the freeze: see `was_taken_back`.
    """
    before = approval.decision
    if before is None or not can_take_back(approval) or approval.revision != revision:
        return None
    votes = approval.votes if vote is None else _with_vote(approval, vote)
    # The audit and the thread know a decision by its time.
    last = decision.changed(at_ms=max(decision.at_ms, before.at_ms + 1))
    return shown(
        approval, status=last.status, decision=last, votes=votes, open=True, now_ms=decision.at_ms
    )


def with_rejection(
    approval: Approval, vote: CastVote, *, revision: int, now_ms: int
) -> Approval | None:
    """Return the approval of a parked call with a rejection that does not decide alone."""
    if not can_take_back(approval) or approval.revision != revision:
        return None
    return shown(approval, votes=_with_vote(approval, vote), now_ms=now_ms)


def _with_vote(approval: Approval, vote: CastVote) -> tuple[CastVote, ...]:
    return (*(other for other in approval.votes if other.by != vote.by), vote)


def was_taken_back(approval: Approval) -> bool:
    """Whether people ended the approved call while it waited for the end of a freeze."""
    is_ended = approval.status in {Status.WITHDRAWN, Status.REJECTED}
    return is_ended and approval.execution.parked is not None


def not_begun(approval: Approval, *, begun: Execution, before: Execution) -> Approval | None:
    """Return the approval as it was before a start that led to nothing."""
    if approval.execution != begun:
        return None
    return approval.changed(execution=before.changed(fence=begun.fence))


def _check_lease(approval: Approval, fence: int) -> None:
    """Refuse a write of a process that has lost the thread's lease to another one.

    Raises:
        CheckpointConflictError: A newer lease has written the execution.
    """
    if approval.execution.fence > fence:
        raise CheckpointConflictError(approval.checkpoint_id)


def with_outcome(  # noqa: PLR0913 - the parts of one state, given by name
    approval: Approval,
    state: ExecutionState,
    *,
    fence: int,
    now_ms: int,
    text: str = "",
    number: int = 0,
    is_cancellable: bool | None = None,
    closes: bool = False,
) -> Approval | None:
    """Return the approval with what became of its call, which people see.

    Args:
        approval: The stored approval.
        state: Any state but `READY`.
        fence: Fencing token of the thread's lease that this process has.
        now_ms: The time now.
        text: The result, the error, or why the call did not start.
        number: The start number, if it is known.
        is_cancellable: Whether a stop cancels the running call; None as before.
        closes: Whether the interrupt is gone, because its call ended in a run that continues. The
            decision has been in the audit since before the start.

    Raises:
        CheckpointConflictError: The lease was lost.
    """
    _check_lease(approval, fence)
    before = approval.execution
    if approval.status not in _LETTING_RUN or not _follows(before.state, state):
        return None
    execution = before.changed(
        state=state,
        number=number or before.number,
        fence=fence,
        at_ms=now_ms,
        text=text,
        is_cancellable=before.is_cancellable if is_cancellable is None else is_cancellable,
    )
    is_open = approval.open and not closes
    return shown(approval, execution=execution, open=is_open, now_ms=now_ms)


def _follows(before: ExecutionState, after: ExecutionState) -> bool:
    """Whether a state is newer than the stored one."""
    if before in ENDED or before is after:
        return False
    # Only people settle a doubt: it ran, or it runs again, which is a start of its own.
    return before is not ExecutionState.DOUBT or after is ExecutionState.ENDED


def has_yes(approval: Approval) -> bool:
    """Whether people decided that the call may run."""
    return approval.decision is not None and approval.status in _LETTING_RUN


def execution_of(approval: Approval) -> Execution | None:
    """Return the execution of an approval; None if its call has not started."""
    execution = approval.execution
    is_ready = execution.state is ExecutionState.READY
    return None if is_ready or approval.status not in _LETTING_RUN else execution


def may_have_run(approval: Approval) -> bool:
    """Whether nobody knows if the call has run, also while it waits to run again."""
    execution, call = approval.execution, approval.execution.parked
    if execution.state is ExecutionState.READY:
        return has_yes(approval) and call is not None and call.may_have_run
    has_begun = execution.state in {ExecutionState.STARTED, ExecutionState.DOUBT}
    return has_begun and execution_of(approval) is not None


def must_finish(approval: Approval) -> bool:
    """Whether the call is running, and a stop of the agent cannot cancel it."""
    execution = execution_of(approval)
    return (
        execution is not None
        and execution.state is ExecutionState.STARTED
        and not execution.is_cancellable
    )


def lets_run(approval: Approval) -> bool:
    """Whether the approval runs something: a call, a step, or a retry."""
    match approval.kind:
        case Kind.APPROVAL:
            return approval.status is Status.APPROVED
        case Kind.QUESTION:  # the missing arguments of a call
            return approval.status is Status.ANSWERED and bool(approval.tool.strip())
        case Kind.DOUBT:
            return approval.status is Status.APPROVED


def has_ended(approval: Approval) -> bool:
    """Whether the outcome of the call is known and final."""
    execution = execution_of(approval)
    return execution is not None and execution.state in ENDED


def is_settled_doubt(approval: Approval) -> bool:
    """Whether the approval was a doubt that was settled without running the call."""
    if approval.kind is not Kind.DOUBT or approval.status is Status.PENDING:
        return False
    return approval.answered("choice") != "again"
