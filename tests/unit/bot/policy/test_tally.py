"""Votes on a ballot: slots, stages, rejections, doubts and delegations."""

from __future__ import annotations

import pytest

from bot.policy.eligibility import Problem
from bot.policy.tally import Ballot
from bot.records.approval import AGAIN, RAN, CastVote
from tests.unit.bot.policy.voting import DIGEST, Play, ballot, delegation, snapshot_of, step, terms

TWO = [("sre", 2), ("security", 1)]
OVERLAP = [("fin", 1), ("security", 1)]
STAGED = ([("sre", 1)], [("leads", 1)])


def doubt(*requirements: tuple[str, int], **changes: object) -> Play:
    return Play(Ballot(terms=terms(requirements, **changes), digest=DIGEST, is_doubt=True))


@pytest.mark.parametrize("order", [("MIA", "ADA"), ("MIA", "SAM"), ("SAM", "MIA"), ("SAM", "ADA")])
def test_who_is_in_two_groups_takes_the_place_that_is_left(order: tuple[str, str]) -> None:
    assert Play(ballot(OVERLAP)).approve(*order) == ["counted", "approve"]


def test_a_vote_moves_others_to_their_other_places() -> None:
    play = Play(ballot(TWO), snapshot_of(groups={"sre": ("ADA", "BEN", "MIA")}))
    assert play.approve("MIA", "ADA") == ["counted", "counted"]
    assert play.tallies() == {"sre": "2 of 2", "security": "0 of 1"}
    assert play.approve("BEN") == ["approve"]


def test_the_next_stage_begins_when_all_slots_are_filled() -> None:
    play = Play(ballot(*STAGED))
    assert play.approve("LIA", "ADA") == ["not_your_turn", "counted"]
    assert play.ballot.stage == 1
    assert play.tallies() == {"leads": "0 of 1"}
    assert play.approve("BEN", "ADA", "LIA") == ["not_needed", "already_voted", "approve"]


def test_people_of_a_later_stage_may_reject_at_any_time() -> None:
    assert Play(ballot(*STAGED)).reject("LIA") == "reject"


def test_a_step_widens_only_its_own_requirement() -> None:
    base = ballot([("sre", 1), ("security", 1)], escalate=(step(1, "leads", "security"),))
    play = Play(Ballot(terms=base.terms, digest=DIGEST, steps=1))
    assert play.approve("LIA", "MAX", "ADA") == ["counted", "not_needed", "approve"]


def test_a_backups_vote_outlives_the_steps_of_its_stage() -> None:
    base = ballot(*STAGED, escalate=(step(1, "security"),))
    play = Play(Ballot(terms=base.terms, digest=DIGEST, steps=1))
    assert play.approve("MIA") == ["counted"]
    play.ballot = Ballot(terms=base.terms, digest=DIGEST, stage=1, votes=play.ballot.votes)
    assert play.approve("LIA") == ["approve"]


def test_so_many_different_people_reject() -> None:
    play = Play(ballot([("sre", 2)], reject=2))
    assert [play.reject("ADA"), play.reject("ADA")] == ["counted", "already_voted"]
    assert [play.vote("BEN"), play.reject("CLEO")] == ["counted", "reject"]


def test_a_rejection_opens_the_stage_that_it_leaves() -> None:
    play = Play(ballot([("sre", 1)], [("leads", 2)], reject=2))
    assert play.approve("ADA", "LIA") == ["counted", "counted"]
    assert play.reject("ADA") == "counted"
    assert play.ballot.stage == 0
    assert [vote.by for vote in play.ballot.votes] == ["ADA"]
    assert [vote.by for vote in play.last.void] == ["LIA"]


def test_a_vote_taken_back_is_gone() -> None:
    play = Play(ballot(TWO))
    assert [play.vote("ADA"), play.take_back("ADA"), play.take_back("ADA")] == [
        "counted",
        "counted",
        "no_vote",
    ]
    assert play.approve("ADA") == ["counted"]


def test_nothing_is_taken_back_from_what_is_closed_or_changed() -> None:
    play = Play(ballot(TWO))
    play.vote("ADA")
    assert play.take_back("ADA", is_open=False) == "closed"
    assert play.take_back("ADA", digest="older") == "outdated"
    assert len(play.ballot.votes) == 1


def test_who_was_deactivated_is_dropped_and_shown_until_then() -> None:
    play = Play(ballot(TWO))
    play.vote("ADA")
    play.found = snapshot_of(problems={"ADA": Problem.DEACTIVATED})
    assert play.tallies()["sre"] == "1 of 2"
    play.vote("BEN")
    assert [vote.by for vote in play.last.dropped] == ["ADA"]


def test_who_came_to_be_excluded_is_dropped() -> None:
    play = Play(ballot([("sre", 2)], exclude=("fin",)), snapshot_of(groups={"fin": ()}))
    play.vote("ADA")
    play.found = snapshot_of(groups={"fin": ("ADA",)})
    play.vote("BEN")
    assert [vote.by for vote in play.ballot.votes] == ["BEN"]


def test_a_finished_stage_that_loses_a_vote_opens_again() -> None:
    play = Play(ballot([("sre", 1)], [("leads", 2)]))
    play.approve("ADA", "LIA")
    play.found = snapshot_of(groups={"sre": ("BEN",)})
    assert play.approve("MAX") == ["not_your_turn"]
    assert play.ballot.stage == 0
    assert [vote.by for vote in play.last.dropped] == ["ADA"]
    assert [vote.by for vote in play.last.void] == ["LIA"]
    assert play.approve("BEN", "LIA", "MAX") == ["counted", "counted", "approve"]


def test_a_vote_for_older_arguments_is_dropped() -> None:
    vote = CastVote(by="ADA", choice="approve", at_ms=1, digest="older")
    play = Play(Ballot(terms=terms([("sre", 2)]), digest=DIGEST, votes=(vote,)))
    assert play.approve("BEN") == ["counted"]
    assert play.last.dropped == (vote,)


def test_one_person_in_a_damaged_record_fills_one_slot() -> None:
    votes = tuple(CastVote(by="ADA", choice="approve", at_ms=n, digest=DIGEST) for n in (1, 2))
    counted = Ballot(terms=terms([("sre", 3)]), digest=DIGEST, votes=votes)
    assert len(counted.recounted(snapshot_of()).ballot.votes) == 1


def test_who_lost_the_place_that_they_filled_is_dropped() -> None:
    play = Play(ballot([*OVERLAP, ("leads", 1)]))
    play.approve("SAM", "MIA")
    play.found = snapshot_of(groups={"fin": ("ADA",)})
    assert play.approve("LIA") == ["counted"]
    assert [vote.by for vote in play.last.dropped] == ["MIA"]


def test_ones_own_right_comes_first() -> None:
    play = Play(ballot(TWO), snapshot_of(delegation("MIA", "ADA")))
    play.vote("ADA")
    assert play.ballot.votes[0].on_behalf_of == ""
    assert play.tallies() == {"sre": "1 of 2", "security": "0 of 1"}
    assert play.approve("MIA") == ["counted"]


def test_a_delegated_right_is_used_where_ones_own_is_not_needed() -> None:
    play = Play(ballot(TWO), snapshot_of(delegation("MIA", "CLEO")))
    play.approve("ADA", "BEN")
    assert play.approve("CLEO") == ["approve"]
    assert play.ballot.votes[-1].on_behalf_of == "MIA"


def test_who_votes_for_another_has_no_second_vote() -> None:
    snapshot = snapshot_of(delegation("MIA", "TOM"), delegation("SAM", "MIA"))
    play = Play(ballot([("security", 2)]), snapshot)
    assert play.approve("TOM", "MIA") == ["counted", "used_up"]


def test_a_delegation_for_one_group_holds_for_no_other() -> None:
    snapshot = snapshot_of(delegation("ADA", "TOM", "fin"))
    assert Play(ballot([("sre", 1)]), snapshot).approve("TOM") == ["not_approver"]
    assert Play(ballot([("fin", 1)]), snapshot).approve("TOM") == ["approve"]


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"requesters": frozenset({"MIA"})}, "not_approver"),
        ({"requesters": frozenset({"TOM"})}, "own_request"),
        ({"problems": {"MIA": Problem.DEACTIVATED}}, "not_approver"),
        ({"problems": {"TOM": Problem.GUEST}}, "guest"),
        ({"groups": {"security": ("SAM",)}}, "not_approver"),
        ({"unknown": ("MIA",)}, "lookup_failed"),
    ],
)
def test_owner_and_delegate_must_both_be_able(changes: dict[str, object], outcome: str) -> None:
    snapshot = snapshot_of(delegation("MIA", "TOM"), **changes)  # type: ignore[arg-type]
    assert Play(ballot([("security", 1)]), snapshot).approve("TOM") == [outcome]


def test_a_delegation_that_ended_drops_its_vote() -> None:
    play = Play(ballot([("security", 2)]), snapshot_of(delegation("MIA", "TOM")))
    play.vote("TOM")
    play.found = snapshot_of()
    assert play.tallies() == {"security": "1 of 2"}
    assert play.approve("SAM", "MIA") == ["counted", "approve"]


def test_an_owners_rejection_replaces_the_delegates_approval() -> None:
    play = Play(ballot([("security", 2)], reject=2), snapshot_of(delegation("MIA", "TOM")))
    play.vote("TOM")
    assert play.reject("MIA") == "counted"
    assert [vote.by for vote in play.ballot.votes] == ["MIA"]
    assert [vote.by for vote in play.last.dropped] == ["TOM"]
    assert play.reject("TOM") == "used_up"


def test_a_delegate_may_stop_what_the_owner_asked_for() -> None:
    snapshot = snapshot_of(delegation("MIA", "TOM"), requesters=frozenset({"MIA"}))
    assert Play(ballot([("security", 1)]), snapshot).reject("TOM") == "reject"


def test_a_delegation_ends_at_its_time() -> None:
    record = delegation("MIA", "TOM")
    assert [record.holds(9_999), record.holds(10_000)] == [True, False]


def test_a_doubt_needs_all_slots_for_one_result() -> None:
    play = doubt(*TWO)
    assert [play.vote(by, RAN, result=said) for by, said in [("ADA", "ok"), ("BEN", "failed")]] == [
        "counted",
        "counted",
    ]
    assert play.vote("CLEO", RAN, result="ok") == "counted"
    assert play.vote("MIA", RAN, result="ok") == "ran"
    assert play.last.decision == (RAN, "ok")


def test_the_latest_word_on_a_doubt_counts() -> None:
    play = doubt(("sre", 2))
    assert [play.vote("ADA", AGAIN), play.vote("ADA", RAN, result="ok")] == ["counted", "counted"]
    assert play.vote("ADA", RAN, result="ok") == "already_voted"
    assert [play.vote("BEN", AGAIN), play.vote("CLEO", RAN, result="ok")] == ["counted", "ran"]
