"""Refusals of votes: each for its reason, and in the order of 3.14."""

from __future__ import annotations

import pytest

from bot.policy.eligibility import PeopleSnapshot
from bot.policy.refusals import RefusalCode, is_blank
from bot.policy.tally import Ballot
from bot.records.approval import AGAIN, APPROVE
from tests.unit.bot.policy.voting import DIGEST, Play, ballot, delegation, snapshot_of, terms

STAGED = ([("sre", 1)], [("leads", 1)])


@pytest.mark.parametrize("code", RefusalCode)
def test_each_refusal_is_said_in_a_few_plain_words(code: RefusalCode) -> None:
    assert code.words.endswith(".")
    assert len(code.words.split()) <= 22


@pytest.mark.parametrize(
    ("by", "code"), [("GUS", "guest"), ("EXT", "external"), ("APP", "bot"), ("OLD", "deactivated")]
)
def test_whoever_is_no_full_member_never_counts(by: str, code: str) -> None:
    snapshot = snapshot_of(groups={"odd": ("GUS", "EXT", "APP", "OLD")})
    play = Play(ballot([("odd+sre", 1)]), snapshot)
    assert [play.vote(by), play.reject(by)] == [code, code]


def test_reasons_are_found_in_order() -> None:
    """Somebody with everything against them hears the first; without that, the next."""
    play = Play(ballot([("sre", 1)], approve_reason=True))
    everything: dict[str, object] = {"is_open": False, "digest": "older", "is_denied": True}
    refusals = []
    unknown = snapshot_of(requesters=frozenset({"TOM"}), unknown=("TOM",))
    own = snapshot_of(requesters=frozenset({"TOM"}))
    tries: list[tuple[dict[str, object], PeopleSnapshot]] = [
        (everything, unknown),
        ({**everything, "is_open": True}, unknown),
        ({"is_denied": True}, unknown),
        ({"is_denied": True}, own),
        ({}, own),
        ({}, snapshot_of()),
    ]
    for changes, play.snapshot in tries:
        refusals.append(play.vote("TOM", APPROVE, **changes))
    assert refusals == [
        "closed",
        "outdated",
        "lookup_failed",
        "rule_denies",
        "own_request",
        "not_approver",
    ]


def test_reasons_of_approvers_are_found_in_order() -> None:
    play = Play(ballot([("sre", 2)], approve_reason=True), snapshot_of(counted=frozenset({"ADA"})))
    assert [
        play.vote("ADA", has_seen=False),
        play.vote("ADA", note="fine", has_seen=False),
        play.vote("ADA", note="fine"),
    ] == ["reason_required", "not_seen", "used_up"]
    assert play.ballot.votes == ()


def test_an_own_request_comes_before_an_own_edit_and_a_group() -> None:
    start = ballot([("sre", 1)], exclude=("requesters", "editors", "fin"))
    ada = frozenset({"ADA"})
    people = [
        snapshot_of(requesters=ada, editors=ada),
        snapshot_of(requesters=frozenset(), editors=ada),
        snapshot_of(),
    ]
    heard = [Play(start, snapshot).vote("ADA") for snapshot in people]
    assert heard == ["own_request", "own_edit", "excluded"]


def test_a_requester_cannot_say_what_came_of_a_doubt() -> None:
    start = Ballot(terms=terms(), digest=DIGEST, is_doubt=True)
    assert (
        Play(start, snapshot_of(requesters=frozenset({"BEN"}))).vote("BEN", AGAIN) == "own_request"
    )


@pytest.mark.parametrize("text", ["", "  ", "\n\t", "\u200b", "\u2060 \u00ad", "\u3000"])
def test_a_reason_that_cannot_be_seen_is_none(text: str) -> None:
    assert is_blank(text)
    play = Play(ballot(reject_reason=True))
    assert play.reject("ADA", note=text) == "reason_required"
    assert play.reject("ADA", note="no") == "reject"


@pytest.mark.parametrize("unknown", ["sre", "ADA", "fin"])
def test_a_failed_look_up_counts_nothing(unknown: str) -> None:
    play = Play(ballot([("sre", 2)], exclude=("fin",)), snapshot_of(groups={"fin": ()}))
    play.vote("ADA")
    play.snapshot = snapshot_of(groups={"fin": ()}, unknown=(unknown,))
    assert play.vote("BEN") == "lookup_failed"
    assert [vote.by for vote in play.ballot.votes] == ["ADA"]


def test_a_later_stage_need_not_be_known_to_approve() -> None:
    play = Play(ballot(*STAGED), snapshot_of(unknown=("leads",)))
    assert play.approve("ADA") == ["counted"]
    assert play.approve("BEN") == ["lookup_failed"]


def test_whoever_is_known_to_be_entitled_may_stop_it() -> None:
    play = Play(ballot(*STAGED, exclude=("fin",)), snapshot_of(unknown=("leads", "fin")))
    assert play.reject("BEN") == "reject"
    assert Play(ballot(*STAGED), snapshot_of(unknown=("leads",))).reject("LIA") == "lookup_failed"


def test_other_rejections_are_known_before_one_more_decides() -> None:
    play = Play(ballot([("sre", 2)], reject=2))
    play.reject("ADA")
    play.snapshot = snapshot_of(unknown=("ADA",))
    assert play.reject("BEN") == "lookup_failed"


def test_a_delegation_that_cannot_be_checked_stops_nobody_with_a_right() -> None:
    snapshot = snapshot_of(delegation("MIA", "ADA"), unknown=("MIA",))
    assert Play(ballot(), snapshot).approve("ADA") == ["approve"]


def test_who_comes_again_later_hears_that_it_is_not_their_turn() -> None:
    staged = ([("sre", 1)], [("leads", 1)], [("sre", 1)])
    play = Play(ballot(*staged))
    assert play.approve("ADA", "BEN", "ADA") == ["counted", "not_your_turn", "already_voted"]
