"""Terms of records that a test builds from lists of people."""

from datetime import timedelta
from typing import Any

from bot.approvals.model import Approval, Kind, StoredEscalation
from bot.people.named_terms import NamedPeople, named_terms
from bot.policy.terms import Group, Requirement, Stage, Terms

NOBODY = Terms(
    rules=(),
    stages=(Stage(approve=(Requirement(name="nobody", groups=("nobody",)),)),),
    groups={"nobody": Group()},
)
"""Terms under which nobody decides."""


def under_lists(
    approval: Approval,
    *,
    terms: Terms | None = None,
    escalates_ms: int = 0,
    begun_ms: int = 0,
    **changes: Any,
) -> Approval:
    """Return the approval under terms, by default of its people and times.

    Args:
        approval: The approval to change.
        terms: The terms; None for terms of its people and times.
        escalates_ms: When its backups may decide, too; 0 for never.
        begun_ms: When they could decide since, if it has escalated.
        changes: Other values of its fields.
    """
    approval = approval.changed(**changes)
    if begun_ms:
        approval = escalated(approval, begun_ms)
    if terms is not None:
        return approval.changed(terms=terms)
    exclude = () if approval.self_approval else ("requesters",)
    named = NamedPeople(
        approvers=approval.approvers,
        backups=approval.backups,
        exclude=(*exclude, "editors") if approval.editors_excluded else exclude,
        expires=_after(approval, approval.expires_ms),
        remind=timedelta(minutes=15),
        escalate=_after(approval, begun_ms or escalates_ms or approval.expires_ms),
        max_age=timedelta(minutes=15),
    )
    rule = "" if approval.kind is Kind.QUESTION else approval.rule
    return approval.changed(terms=named_terms(named, rule=rule))


def escalated(approval: Approval, begun_ms: int) -> Approval:
    """Return the approval after its first escalation step."""
    return approval.changed(escalation=at_step(approval, steps=1, begun_ms=begun_ms, told=1))


def at_step(approval: Approval, **changes: Any) -> StoredEscalation:
    """Return the progress of the approval's current schedule, with other values."""
    return approval.escalation.changed(**changes)


def _after(approval: Approval, at_ms: int) -> timedelta:
    return timedelta(milliseconds=max(min(at_ms - approval.created_ms, 10**12), 0))
