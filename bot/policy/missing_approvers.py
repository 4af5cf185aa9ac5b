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
        names = [mention(one) for one in self.left[:_MOST_NAMED]]
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


def prospect(ballot: Ballot, standing: PeopleSnapshot) -> Feasibility:
    """Check whether distinct people can fill all slots, now or after a step.

    A failed look-up counts as possible: people are then asked, and each vote is checked with a new
    look-up.
    """
    ballot = ballot.recounted(standing).ballot
    shortage = _shortage(ballot, standing)
    if shortage is None:
        return Feasibility(after_steps=ballot.steps)
    later = range(ballot.steps + 1, len(ballot.terms.escalate) + 1)
    after = (one for one in later if _shortage(replace(ballot, steps=one), standing) is None)
    return Feasibility(after_steps=next(after, None), shortage=shortage)


def waits_for(ballot: Ballot, standing: PeopleSnapshot) -> frozenset[str]:
    """Return people who could fill one more slot now, by their own right.

    People who were not looked up count as active members.
    """
    rights = Eligibility(ballot.terms, standing)
    taken = {one for vote in ballot.votes for one in vote.persons}
    groups = {
        group for one in ballot.open_columns(standing) for group in rights.groups(one, ballot.steps)
    }
    people = {one for group in groups for one in standing.members.get(group, ())}
    return frozenset(one for one in people - taken if _is_free(one, rights))


def _shortage(ballot: Ballot, standing: PeopleSnapshot) -> MissingApprovers | None:
    """Return the slots that cannot all be filled, and all people who fit any of them."""
    rights = Eligibility(ballot.terms, standing)
    slots = [
        (number, one)
        for number, stage in enumerate(ballot.stages)
        for one in stage.approve
        if standing.knows(groups=rights.groups(one, ballot.steps))
        for _ in range(one.count)
    ]
    fits = [_people(ballot, rights, number, one) for number, one in slots]
    names = sorted(set().union(*fits))
    places = {one: number for number, one in enumerate(names)}
    columns = [[places[one] for one in people] for people in fits]
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
        needs=tuple(needs.items()), left=tuple(names[one] for one in sorted(reached))
    )


def _people(ballot: Ballot, rights: Eligibility, number: int, slot: Requirement) -> set[str]:
    """Return the people who fill, or could fill, a slot of a stage."""
    votes = [] if ballot.is_doubt else [one for one in ballot.votes if not one.is_stop]
    filled = {
        vote.right.owner
        for vote in votes
        if vote.stage == number
        and rights.fits(vote.right, slot, max(vote.steps, ballot.steps)) is not False
    }
    if number < ballot.stage:
        return filled
    taken = {one for vote in votes for one in vote.persons}
    groups = rights.groups(slot, ballot.steps)
    members = {one for group in groups for one in rights.standing.members.get(group, ())}
    free = {one for one in members - taken if _is_free(one, rights)}
    return filled | free


def _is_free(user_id: str, rights: Eligibility) -> bool:
    able = rights.standing.is_able(user_id) is not False
    return able and not rights.bars(user_id)
