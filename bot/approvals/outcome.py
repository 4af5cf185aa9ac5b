"""The outcome of a request, from its decision and from the execution of its call.

Every surface takes its words, symbols and reactions from the outcome: approved is not done.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from bot.approvals.execution import execution_of
from bot.audit.acts import Act
from bot.records.approval import Approval, ExecutionState, Kind, Status
from storage.audit import AuditEntry

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


_RUNS: Mapping[ExecutionState, RequestOutcome] = {
    ExecutionState.STARTED: RequestOutcome.RUNNING,
    ExecutionState.ENDED: RequestOutcome.RAN,
    ExecutionState.FAILED: RequestOutcome.FAILED,
    ExecutionState.DOUBT: RequestOutcome.DOUBT,
    ExecutionState.LAPSED: RequestOutcome.STOPPED,
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
    if (run := execution_of(approval)) is not None:
        return _RUNS[run.state]
    return decision_of(approval)


def decision_of(approval: Approval) -> RequestOutcome:
    """Return the decision of people or of the bot, without the execution."""
    if is_replaced(approval):
        return RequestOutcome.REPLACED
    return _end(approval.status, is_doubt=approval.kind is Kind.DOUBT)


def outcome_in(entry: AuditEntry) -> RequestOutcome | None:
    """Return the outcome that an audit entry records; None if it records none.

    The entry of a decision has the decision alone. The entry of the execution tells what came of
    the call.
    """
    if entry.action in _BEGUN:
        return _BEGUN[entry.action]
    result, status = entry.detail.get("outcome"), entry.detail.get("status")
    if result in [*RequestOutcome]:  # an entry may contain anything, also what has no hash
        return RequestOutcome(str(result))
    if status in [*Status]:
        return _end(Status(str(status)), is_doubt=entry.detail.get("kind") == Kind.DOUBT)
    return None


_BEGUN: Mapping[str, RequestOutcome] = {
    Act.STARTED: RequestOutcome.RUNNING,
    Act.DOUBTED: RequestOutcome.DOUBT,
}


def _end(status: Status, *, is_doubt: bool) -> RequestOutcome:
    return _DOUBTS[status] if is_doubt and status in _DOUBTS else _ENDS[status]


def is_replaced(approval: Approval) -> bool:
    """Whether a new request replaces it; otherwise the agent does not wait any more."""
    decision = approval.decision
    if approval.status is not Status.SUPERSEDED or decision is None:
        return False
    return bool(approval.newer_ts) or decision.reason == ANEW


def ended_ms(approval: Approval) -> int:
    """Return the time of the outcome; for an expiry the deadline, even if noticed later."""
    if (run := execution_of(approval)) is not None:
        return run.at_ms
    if approval.decision is None or approval.status is Status.EXPIRED:
        return approval.expires_ms
    return approval.decision.at_ms
