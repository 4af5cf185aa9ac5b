"""The terms of any approval: as frozen when it was asked; of older records, made of their lists."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bot.policy.eligibility import Eligibility, PeopleSnapshot
from bot.policy.tally import Ballot, read_votes
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
from storage.records import Approval, Kind, Status

APPROVERS, BACKUPS = "approvers", "backups"
"""The groups of what was asked without terms, under the names that the settings' policy uses."""


def terms_of(approval: Approval) -> Terms:
    """Return the terms under which people decide an approval, or a doubt.

    Raises:
        TermsError: They cannot be read; nobody may decide.
    """
    if approval.terms_json:
        return Terms.from_text(approval.terms_json)
    try:
        return _of_lists(approval)
    except ValueError as error:
        raise TermsError(say("nobody.unreadable")) from error


def group_of(names: Sequence[str]) -> Group:
    """Make a group of user ids, user group ids, and `channel`; other names are nobody."""
    return Group(
        users=tuple(name for name in names if name[:1] in {"U", "W"}),
        usergroups=tuple(name for name in names if name[:1] == "S"),
        here=CHANNEL in names,
    )


def steps_of(approval: Approval) -> int:
    """Count the steps of its escalation that are done: these people may decide, too."""
    return max(approval.steps, 1 if approval.escalated_ms is not None else 0)


def groups_of(ballot: Ballot, *, is_begun: bool = False, steps: int = 0) -> frozenset[str]:
    """The names of the groups that matter: of those who may vote, and of those left out.

    Args:
        ballot: The votes and their terms.
        is_begun: Whether only the stages that have begun matter.
        steps: So many escalation steps count at least.
    """
    rights = Eligibility(ballot.terms, PeopleSnapshot(people={}, members={}))
    stages = ballot.stages[: ballot.stage + 1] if is_begun else ballot.stages
    steps = max([steps, ballot.steps, *(vote.steps for vote in ballot.votes)])
    names = {
        name for stage in stages for one in stage.approve for name in rights.groups(one, steps)
    }
    return frozenset({*names, *rights.excluded})


def is_allowed_by_rule(approval: Approval) -> bool:
    """Whether an edit made its call one that a rule allows: then nobody had to approve it."""
    is_ended = approval.status is Status.APPROVED and bool(approval.edited_by)
    if approval.decision is not None and approval.decision.emergency_json:
        return False
    return is_ended and bool(approval.terms_json) and not read_votes(approval.votes_json)


def _of_lists(approval: Approval) -> Terms:
    asked = [one for one in _names(approval.approvers_json) if not one.startswith(EXCLUDED)]
    backups = _names(approval.backups_json)
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
        edit="yes",  # where its tool has a form for that
        expires_s=max(approval.expires_ms - approval.created_ms, 0) // 1000,
        escalate=steps,
    )


def _excluded(approval: Approval) -> tuple[str, ...]:
    asked = () if approval.self_approval else ("requesters",)
    return (*asked, "editors") if approval.editors_excluded else asked


def _names(text: str) -> list[str]:
    found = json.loads(text)
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def ballot_of(approval: Approval) -> Ballot:
    """Return the present votes on an approval, or a doubt, under its terms.

    Raises:
        TermsError: They cannot be read; nobody may decide.
    """
    ballot = Ballot(
        terms=terms_of(approval),
        digest=approval.decision.digest if approval.decision else approval.digest,
        votes=read_votes(approval.votes_json),
        stage=approval.stage,
        steps=steps_of(approval),
        is_doubt=approval.kind is Kind.DOUBT,
    )
    if not 0 <= ballot.stage < len(ballot.stages):
        raise TermsError(say("nobody.no_stage"))
    return ballot


def risk_of(approval: Approval) -> Risk:
    """The risk of what an approval lets run; the usual one where nothing says it."""
    try:
        return terms_of(approval).risk
    except TermsError:
        return "medium"


def wants_reason(approval: Approval, *, rejects: bool) -> bool:
    """Whether a vote needs a reason; not known of terms that cannot be read."""
    if approval.kind is not Kind.APPROVAL:
        return False
    try:
        terms = ballot_of(approval).terms
    except TermsError:
        return False
    return terms.reject_reason if rejects else terms.approve_reason or terms.risk == "critical"


def is_critical(approval: Approval) -> bool:
    """Whether a yes takes a reason and the name of what it is about, typed."""
    if approval.kind is not Kind.APPROVAL or not approval.terms_json:
        return False
    try:
        return terms_of(approval).risk == "critical"
    except TermsError:
        return False


def ends_run(approval: Approval) -> bool:
    """Whether an approval has expired, and the rule that asked ends the whole run then (5.12)."""
    return approval.status is Status.EXPIRED and ends_then(approval)


def ends_then(approval: Approval) -> bool:
    """Whether the whole run ends when nobody decides an approval in time."""
    if not approval.terms_json:
        return False
    try:
        return terms_of(approval).on_expiry == "cancel_run"
    except TermsError:
        return False
