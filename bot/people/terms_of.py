"""Facts from the frozen terms of an approval, and its ballot."""

from __future__ import annotations

from bot.approvals.model import Approval, Kind, Status
from bot.policy.eligibility import Eligibility, PeopleSnapshot
from bot.policy.tally import Ballot


def groups_of(ballot: Ballot, *, is_begun: bool = False, steps: int = 0) -> frozenset[str]:
    """Return the names of the groups that may vote or are excluded.

    Args:
        ballot: Votes and terms.
        is_begun: Whether to include only stages that have begun.
        steps: Minimum number of escalation steps.
    """
    rights = Eligibility(ballot.terms, PeopleSnapshot(people={}, members={}))
    stages = ballot.stages[: ballot.stage + 1] if is_begun else ballot.stages
    steps = max([steps, ballot.steps, *(vote.steps for vote in ballot.votes)])
    names = {
        name for stage in stages for one in stage.approve for name in rights.groups(one, steps)
    }
    return frozenset({*names, *rights.excluded})


def is_allowed_by_rule(approval: Approval) -> bool:
    """Whether an edit changed the call so that a rule allows it without approval."""
    is_ended = approval.status is Status.APPROVED and bool(approval.edits.by)
    if approval.decision is not None and approval.decision.emergency:
        return False
    return is_ended and not approval.votes


def ballot_of(approval: Approval) -> Ballot:
    """Return the current votes on an approval or a doubt."""
    return Ballot(
        terms=approval.terms,
        digest=approval.decision.digest if approval.decision else approval.digest,
        votes=approval.votes,
        stage=approval.stage,
        steps=approval.escalation.steps,
        is_doubt=approval.kind is Kind.DOUBT,
    )


def wants_reason(approval: Approval, *, rejects: bool) -> bool:
    """Whether a vote needs a reason."""
    if approval.kind is not Kind.APPROVAL:
        return False
    terms = approval.terms
    return terms.reject_reason if rejects else terms.approve_reason or terms.risk == "critical"


def is_critical(approval: Approval) -> bool:
    """Whether approval needs a reason and the typed name of its subject."""
    return approval.kind is Kind.APPROVAL and approval.terms.risk == "critical"


def ends_run(approval: Approval) -> bool:
    """Whether the approval expired and its rule then ends the run (5.12)."""
    return approval.status is Status.EXPIRED and ends_then(approval)


def ends_then(approval: Approval) -> bool:
    """Whether the run ends if the approval expires."""
    return approval.terms.on_expiry == "cancel_run"
