"""Group approvals that one person may decide with one form (6.8)."""

from __future__ import annotations

from bot.approvals.model import Approval, Kind, Status


def common_ruling(approval: Approval) -> str:
    """Return the digest that groups approvals; empty for an approval without a group."""
    if approval.status is not Status.PENDING or approval.kind is not Kind.APPROVAL:
        return ""
    if not approval.tool or approval.stuck:
        return ""
    terms = approval.terms
    is_plain = terms.risk in {"low", "medium"} and not terms.always_ask
    return terms.digest if is_plain else ""
