"""Terms of an approval: what they demand of a vote, of a batch, and at the expiry."""

from __future__ import annotations

from bot.records.approval import Approval, Kind, Status


def wants_reason(approval: Approval, *, rejects: bool) -> bool:
    """Whether a vote needs a reason."""
    if approval.kind is not Kind.APPROVAL:
        return False
    terms = approval.terms
    return terms.reject_reason if rejects else terms.approve_reason or terms.risk == "critical"


def is_critical(approval: Approval) -> bool:
    """Whether approval needs a reason and the typed name of its subject."""
    return approval.kind is Kind.APPROVAL and approval.terms.risk == "critical"


def is_risky(approval: Approval) -> bool:
    """Whether the approval is of a high or critical risk."""
    return approval.kind is Kind.APPROVAL and approval.terms.risk in {"high", "critical"}


def ends_run(approval: Approval) -> bool:
    """Whether the run ends if the approval expires."""
    return approval.terms.on_expiry == "cancel_run"


def batch_digest(approval: Approval) -> str:
    """Return the digest that groups approvals; empty for an approval without a group."""
    if approval.status is not Status.PENDING or approval.kind is not Kind.APPROVAL:
        return ""
    if not approval.tool or approval.stuck:
        return ""
    terms = approval.terms
    is_plain = terms.risk in {"low", "medium"} and not terms.always_ask
    return terms.digest if is_plain else ""
