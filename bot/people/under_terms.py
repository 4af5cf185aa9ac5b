"""Times and mentioned people that follow from the terms of an approval."""

from __future__ import annotations

from collections.abc import Iterable

from bot.approvals.model import Approval, Status
from bot.policy.escalation import EscalationState, deadline, next_begin
from bot.policy.terms import Escalation, Group, Requirement, Terms, TermsError
from bot.ports.people import CHANNEL


def under_terms(approval: Approval, terms: Terms, *, now_ms: int) -> Approval:
    """Set the terms of an approval, and its expiry."""
    return approval.changed(terms=terms, expires_ms=deadline(terms, now_ms))


def approvers_of(approval: Approval) -> tuple[str, ...]:
    """Return who is asked first: ids of people and user groups, and `channel`."""
    terms = approval.terms
    names = [name for one in terms.stages[0].approve for name in one.groups]
    return _names(terms.groups[name] for name in names)


def backups_of(approval: Approval) -> tuple[str, ...]:
    """Return who may decide, too, from the first escalation step on, as `approvers_of`."""
    terms = approval.terms
    return added_by(terms, terms.escalate[0]) if terms.escalate else ()


def next_step_ms(approval: Approval) -> int | None:
    """Return when the next escalation step begins; None if no step can begin any more."""
    if approval.status is not Status.PENDING:
        return None
    claim = approval.claim
    course = EscalationState(
        since_ms=approval.schedule_ms,
        deadline_ms=approval.expires_ms,
        steps=approval.escalation.steps,
        claimed_ms=claim.since_ms,
        claim_until_ms=claim.until_ms,
        is_deserted=approval.escalation.deserted,
    )
    try:
        return next_begin(approval.terms, course)
    except TermsError:
        return None


def named_by(terms: Terms, requirement: Requirement) -> tuple[str, ...]:
    """Return who fills a requirement: ids, and `channel`."""
    return _names(terms.groups[name] for name in requirement.groups)


def added_by(terms: Terms, step: Escalation) -> tuple[str, ...]:
    """Return who may decide, too, from an escalation step on: ids, and `channel`."""
    return _names(terms.groups[name] for name in step.add)


def _names(groups: Iterable[Group]) -> tuple[str, ...]:
    """Return ids of people and user groups, and `channel`."""
    found: dict[str, None] = {}
    for group in groups:
        rotation = group.rotation.people if group.rotation is not None else ()
        found.update(dict.fromkeys((*group.users, *group.usergroups, *rotation)))
        if group.here or group.channels:
            found[CHANNEL] = None
    return tuple(found)
