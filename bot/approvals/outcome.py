"""The outcome of a request, from its decision and from the execution of its call.

Every surface takes its words, symbols and reactions from the outcome: approved is not done.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from bot.approvals.execution import run_of
from bot.records.approval import Approval, Kind, RunState, Status

ANEW = "It is asked anew, under the rules of now."
"""Reason of a request that an operator had asked again."""


class RequestOutcome(StrEnum):
    """The outcome of a request; also the names of the reactions on its thread."""

    WAITS = "waits"
    APPROVED = "approved"  # people said yes; its call has not begun, or there is none
    RUNNING = "running"
    RAN = "ran"  # or people found out that it had run
    FAILED = "failed"
    STOPPED = "stopped"  # approved, but the call did not start
    DOUBT = "doubt"  # the call may have run
    ANSWERED = "answered"
    LEFT = "left"  # people left a call in doubt as it was
    REJECTED = "rejected"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    REPLACED = "replaced"
    CANCELLED = "cancelled"
    NOBODY = "nobody"  # nobody could decide


_RUNS: Mapping[RunState, RequestOutcome] = {
    state: RequestOutcome(state.value) for state in RunState
}
_DOUBTS: Mapping[Status, RequestOutcome] = {
    Status.ANSWERED: RequestOutcome.RAN,
    Status.REJECTED: RequestOutcome.LEFT,
}
_ENDS: Mapping[Status, RequestOutcome] = {
    Status.PENDING: RequestOutcome.WAITS,
    Status.APPROVED: RequestOutcome.APPROVED,
    Status.REJECTED: RequestOutcome.REJECTED,
    Status.ANSWERED: RequestOutcome.ANSWERED,
    Status.EXPIRED: RequestOutcome.EXPIRED,
    Status.CANCELLED: RequestOutcome.CANCELLED,
    Status.WITHDRAWN: RequestOutcome.WITHDRAWN,
    Status.UNDECIDABLE: RequestOutcome.NOBODY,
    Status.SUPERSEDED: RequestOutcome.CANCELLED,
    Status.DENIED: RequestOutcome.DENIED,
}


def outcome_of(approval: Approval) -> RequestOutcome:
    """Return the outcome of the call if it has begun, else the decision."""
    if (run := run_of(approval)) is not None:
        return _RUNS[run.state]
    return decision_of(approval)


def decision_of(approval: Approval) -> RequestOutcome:
    """Return the decision of people or of the bot, without the execution."""
    if approval.kind is Kind.DOUBT and approval.status in _DOUBTS:
        return _DOUBTS[approval.status]
    return RequestOutcome.REPLACED if is_replaced(approval) else _ENDS[approval.status]


def is_replaced(approval: Approval) -> bool:
    """Whether a new request replaces it; otherwise the agent does not wait any more."""
    decision = approval.decision
    if approval.status is not Status.SUPERSEDED or decision is None:
        return False
    return bool(approval.newer_ts) or decision.reason == ANEW


def ended_ms(approval: Approval) -> int:
    """Return the time of the outcome; for an expiry the deadline, even if noticed later."""
    if (run := run_of(approval)) is not None:
        return run.at_ms
    if approval.decision is None or approval.status is Status.EXPIRED:
        return approval.expires_ms
    return approval.decision.at_ms
