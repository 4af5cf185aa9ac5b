"""The progress of votes, as the record has it: nobody is looked up for what is only shown."""

from __future__ import annotations

from dataclasses import dataclass

from bot.people.terms_of import ballot_of, groups_of
from bot.policy.eligibility import PeopleSnapshot
from bot.policy.tally import Ballot, CastVote, Tally
from bot.policy.terms import TermsError
from storage.records import Approval, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteProgress:
    """The votes on an approval as people see them.

    Attributes:
        stage: Name of the stage that waits; empty where there is only one.
        tallies: How many slots of each of its requirements are filled; none for a doubt.
        votes: In the order of writes.
        rejections: So many have to reject it.
    """

    stage: str = ""
    tallies: tuple[Tally, ...] = ()
    votes: tuple[CastVote, ...] = ()
    rejections: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether the first vote decides: then there is no progress to speak of."""
        return not self.stage and sum(one.need for one in self.tallies) < 2 and not self.votes


def progress_of(approval: Approval) -> VoteProgress:
    """Read it; nothing of terms or votes that cannot be read."""
    if approval.kind is Kind.QUESTION:
        return VoteProgress()
    try:
        ballot = ballot_of(approval)
    except TermsError:
        return VoteProgress()
    tallies = () if ballot.is_doubt else ballot.progress(_as_counted(ballot))
    return VoteProgress(
        stage=ballot.current.name if len(ballot.stages) > 1 else "",
        tallies=tallies,
        votes=ballot.votes,
        rejections=ballot.terms.reject,
    )


def _as_counted(ballot: Ballot) -> PeopleSnapshot:
    """The people of the votes, in the groups by which they counted when they voted."""
    members = {
        name: frozenset(vote.right.owner for vote in ballot.votes if name in vote.groups)
        for name in groups_of(ballot, steps=len(ballot.terms.escalate))
    }
    people = {person: None for vote in ballot.votes for person in vote.persons}
    return PeopleSnapshot(people=people, members=members)
