"""The ballot: the present votes on a call, and their decision.

Pure functions of the record's votes and a snapshot of people. The validation of a single vote, with
its refusals, is in `bot.policy.refusals`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from bot.policy.eligibility import Eligibility, PeopleSnapshot, either, every
from bot.records.approval import APPROVE, GIVE_UP, REJECT, CastVote
from bot.records.terms import Requirement, Stage, Terms


class Matching:
    """An incremental assignment of rows to columns, each used at most once.

    A placed row stays placed, though a later row may move it to another column. Earlier rows
    therefore take precedence over later ones.

    Source:
        H. W. Kuhn, The Hungarian method for the assignment problem, 1955 (augmenting paths).
    """

    def __init__(self) -> None:
        self.columns: dict[int, int] = {}
        """The column of each placed row."""
        self._rows: dict[int, int] = {}
        self._fits: dict[int, Sequence[int]] = {}

    def add(self, row: int, fits: Collection[int]) -> bool:
        """Place a row in one of its columns, moving other rows; False if impossible."""
        self._fits[row] = sorted(fits)
        if self._place(row, set()):
            return True
        del self._fits[row]
        return False

    def reached(self, fits: Collection[int]) -> frozenset[int]:
        """Return the columns that moves could free for a row with these columns."""
        columns = set(fits)
        new = list(columns)
        while new:
            row = self._rows.get(new.pop())
            more = set() if row is None else set(self._fits[row]) - columns
            columns |= more
            new.extend(more)
        return frozenset(columns)

    def _place(self, row: int, tried: set[int]) -> bool:
        for column in self._fits[row]:
            if column not in self._rows:
                return self._put(row, column)
        for column in self._fits[row]:
            if column not in tried:
                tried.add(column)
                if self._place(self._rows[column], tried):
                    return self._put(row, column)
        return False

    def _put(self, row: int, column: int) -> bool:
        self.columns[row], self._rows[column] = column, row
        return True


def match(rows: Sequence[Collection[int]]) -> Matching:
    """Place as many rows as possible; earlier rows take precedence."""
    matching = Matching()
    for row, fits in enumerate(rows):
        matching.add(row, fits)
    return matching


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Filled and required slots of a requirement: “1 of 2”."""

    name: str
    have: int
    need: int

    def __str__(self) -> str:
        """Return the text for people."""
        return f"{self.have} of {self.need}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidVotes:
    """The votes that still count.

    Attributes:
        ballot: The ballot with these votes, at the stage that they reach.
        dropped: Votes of people who may no longer decide, in order of writing.
        void: Votes of later stages than the reopened one.
    """

    ballot: Ballot
    dropped: tuple[CastVote, ...] = ()
    void: tuple[CastVote, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """The present votes under some terms.

    Attributes:
        terms: The frozen terms.
        digest: The call digest that votes are bound to.
        votes: In order of writing; at most one per person.
        stage: The current stage, from 0.
        steps: Number of escalation steps done.
        is_doubt: Whether people report the outcome of a started call. All slots of all
            stages are then one stage.
    """

    terms: Terms
    digest: str
    votes: tuple[CastVote, ...] = ()
    stage: int = 0
    steps: int = 0
    is_doubt: bool = False

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the terms; for a call in doubt one, with all requirements."""
        if not self.is_doubt:
            return self.terms.stages
        return (
            Stage(
                approve=tuple(
                    requirement for stage in self.terms.stages for requirement in stage.approve
                )
            ),
        )

    @property
    def current(self) -> Stage:
        """The current stage."""
        return self.stages[self.stage]

    def vote_of(self, user_id: str) -> CastVote | None:
        """Return a person's present vote, by any right."""
        return next((vote for vote in self.votes if vote.by == user_id), None)

    def progress(self, snapshot: PeopleSnapshot) -> tuple[Tally, ...]:
        """Return the progress of the current stage, by the present groups.

        Args:
            snapshot: Its groups. People and delegations may be missing.
        """
        placed = self.filling(snapshot).columns.values()
        slots = _slots(self.current)
        taken = [slots[column].name for column in placed]
        return tuple(
            Tally(name=requirement.name, have=taken.count(requirement.name), need=requirement.count)
            for requirement in self.current.approve
        )

    def filling(
        self, snapshot: PeopleSnapshot, *, aim: tuple[str, str] = (APPROVE, ""), but: str = ""
    ) -> Matching:
        """Assign the votes for one choice to slots of the current stage."""
        votes = [vote for vote in self.votes if vote.aim == aim and vote.by != but]
        return match(self._fits(self._of_stage(votes, self.stage), snapshot))

    def open_columns(
        self, snapshot: PeopleSnapshot, *, aim: tuple[str, str] = (APPROVE, ""), but: str = ""
    ) -> tuple[Requirement, ...]:
        """Return the requirements of the current stage with a slot to fill.

        A person who fits one of these requirements can vote. Earlier voters may then change slots.
        """
        filling, slots = self.filling(snapshot, aim=aim, but=but), _slots(self.current)
        free = set(range(len(slots))) - set(filling.columns.values())
        return tuple(
            requirement
            for requirement in self.current.approve
            if filling.reached([column for column, slot in enumerate(slots) if slot is requirement])
            & free
        )

    def recounted(self, snapshot: PeopleSnapshot) -> ValidVotes:
        """Validate all votes again, and find the stage that they reach.

        A vote is dropped only if its voter is known to be no longer eligible. An approval also
        requires `is_sure`.
        """
        rights = Eligibility(self.terms, snapshot)
        # `is not False`: a vote stays valid while a look-up fails; `is_sure` guards approvals.
        valid = _alone([vote for vote in self.votes if self._is_valid(vote, rights) is not False])
        # Rejections count in every stage, so they never become void.
        remaining = [vote for vote in valid if vote.is_stop]
        stage, void = 0, list[CastVote]()
        for number in range(len(self.stages)):
            votes = [vote for vote in self._of_stage(valid, number) if not vote.is_stop]
            if stage < number:  # an earlier stage is open
                void += votes
                continue
            counted = self._counted(votes, snapshot)
            remaining += counted
            if not self.is_doubt and len(counted) == len(_slots(self.stages[number])):
                stage = min(number + 1, len(self.stages) - 1)
        votes = [vote for vote in self.votes if vote in remaining]
        gone = [vote for vote in self.votes if vote not in remaining and vote not in void]
        ballot = replace(self, votes=tuple(votes), stage=stage)
        return ValidVotes(ballot=ballot, dropped=tuple(gone), void=tuple(void))

    def with_vote(self, vote: CastVote, snapshot: PeopleSnapshot) -> ValidVotes:
        """Add a valid vote, which replaces the person's present one."""
        others = [other for other in self.votes if other.by != vote.by and not _ends(vote, other)]
        gone = [other for other in self.votes if other.by != vote.by and _ends(vote, other)]
        recount = replace(self, votes=(*others, vote)).recounted(snapshot)
        return replace(recount, dropped=(*gone, *recount.dropped))

    def without(self, user_id: str, snapshot: PeopleSnapshot) -> ValidVotes:
        """Withdraw a person's vote."""
        votes = tuple(vote for vote in self.votes if vote.by != user_id)
        return replace(self, votes=votes).recounted(snapshot)

    def decision(self, snapshot: PeopleSnapshot) -> tuple[str, str] | None:
        """Return the choice and result that the votes have decided, or None."""
        # Rejections first: they end the request even if approvals are complete.
        for choice in (REJECT, GIVE_UP):
            if len([vote for vote in self.votes if vote.choice == choice]) >= self.terms.reject:
                return choice, ""
        if self.stage < len(self.stages) - 1:
            return None
        for aim in dict.fromkeys(vote.aim for vote in self.votes if not vote.is_stop):
            if len(self.filling(snapshot, aim=aim).columns) == len(_slots(self.current)):
                return aim
        return None

    def is_sure(self, snapshot: PeopleSnapshot) -> bool:
        """Whether all look-ups that an approval needs succeeded."""
        rights = Eligibility(self.terms, snapshot)
        steps = max([self.steps, *(vote.steps for vote in self.votes)])
        needed = {
            group
            for stage in self.stages[: self.stage + 1]
            for requirement in stage.approve
            for group in rights.groups(requirement, steps)
        }
        # Later stages are not needed yet, so their groups may be unknown.
        people = {person for vote in self.votes for person in vote.persons}
        return snapshot.knows(people=people, groups=(*needed, *rights.excluded))

    def _of_stage(self, votes: Sequence[CastVote], number: int) -> list[CastVote]:
        return [vote for vote in votes if self.is_doubt or vote.stage == number]

    def _is_valid(self, vote: CastVote, rights: Eligibility) -> bool | None:
        if vote.digest != self.digest:
            return False
        if not vote.is_stop and any(rights.bars(user_id) for user_id in vote.persons):
            return False
        # People of any stage may reject; an approval is bound to its stage.
        stages = self.stages if vote.is_stop or self.is_doubt else self.stages[vote.stage :][:1]
        steps = max(self.steps, vote.steps)
        fits = either(
            rights.fits(vote.right, requirement, steps)
            for stage in stages
            for requirement in stage.approve
        )
        return every((fits, rights.holds(vote.right, vote.by)))

    def _counted(self, votes: Sequence[CastVote], snapshot: PeopleSnapshot) -> list[CastVote]:
        """Return the votes that fill a slot; earlier votes take precedence."""
        result = []
        for aim in dict.fromkeys(vote.aim for vote in votes):
            of_aim = [vote for vote in votes if vote.aim == aim]
            placed = match(self._fits(of_aim, snapshot)).columns
            result += [vote for row, vote in enumerate(of_aim) if row in placed]
        return result

    def _fits(self, votes: Sequence[CastVote], snapshot: PeopleSnapshot) -> list[list[int]]:
        """Return the slots of its stage that each vote may fill."""
        rights = Eligibility(self.terms, snapshot)
        result = []
        for vote in votes:
            stage = self.stages[0 if self.is_doubt else vote.stage]
            steps = max(self.steps, vote.steps)
            result.append(
                [
                    column
                    for column, slot in enumerate(_slots(stage))
                    if rights.fits(vote.right, slot, steps) is not False
                ]
            )
        return result


def _slots(stage: Stage) -> list[Requirement]:
    return [requirement for requirement in stage.approve for _ in range(requirement.count)]


def _alone(votes: Sequence[CastVote]) -> list[CastVote]:
    """Return one vote per person; a rejection takes precedence over other votes."""
    taken: set[str] = set()
    result = []
    for vote in sorted(votes, key=lambda cast_vote: not cast_vote.is_stop):
        if not vote.persons & taken:
            result.append(vote)
            taken |= vote.persons
    return [vote for vote in votes if vote in result]


def _ends(vote: CastVote, other: CastVote) -> bool:
    """Whether a rejection ends another vote: an owner and a delegate count as one person."""
    return vote.is_stop and not other.is_stop and bool(vote.persons & other.persons)
