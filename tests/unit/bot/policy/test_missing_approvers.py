"""Whether anybody could complete a ballot, in words, and for whom it waits."""

from __future__ import annotations

from dataclasses import replace

from bot.policy.eligibility import PeopleSnapshot, Problem
from bot.policy.missing_approvers import feasibility_of, possible_voters
from bot.policy.tally import Ballot
from tests.unit.bot.policy.voting import Play, ballot, snapshot_of, step

TWO = [("sre", 2), ("security", 1)]


def missing(start: Ballot, snapshot: PeopleSnapshot) -> str:
    return str(feasibility_of(start, snapshot).shortage)


def test_several_who_are_left_are_named_up_to_five() -> None:
    few = snapshot_of(groups={"sre": ("U0ADA", "U0BEN")})
    assert missing(ballot([("sre", 3)]), few) == (
        "needs 3 of sre; only <@U0ADA> and <@U0BEN> are left"
    )
    many = snapshot_of(groups={"sre": tuple(f"U{number}" for number in range(7))})
    assert missing(ballot([("sre", 8)]), many) == (
        "needs 8 of sre; only <@U0>, <@U1>, <@U2>, <@U3>, <@U4> and 2 more are left"
    )


def test_excluded_people_and_others_who_never_count_are_not_left() -> None:
    snapshot = snapshot_of(
        groups={"sre": ("ROSA", "GUS", "ADA", "BEN", "CLEO", "LIA")},
        editors=frozenset({"BEN"}),
        counted=frozenset({"CLEO"}),
        problems={"LIA": Problem.DEACTIVATED},
    )
    start = ballot([("sre", 1)], exclude=("requesters", "editors", "fin"))
    result = feasibility_of(start, snapshot)
    assert result.shortage is not None
    assert result.shortage.left == ()


def test_a_later_step_may_bring_enough_people() -> None:
    start = ballot(escalate=(step(60, "security"), step(120, "leads")))
    snapshot = snapshot_of(groups={"sre": (), "security": ()})
    result = feasibility_of(start, snapshot)
    assert (result.shortage is None, result.is_never, result.after_steps) == (False, False, 2)
    assert feasibility_of(replace(start, steps=2), snapshot).shortage is None


def test_a_failed_look_up_counts_as_if_somebody_could() -> None:
    assert feasibility_of(ballot(TWO), snapshot_of(unknown=("sre",))).shortage is None
    assert feasibility_of(ballot(TWO), snapshot_of(unknown=("ADA", "BEN"))).shortage is None
    empty = snapshot_of(groups={"sre": ()}, unknown=("security",))
    assert feasibility_of(ballot(TWO), empty).shortage is not None
    assert feasibility_of(ballot(exclude=("fin",)), snapshot_of(unknown=("fin",))).shortage is None


def test_votes_count_as_filled() -> None:
    play = Play(ballot(TWO))
    play.approve("ADA")
    assert feasibility_of(play.ballot, snapshot_of(groups={"sre": ("ADA", "BEN")})).shortage is None
    assert feasibility_of(play.ballot, snapshot_of(groups={"sre": ("ADA",)})).shortage is not None
    gone = feasibility_of(play.ballot, snapshot_of(groups={"sre": ("BEN",)}))
    assert str(gone.shortage) == "needs 2 of sre; only BEN is left"


def test_who_voted_in_an_earlier_stage_is_not_left_for_a_later_one() -> None:
    play = Play(ballot([("sre", 1)], [("leads", 1)]), snapshot_of(groups={"leads": ("ADA",)}))
    assert feasibility_of(play.ballot, play.snapshot).shortage is None
    play.approve("ADA")
    assert feasibility_of(play.ballot, play.snapshot).is_never
    play.take_back("ADA")
    assert feasibility_of(play.ballot, play.snapshot).shortage is None


def test_a_card_waits_for_nobody_who_cannot_approve() -> None:
    start = ballot(exclude=("requesters", "fin"), escalate=(step(60, "security"),))
    snapshot = snapshot_of(groups={"sre": ("ADA", "ROSA", "BEN", "GUS")})
    assert possible_voters(start, snapshot) == {"BEN"}
    assert possible_voters(replace(start, steps=1), snapshot) == {"BEN", "SAM"}
