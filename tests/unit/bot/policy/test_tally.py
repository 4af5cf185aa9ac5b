"""Votes on a ballot: slots, stages, rejections, doubts and delegations."""

from __future__ import annotations

import pytest

from bot.policy.eligibility import Problem
from bot.policy.tally import Ballot
from bot.records.approval import CastVote
from tests.unit.bot.policy.voting import DIGEST, Play, ballot, delegation, snapshot_of, terms

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
