"""Rules of the ballot that hold for all votes: checked on random people, groups and terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from hypothesis import given, strategies as st

from bot.policy.eligibility import Delegation, PeopleSnapshot, Problem
from bot.policy.missing_approvers import feasibility_of, possible_voters
from bot.policy.refusals import VoteAttempt, judge_vote
from bot.policy.tally import Ballot, match
from bot.records.approval import APPROVE, REJECT
from bot.records.terms import Group, Requirement, Stage, Terms

PEOPLE = ("A", "B", "C", "D", "E")
NAMES = ("g1", "g2", "g3")

groups = st.fixed_dictionaries(
    {name: st.frozensets(st.sampled_from(PEOPLE), max_size=4) for name in NAMES}
)
problems = st.dictionaries(st.sampled_from(PEOPLE), st.sampled_from(Problem), max_size=1)
pairs = st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PEOPLE))


@st.composite
def requirements(draw: st.DrawFn, prefix: str) -> tuple[Requirement, ...]:
    rows = draw(
        st.lists(
            st.tuples(st.sets(st.sampled_from(NAMES), min_size=1), st.integers(1, 2)),
            min_size=1,
            max_size=2,
        )
    )
    return tuple(
        Requirement(name=f"{prefix}{number}", groups=tuple(sorted(names)), count=count)
        for number, (names, count) in enumerate(rows)
    )


@st.composite
def ballots(draw: st.DrawFn, *, most_stages: int = 2) -> Ballot:
    count = draw(st.integers(1, most_stages))
    stages = tuple(Stage(name=f"s{n}", approve=draw(requirements(f"s{n}-"))) for n in range(count))
    terms = Terms(
        rules=("r",),
        stages=stages,
        groups={name: Group(users=("U0",)) for name in NAMES},
        reject=draw(st.integers(1, 3)),
    )
    return Ballot(terms=terms, digest="d")


@st.composite
def standings(draw: st.DrawFn) -> PeopleSnapshot:
    given_away = [pair for pair in draw(st.lists(pairs, max_size=2)) if pair[0] != pair[1]]
    return PeopleSnapshot(
        people={**dict.fromkeys(PEOPLE), **draw(problems)},
        members=draw(groups),
        requesters=draw(st.frozensets(st.sampled_from(PEOPLE), max_size=1)),
        delegations=tuple(
            Delegation(owner=owner, delegate=to, until_ms=9) for owner, to in given_away
        ),
    )


votes = st.lists(
    st.tuples(st.sampled_from(PEOPLE), st.sampled_from([APPROVE, APPROVE, APPROVE, REJECT])),
    max_size=12,
)


def played(
    start: Ballot, snapshot: PeopleSnapshot, tried: Sequence[tuple[str, str]]
) -> tuple[Ballot, str]:
    """The ballot after these votes, and what they decided."""
    ballot = start
    for at_ms, (by, choice) in enumerate(tried):
        attempt = VoteAttempt(by=by, choice=choice, at_ms=at_ms, digest="d")
        result = judge_vote(ballot, attempt, snapshot)
        ballot = result.ballot
        if result.decision is not None:
            return ballot, result.decision[0]
    return ballot, ""


def fits(ballot: Ballot, snapshot: PeopleSnapshot, user_id: str) -> list[int]:
    slots = [entry for entry in ballot.current.approve for _ in range(entry.count)]
    return [
        column
        for column, slot in enumerate(slots)
        if any(user_id in snapshot.members[name] for name in slot.groups)
    ]


def can_fill_all(slots: Sequence[set[str]]) -> bool:
    """Whether distinct people fill all slots, found by trying."""
    people = sorted(set().union(*slots))
    return any(
        all(who in slot for who, slot in zip(row, slots, strict=True))
        for row in permutations(people, len(slots))
    )


@given(st.lists(st.sets(st.integers(0, 4), max_size=4), max_size=5))
def test_a_matching_is_as_large_as_the_best_that_can_be_found(rows: list[set[int]]) -> None:
    def best(left: list[set[int]], taken: frozenset[int]) -> int:
        if not left:
            return 0
        row, *others = left
        return (
            max(
                best(others, taken),
                *(1 + best(others, taken | {column}) for column in row - taken),
            )
            if row - taken
            else best(others, taken)
        )

    columns = match(rows).columns
    assert len(columns) == best(rows, frozenset())
    assert len(set(columns.values())) == len(columns)
    assert all(column in rows[row] for row, column in columns.items())


@given(ballots(most_stages=1), standings(), st.permutations(PEOPLE))
def test_the_order_of_approvals_does_not_matter(
    start: Ballot, snapshot: PeopleSnapshot, order: list[str]
) -> None:
    """All ask to approve, over and over: how many slots are filled depends on nobody's hurry."""
    snapshot = replace(snapshot, delegations=())
    filled = [
        len(played(start, snapshot, [(by, APPROVE) for by in people * 2])[0].votes)
        for people in ([*PEOPLE], order)
    ]
    assert filled[0] == filled[1]


@given(ballots(), standings(), votes)
def test_no_person_fills_two_slots(
    start: Ballot, snapshot: PeopleSnapshot, tried: list[tuple[str, str]]
) -> None:
    ballot, _ = played(start, snapshot, tried)
    people = [person for vote in ballot.votes for person in vote.persons]
    assert len(people) == len(set(people))


@given(ballots(), standings(), votes)
def test_excluded_people_and_those_with_a_problem_never_approve(
    start: Ballot, snapshot: PeopleSnapshot, tried: list[tuple[str, str]]
) -> None:
    ballot, _ = played(start, snapshot, tried)
    counted = {person for vote in ballot.votes if vote.choice == APPROVE for person in vote.persons}
    assert not counted & snapshot.requesters
    assert not {
        person for vote in ballot.votes for person in vote.persons if snapshot.people[person]
    }


@given(ballots(), standings(), votes)
def test_it_is_approved_only_when_distinct_people_fill_all_slots(
    start: Ballot, snapshot: PeopleSnapshot, tried: list[tuple[str, str]]
) -> None:
    ballot, decision = played(start, snapshot, tried)
    if decision != APPROVE:
        return
    owners = [(vote.right.owner, vote.stage) for vote in ballot.votes if vote.choice == APPROVE]
    slots = [
        {
            owner
            for owner, stage in owners
            if stage == number and any(owner in snapshot.members[name] for name in slot.groups)
        }
        for number, stage_ in enumerate(ballot.stages)
        for slot in stage_.approve
        for _ in range(slot.count)
    ]
    assert can_fill_all(slots)


@given(ballots(), standings(), votes, st.frozensets(st.sampled_from(PEOPLE), max_size=2))
def test_people_who_leave_never_make_votes(
    start: Ballot, snapshot: PeopleSnapshot, tried: list[tuple[str, str]], gone: frozenset[str]
) -> None:
    ballot, _ = played(start, snapshot, tried)
    left = replace(
        snapshot, members={name: members - gone for name, members in snapshot.members.items()}
    )
    fewer = ballot.recounted(left)
    assert set(fewer.ballot.votes) <= set(ballot.recounted(snapshot).ballot.votes)
    assert not {vote.right.owner for vote in fewer.ballot.votes} & gone
    assert fewer.ballot.stage <= ballot.stage
    assert {*fewer.ballot.votes, *fewer.dropped, *fewer.void} == set(ballot.votes)
    again = fewer.ballot.recounted(left)
    assert (again.ballot, again.dropped, again.void) == (fewer.ballot, (), ())


@given(ballots(), standings(), votes)
def test_a_look_up_that_changes_nothing_drops_nothing(
    start: Ballot, snapshot: PeopleSnapshot, tried: list[tuple[str, str]]
) -> None:
    ballot, _ = played(start, snapshot, tried)
    recount = ballot.recounted(snapshot)
    assert (recount.ballot, recount.dropped, recount.void) == (ballot, (), ())


@given(ballots(), standings())
def test_somebody_can_decide_exactly_when_distinct_people_fit(
    start: Ballot, snapshot: PeopleSnapshot
) -> None:
    able = {user_id for user_id in PEOPLE if snapshot.people[user_id] is None} - snapshot.requesters
    slots = [
        {member for name in slot.groups for member in snapshot.members[name] if member in able}
        for stage in start.stages
        for slot in stage.approve
        for _ in range(slot.count)
    ]
    assert (feasibility_of(start, snapshot).shortage is None) == can_fill_all(slots)


@given(ballots(), standings(), votes)
def test_a_card_waits_for_just_those_whose_vote_would_count(
    start: Ballot, snapshot: PeopleSnapshot, tried: list[tuple[str, str]]
) -> None:
    snapshot = replace(snapshot, delegations=())
    ballot, decision = played(start, snapshot, [pair for pair in tried if pair[1] == APPROVE])
    if decision:
        return
    wanted = {
        by
        for by in PEOPLE
        if judge_vote(
            ballot, VoteAttempt(by=by, choice=APPROVE, at_ms=99, digest="d"), snapshot
        ).vote
    }
    assert possible_voters(ballot, snapshot) == wanted
