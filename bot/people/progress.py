"""Progress of the votes on an approval, from its record alone."""

from __future__ import annotations

from dataclasses import dataclass

from bot.approvals.model import Approval, CastVote, Kind
from bot.people.terms_of import ballot_of, groups_of
from bot.policy.eligibility import PeopleSnapshot
from bot.policy.tally import Ballot, Tally


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
        return not self.stage and sum(one.need for one in self.tallies) < 2 and not self.votes


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
