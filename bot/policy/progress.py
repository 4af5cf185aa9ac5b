"""The progress of an approval: its ballot, the groups that count, and the slots filled so far."""

from __future__ import annotations

from dataclasses import dataclass

from bot.policy.eligibility import Eligibility, PeopleSnapshot
from bot.policy.tally import Ballot, Tally
from bot.records.approval import Approval, CastVote, Kind, Status


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
