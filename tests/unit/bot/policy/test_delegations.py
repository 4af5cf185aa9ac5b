"""Which delegations may be made."""

from __future__ import annotations

import pytest

from bot.policy.eligibility import Delegation, Problem
from bot.policy.refusals import LONGEST_MS, judge_delegation

NOW = 1_000_000
PEOPLE = {**dict.fromkeys(("MIA", "TOM", "SAM", "ADA")), "GUS": Problem.GUEST}


def made(owner: str, delegate: str, *, for_ms: int = 60_000) -> Delegation:
    return Delegation(owner=owner, delegate=delegate, until_ms=NOW + for_ms)


def judged(new: Delegation, *others: Delegation) -> str:
    refusal = judge_delegation(new, others=others, people=PEOPLE, now_ms=NOW)
    return "made" if refusal is None else refusal.value


@pytest.mark.parametrize(
    ("new", "heard"),
    [
        (made("MIA", "TOM"), "made"),
        (made("MIA", "MIA"), "bad_delegate"),
        (made("MIA", "GUS"), "bad_delegate"),
        (made("GUS", "MIA"), "guest"),
        (made("MIA", "NOBODY"), "lookup_failed"),
        (made("NOBODY", "MIA"), "lookup_failed"),
        (made("MIA", "TOM", for_ms=LONGEST_MS), "made"),
        (made("MIA", "TOM", for_ms=LONGEST_MS + 1), "bad_delegate"),
        (made("MIA", "TOM", for_ms=0), "bad_delegate"),
    ],
)
def test_only_a_member_takes_a_right_and_for_a_while(new: Delegation, heard: str) -> None:
    assert judged(new) == heard


def test_a_ring_is_refused_however_long() -> None:
    assert judged(made("TOM", "MIA"), made("MIA", "TOM")) == "bad_delegate"
    chain = (made("MIA", "TOM"), made("TOM", "SAM"), made("SAM", "ADA"))
    assert judged(made("ADA", "MIA"), *chain) == "bad_delegate"
    assert judged(made("ADA", "TOM"), *chain) == "bad_delegate"


def test_ways_that_do_not_lead_back_are_no_ring() -> None:
    assert judged(made("MIA", "SAM"), made("MIA", "TOM"), made("TOM", "SAM")) == "made"
    assert judged(made("ADA", "MIA"), made("MIA", "TOM"), made("TOM", "SAM")) == "made"


def test_an_older_ring_of_others_ends_the_search() -> None:
    assert judged(made("ADA", "MIA"), made("MIA", "TOM"), made("TOM", "MIA")) == "made"


def test_what_has_ended_closes_no_ring() -> None:
    assert judged(made("TOM", "MIA"), made("MIA", "TOM", for_ms=0)) == "made"
