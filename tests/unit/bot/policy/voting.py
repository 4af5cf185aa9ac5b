"""People, terms and votes for tests of the ballot."""

from __future__ import annotations

from collections.abc import Iterable

from bot.policy.eligibility import Delegation, PeopleSnapshot, Problem
from bot.policy.evaluation.merge import with_own_names
from bot.policy.refusals import VoteAttempt, VoteResult, judge_take_back, judge_vote
from bot.policy.tally import Ballot
from bot.records.approval import APPROVE, REJECT
from bot.records.terms import Escalation, Group, Requirement, Stage, Terms

DIGEST = "d1"
"""The call that is voted on."""
GROUPS = {
    "sre": ("ADA", "BEN", "CLEO"),
    "security": ("MIA", "SAM"),
    "fin": ("ADA", "MIA"),
    "leads": ("LIA", "MAX"),
}
PROBLEMS = {
    "GUS": Problem.GUEST,
    "EXT": Problem.EXTERNAL,
    "APP": Problem.BOT,
    "OLD": Problem.DEACTIVATED,
}
_PEOPLE = ("ADA", "BEN", "CLEO", "MIA", "SAM", "LIA", "MAX", "ROSA", "TOM")


def terms(*stages: Iterable[tuple[str, int]], **changes: object) -> Terms:
    """Terms with these stages: of each, groups and counts. A requirement may name `a+b`."""
    built = tuple(
        Stage(
            name=f"s{number}",
            approve=tuple(
                Requirement(name=name, groups=tuple(name.split("+")), count=count)
                for name, count in stage
            ),
        )
        for number, stage in enumerate(stages or ([("sre", 1)],))
    )
    data: dict[str, object] = {"rules": ("r",), "stages": with_own_names(built)}
    groups = {group: Group(users=("U0X",)) for group in (*GROUPS, "odd")}
    return Terms.model_validate({**data, "groups": groups, **changes})


def step(after_s: int, group: str, *requirements: str) -> Escalation:
    """A step of the ladder."""
    return Escalation(after_s=after_s, add=(group,), requirements=requirements or ("sre",))


def snapshot_of(
    *delegations: Delegation,
    groups: dict[str, tuple[str, ...]] | None = None,
    unknown: Iterable[str] = (),
    **changes: object,
) -> PeopleSnapshot:
    """What a look-up finds; `unknown` are people and groups for which it fails."""
    people: dict[str, Problem | None] = {**dict.fromkeys(_PEOPLE), **PROBLEMS}
    members = {name: frozenset(row) for name, row in {**GROUPS, **(groups or {})}.items()}
    for name in unknown:
        people.pop(name, None)
        members.pop(name, None)
    problems = changes.pop("problems", {})
    assert isinstance(problems, dict)
    values: dict[str, object] = {"requesters": frozenset({"ROSA"}), **changes}
    return PeopleSnapshot(
        people={**people, **problems},
        members=members,
        delegations=delegations,
        **values,  # type: ignore[arg-type]
    )


def delegation(owner: str, delegate: str, group: str = "") -> Delegation:
    """One that holds."""
    return Delegation(owner=owner, delegate=delegate, until_ms=10_000, group=group)


def ballot(*stages: Iterable[tuple[str, int]], **changes: object) -> Ballot:
    """An empty ballot on such terms."""
    return Ballot(terms=terms(*stages, **changes), digest=DIGEST)


class Play:
    """One ballot, and the votes that people try.

    Attributes:
        ballot: As it is now.
        last: The result of the last attempt.
    """

    def __init__(self, start: Ballot, snapshot: PeopleSnapshot | None = None) -> None:
        self.ballot = start
        self.snapshot = snapshot or snapshot_of()
        self.last = VoteResult(ballot=start)
        self._at_ms = 0

    def vote(self, by: str, choice: str = APPROVE, **changes: object) -> str:
        """Try a vote; return the refusal, the decision, or `counted`."""
        result = judge_vote(self.ballot, self._attempt(by, choice, changes), self.snapshot)
        return self._heard(result)

    def approve(self, *people: str) -> list[str]:
        """Let these approve, one after the other."""
        return [self.vote(by) for by in people]

    def reject(self, by: str, **changes: object) -> str:
        """Let somebody reject."""
        return self.vote(by, REJECT, **changes)

    def take_back(self, by: str, **changes: object) -> str:
        """Let somebody take their vote back."""
        result = judge_take_back(self.ballot, self._attempt(by, "", changes), self.snapshot)
        return self._heard(result)

    def tallies(self) -> dict[str, str]:
        """How far it is."""
        return {tally.name: str(tally) for tally in self.ballot.progress(self.snapshot)}

    def _attempt(self, by: str, choice: str, changes: dict[str, object]) -> VoteAttempt:
        self._at_ms += 1
        values: dict[str, object] = {"digest": DIGEST, "at_ms": self._at_ms, **changes}
        return VoteAttempt(by=by, choice=choice, **values)  # type: ignore[arg-type]

    def _heard(self, result: VoteResult) -> str:
        self.ballot, self.last = result.ballot, result
        if result.refusal is not None:
            return result.refusal.value
        return "counted" if result.decision is None else result.decision[0]
