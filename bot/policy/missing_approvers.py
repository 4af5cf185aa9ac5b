"""Whether a ballot can be completed, and which approvers are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.policy.eligibility import Eligibility, PeopleSnapshot
from bot.policy.tally import Ballot, match
from bot.records.terms import Requirement
from bot.words.mrkdwn import mention

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingApprovers:
    """Requirements that cannot be met any more. `str()` is Slack markdown."""

    needs: tuple[tuple[str, int], ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        """Return a text such as “needs 2 of sre; only @Ada is left”."""
        needs = " and ".join(f"{count} of {name}" for name, count in self.needs)
        names = [mention(user_id) for user_id in self.left[:_MOST_NAMED]]
        if not names:
            return f"needs {needs}; nobody is left"
        if len(self.left) > _MOST_NAMED:
            names.append(f"{len(self.left) - _MOST_NAMED} more")
        people = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        return f"needs {needs}; only {people} {'is' if len(self.left) == 1 else 'are'} left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasibility:
    """Whether a ballot can be completed.

    Attributes:
        after_steps: Number of escalation steps after which it can be completed; the steps done
            already mean now, None means never.
        shortage: Why it cannot be completed now; None if it can.
    """

    after_steps: int | None
    shortage: MissingApprovers | None = None

    @property
    def is_never(self) -> bool:
        """Whether the ballot can never be completed."""
        return self.after_steps is None


def feasibility_of(ballot: Ballot, snapshot: PeopleSnapshot) -> Feasibility:
    """Check whether distinct people can fill all slots, now or after a step.

    A failed look-up counts as possible: people are then asked, and each vote is checked with a new
    look-up.
    """
    ballot = ballot.recounted(snapshot).ballot
    shortage = _shortage(ballot, snapshot)
    if shortage is None:
        return Feasibility(after_steps=ballot.steps)
    later = range(ballot.steps + 1, len(ballot.terms.escalate) + 1)
    after = (steps for steps in later if _shortage(replace(ballot, steps=steps), snapshot) is None)
    return Feasibility(after_steps=next(after, None), shortage=shortage)


def possible_voters(ballot: Ballot, snapshot: PeopleSnapshot) -> frozenset[str]:
    """Return people who could fill one more slot now, by their own right.

    People who were not looked up count as active members.
    """
    rights = Eligibility(ballot.terms, snapshot)
    taken = {user_id for vote in ballot.votes for user_id in vote.persons}
    groups = {
        group
        for requirement in ballot.open_columns(snapshot)
        for group in rights.groups(requirement, ballot.steps)
    }
    people = {user_id for group in groups for user_id in snapshot.members.get(group, ())}
    return frozenset(user_id for user_id in people - taken if _is_free(user_id, rights))


def _shortage(ballot: Ballot, snapshot: PeopleSnapshot) -> MissingApprovers | None:
    """Return the slots that cannot all be filled, and all people who fit any of them."""
    rights = Eligibility(ballot.terms, snapshot)
    slots = [
        (number, requirement)
        for number, stage in enumerate(ballot.stages)
        for requirement in stage.approve
        if snapshot.knows(groups=rights.groups(requirement, ballot.steps))
        for _ in range(requirement.count)
    ]
    fits = [_people(ballot, rights, number, slot) for number, slot in slots]
    names = sorted(set().union(*fits))
    places = {name: number for number, name in enumerate(names)}
    columns = [[places[name] for name in people] for people in fits]
    matching = match(columns)
    for row, place in enumerate(columns):
        if row not in matching.columns:
            return _missing(slots, columns, names, matching.reached(place) | set(place))
    return None


def _missing(
    slots: Sequence[tuple[int, Requirement]],
    columns: Sequence[Sequence[int]],
    names: Sequence[str],
    reached: frozenset[int],
) -> MissingApprovers:
    """Return all slots that compete for the same, too few people (Hall's theorem)."""
    needs = Counter(
        slot.name for (_, slot), fits in zip(slots, columns, strict=True) if reached >= set(fits)
    )
    return MissingApprovers(
        needs=tuple(needs.items()), left=tuple(names[column] for column in sorted(reached))
    )


def _people(ballot: Ballot, rights: Eligibility, number: int, slot: Requirement) -> set[str]:
    """Return the people who fill, or could fill, a slot of a stage."""
    votes = [] if ballot.is_doubt else [vote for vote in ballot.votes if not vote.is_stop]
    filled = {
        vote.right.owner
        for vote in votes
        if vote.stage == number
        and rights.fits(vote.right, slot, max(vote.steps, ballot.steps)) is not False
    }
    if number < ballot.stage:
        return filled
    taken = {user_id for vote in votes for user_id in vote.persons}
    groups = rights.groups(slot, ballot.steps)
    members = {user_id for group in groups for user_id in rights.snapshot.members.get(group, ())}
    free = {user_id for user_id in members - taken if _is_free(user_id, rights)}
    return filled | free


def _is_free(user_id: str, rights: Eligibility) -> bool:
    able = rights.snapshot.is_able(user_id) is not False
    return able and not rights.bars(user_id)
