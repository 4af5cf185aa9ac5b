"""Votes on a ballot: slots, stages, rejections, doubts and delegations."""

from __future__ import annotations

import pytest

from bot.policy.eligibility import Problem
from bot.policy.tally import Ballot
from bot.records.approval import CastVote
from tests.unit.bot.policy.voting import DIGEST, Play, ballot, delegation, snapshot_of, step, terms

STAGED = ([("sre", 1)], [("leads", 1)])

TWO = [("sre", 2), ("security", 1)]


def test_so_many_different_people_reject() -> None:
    play = Play(ballot([("sre", 2)], reject=2))
    assert [play.reject("ADA"), play.reject("ADA")] == ["counted", "already_voted"]
    assert [play.vote("BEN"), play.reject("CLEO")] == ["counted", "reject"]


def test_nothing_is_taken_back_from_what_is_closed_or_changed() -> None:
    play = Play(ballot(TWO))
    play.vote("ADA")
    assert play.take_back("ADA", is_open=False) == "closed"
    assert play.take_back("ADA", digest="older") == "outdated"
    assert len(play.ballot.votes) == 1


def test_who_came_to_be_excluded_is_dropped() -> None:
    play = Play(ballot([("sre", 2)], exclude=("fin",)), snapshot_of(groups={"fin": ()}))
    play.vote("ADA")
    play.snapshot = snapshot_of(groups={"fin": ("ADA",)})
    play.vote("BEN")
    assert [vote.by for vote in play.ballot.votes] == ["BEN"]


def test_a_vote_for_older_arguments_is_dropped() -> None:
    vote = CastVote(by="ADA", choice="approve", at_ms=1, digest="older")
    play = Play(Ballot(terms=terms([("sre", 2)]), digest=DIGEST, votes=(vote,)))
    assert play.approve("BEN") == ["counted"]
    assert play.last.dropped == (vote,)


def test_one_person_in_a_damaged_record_fills_one_slot() -> None:
    votes = tuple(CastVote(by="ADA", choice="approve", at_ms=n, digest=DIGEST) for n in (1, 2))
    counted = Ballot(terms=terms([("sre", 3)]), digest=DIGEST, votes=votes)
    assert len(counted.recounted(snapshot_of()).ballot.votes) == 1


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


def test_a_delegate_may_stop_what_the_owner_asked_for() -> None:
    snapshot = snapshot_of(delegation("MIA", "TOM"), requesters=frozenset({"MIA"}))
    assert Play(ballot([("security", 1)]), snapshot).reject("TOM") == "reject"


def test_a_delegation_for_one_group_holds_for_no_other() -> None:
    snapshot = snapshot_of(delegation("ADA", "TOM", "fin"))
    assert Play(ballot([("sre", 1)]), snapshot).approve("TOM") == ["not_approver"]
    assert Play(ballot([("fin", 1)]), snapshot).approve("TOM") == ["approve"]


def test_an_owners_rejection_replaces_the_delegates_approval() -> None:
    play = Play(ballot([("security", 2)], reject=2), snapshot_of(delegation("MIA", "TOM")))
    play.vote("TOM")
    assert play.reject("MIA") == "counted"
    assert [vote.by for vote in play.ballot.votes] == ["MIA"]
    assert [vote.by for vote in play.last.dropped] == ["TOM"]
    assert play.reject("TOM") == "used_up"


def test_a_delegated_right_is_used_where_ones_own_is_not_needed() -> None:
    play = Play(ballot(TWO), snapshot_of(delegation("MIA", "CLEO")))
    play.approve("ADA", "BEN")
    assert play.approve("CLEO") == ["approve"]
    assert play.ballot.votes[-1].on_behalf_of == "MIA"


def test_a_rejection_opens_the_stage_that_it_leaves() -> None:
    play = Play(ballot([("sre", 1)], [("leads", 2)], reject=2))
    assert play.approve("ADA", "LIA") == ["counted", "counted"]
    assert play.reject("ADA") == "counted"
    assert play.ballot.stage == 0
    assert [vote.by for vote in play.ballot.votes] == ["ADA"]
    assert [vote.by for vote in play.last.void] == ["LIA"]


def test_a_backups_vote_outlives_the_steps_of_its_stage() -> None:
    base = ballot(*STAGED, escalate=(step(1, "security"),))
    play = Play(Ballot(terms=base.terms, digest=DIGEST, steps=1))
    assert play.approve("MIA") == ["counted"]
    play.ballot = Ballot(terms=base.terms, digest=DIGEST, stage=1, votes=play.ballot.votes)
    assert play.approve("LIA") == ["approve"]
