"""Execution of an approved call, as stored with its approval."""

from __future__ import annotations

from bot.records.approval import Approval, Kind, Run, RunState, Status

_LETTING_RUN = frozenset({Status.APPROVED, Status.ANSWERED})


ENDED = frozenset({RunState.RAN, RunState.FAILED, RunState.STOPPED})
"""Final states."""


def run_of(approval: Approval) -> Run | None:
    """Return the execution of an approval; None if there is none."""
    return approval.run if approval.status in _LETTING_RUN else None


def must_finish(approval: Approval) -> bool:
    """Whether the call is running, and a stop of the agent cannot cancel it."""
    run = run_of(approval)
    return run is not None and run.state is RunState.RUNNING and not run.is_cancellable


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
    run = run_of(approval)
    return run is not None and run.state in ENDED


def is_settled_doubt(approval: Approval) -> bool:
    """Whether the approval was a doubt that was settled without running the call."""
    if approval.kind is not Kind.DOUBT or approval.status is Status.PENDING:
        return False
    return approval.answered("choice") != "again"
