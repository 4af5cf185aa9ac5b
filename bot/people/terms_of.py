"""Return the frozen terms of an approval; without them, derive terms from its lists of people."""

from __future__ import annotations

from collections.abc import Sequence

from bot.approvals.model import Approval, Kind, Status
from bot.policy.eligibility import Eligibility, PeopleSnapshot
from bot.policy.tally import Ballot
from bot.policy.terms import (
    Escalation,
    Group,
    Requirement,
    Risk,
    Stage,
    Terms,
    TermsError,
)
from bot.ports.people import CHANNEL, EXCLUDED
from bot.words import say

APPROVERS, BACKUPS = "approvers", "backups"
"""Names of the default groups, for requests without terms."""


def terms_of(approval: Approval) -> Terms:
    """Return the terms of an approval or a doubt.

    Raises:
        TermsError: The terms are invalid, so the approval cannot be decided.
    """
    if approval.terms_json:
        return Terms.from_text(approval.terms_json)
    return _of_lists(approval)


def group_of(names: Sequence[str]) -> Group:
    """Build a group of user ids, user group ids, and `channel`; ignore other names."""
    return Group(
        users=tuple(name for name in names if name[:1] in {"U", "W"}),
        usergroups=tuple(name for name in names if name[:1] == "S"),
        here=CHANNEL in names,
    )


def steps_of(approval: Approval) -> int:
    """Return the number of escalation steps taken."""
    return max(approval.steps, 1 if approval.escalated_ms is not None else 0)


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
    is_ended = approval.status is Status.APPROVED and bool(approval.edited_by)
    if approval.decision is not None and approval.decision.emergency:
        return False
    return is_ended and bool(approval.terms_json) and not approval.votes


def _of_lists(approval: Approval) -> Terms:
    asked = [one for one in approval.approvers if not one.startswith(EXCLUDED)]
    backups = approval.backups
    groups = {APPROVERS: group_of(asked)}
    steps: tuple[Escalation, ...] = ()
    if backups:
        groups[BACKUPS] = group_of(backups)
        after_ms = (approval.escalate_ms or approval.created_ms) - approval.created_ms
        step = Escalation(
            after_s=max(after_ms, 0) // 1000, add=(BACKUPS,), requirements=(APPROVERS,)
        )
        steps = (step,)
    return Terms(
        rules=(approval.rule,),
        stages=(Stage(approve=(Requirement(name=APPROVERS, groups=(APPROVERS,)),)),),
        groups=groups,
        exclude=_excluded(approval),
        edit="yes",  # if the tool has a form
        expires_s=max(approval.expires_ms - approval.created_ms, 0) // 1000,
        escalate=steps,
    )


def _excluded(approval: Approval) -> tuple[str, ...]:
    asked = () if approval.self_approval else ("requesters",)
    return (*asked, "editors") if approval.editors_excluded else asked


def ballot_of(approval: Approval) -> Ballot:
    """Return the current votes on an approval or a doubt.

    Raises:
        TermsError: The terms are invalid, so the approval cannot be decided.
    """
    ballot = Ballot(
        terms=terms_of(approval),
        digest=approval.decision.digest if approval.decision else approval.digest,
        votes=approval.votes,
        stage=approval.stage,
        steps=steps_of(approval),
        is_doubt=approval.kind is Kind.DOUBT,
    )
    if not 0 <= ballot.stage < len(ballot.stages):
        raise TermsError(say("nobody.no_stage"))
    return ballot


def risk_of(approval: Approval) -> Risk:
    """Return the risk of an approval; the default if unknown."""
    try:
        return terms_of(approval).risk
    except TermsError:
        return "medium"


def wants_reason(approval: Approval, *, rejects: bool) -> bool:
    """Whether a vote needs a reason; False if the terms are invalid."""
    if approval.kind is not Kind.APPROVAL:
        return False
    try:
        terms = ballot_of(approval).terms
    except TermsError:
        return False
    return terms.reject_reason if rejects else terms.approve_reason or terms.risk == "critical"


def is_critical(approval: Approval) -> bool:
    """Whether approval needs a reason and the typed name of its subject."""
    if approval.kind is not Kind.APPROVAL or not approval.terms_json:
        return False
    try:
        return terms_of(approval).risk == "critical"
    except TermsError:
        return False


def ends_run(approval: Approval) -> bool:
    """Whether the approval expired and its rule then ends the run (5.12)."""
    return approval.status is Status.EXPIRED and ends_then(approval)


def ends_then(approval: Approval) -> bool:
    """Whether the run ends if the approval expires."""
    if not approval.terms_json:
        return False
    try:
        return terms_of(approval).on_expiry == "cancel_run"
    except TermsError:
        return False
