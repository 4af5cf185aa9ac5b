"""Facts from the record of an approval: its requesters, terms, ballot, progress, and group.

None of the requesters may approve what the agent requests, because any of them may have caused the
request: the agent has read their messages. `bot.people.thread_pass` stores the requesters before
the agent reads a message.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.policy.eligibility import Eligibility, PeopleSnapshot
from bot.policy.tally import Ballot, Tally
from bot.records.approval import Approval, CastVote, Kind, Status


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
        name
        for stage in stages
        for requirement in stage.approve
        for name in rights.groups(requirement, steps)
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


def is_risky(approval: Approval) -> bool:
    """Whether the approval is of a high or critical risk."""
    return approval.kind is Kind.APPROVAL and approval.terms.risk in {"high", "critical"}


def ends_run(approval: Approval) -> bool:
    """Whether the approval expired and its rule then ends the run."""
    return approval.status is Status.EXPIRED and ends_then(approval)


def ends_then(approval: Approval) -> bool:
    """Whether the run ends if the approval expires."""
    return approval.terms.on_expiry == "cancel_run"


def common_ruling(approval: Approval) -> str:
    """Return the digest that groups approvals; empty for an approval without a group."""
    if approval.status is not Status.PENDING or approval.kind is not Kind.APPROVAL:
        return ""
    if not approval.tool or approval.stuck:
        return ""
    terms = approval.terms
    is_plain = terms.risk in {"low", "medium"} and not terms.always_ask
    return terms.digest if is_plain else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteProgress:
    """Votes on an approval, as displayed.

    Attributes:
        stage: Name of the pending stage; empty if there is only one.
        tallies: Filled slots of each requirement of the stage; empty for a doubt.
        votes: In the order in which they were stored.
        rejections: Number of rejections needed to reject.
    """

    stage: str = ""
    tallies: tuple[Tally, ...] = ()
    votes: tuple[CastVote, ...] = ()
    rejections: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether the first vote decides, so there is no progress to show."""
        return not self.stage and sum(tally.need for tally in self.tallies) < 2 and not self.votes


def progress_of(approval: Approval) -> VoteProgress:
    """Return the progress; empty for a question."""
    if approval.kind is Kind.QUESTION:
        return VoteProgress()
    ballot = ballot_of(approval)
    tallies = () if ballot.is_doubt else ballot.progress(_as_counted(ballot))
    return VoteProgress(
        stage=ballot.current.name if len(ballot.stages) > 1 else "",
        tallies=tallies,
        votes=ballot.votes,
        rejections=ballot.terms.reject,
    )


def _as_counted(ballot: Ballot) -> PeopleSnapshot:
    """Return the voters, in the groups through which their votes counted."""
    members = {
        name: frozenset(vote.right.owner for vote in ballot.votes if name in vote.groups)
        for name in groups_of(ballot, steps=len(ballot.terms.escalate))
    }
    people = {person: None for vote in ballot.votes for person in vote.persons}
    return PeopleSnapshot(people=people, members=members)


def requesters_of(approval: Approval) -> tuple[str, ...]:
    """Return the requesters of an approval."""
    return tuple(dict.fromkeys((approval.requester_id, *approval.requesters)))


def is_requester(approval: Approval, user_id: str) -> bool:
    """Whether this person's words contributed to the request."""
    return user_id in requesters_of(approval)
