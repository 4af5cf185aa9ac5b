"""Terms of records that a test builds from lists of people."""

from datetime import timedelta

from bot.approvals.model import Approval, Kind
from bot.people.named_terms import NamedPeople, named_terms


def under_lists(approval: Approval) -> Approval:
    """Return the approval under terms of its people and times, unless it has terms."""
    if approval.terms_json:
        return approval
    exclude = () if approval.self_approval else ("requesters",)
    starts = approval.escalated_ms or approval.escalate_ms
    named = NamedPeople(
        approvers=approval.approvers,
        backups=approval.backups,
        exclude=(*exclude, "editors") if approval.editors_excluded else exclude,
        expires=_after(approval, approval.expires_ms),
        remind=timedelta(minutes=15),
        escalate=_after(approval, starts or approval.expires_ms),
        max_age=timedelta(minutes=15),
    )
    if approval.kind is Kind.QUESTION:
        return approval.changed(terms_json=named_terms(named).to_text())
    return approval.changed(terms_json=named_terms(named, rule=approval.rule).to_text())


def _after(approval: Approval, at_ms: int) -> timedelta:
    return timedelta(milliseconds=max(min(at_ms - approval.created_ms, 10**12), 0))
