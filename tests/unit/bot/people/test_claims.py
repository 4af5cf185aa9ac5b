"""Claims and snoozes: what they say of people, and what a damaged record says."""

from __future__ import annotations

import pytest

from bot.people.claims import CLAIM_MS, CardClaim, read_claim, read_snoozes, write_snoozes

NOW = 1_000_000


def test_a_claim_holds_for_half_an_hour() -> None:
    claim = CardClaim().taken("ADA", NOW)

    assert [claim.holds(at) for at in (NOW - 1, NOW, NOW + CLAIM_MS - 1, NOW + CLAIM_MS)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_claim_that_is_over_does_not_end_later() -> None:
    claim = CardClaim().taken("ADA", NOW)

    assert claim.ended(NOW + 5).until_ms == NOW + 5
    assert claim.ended(NOW + 2 * CLAIM_MS).until_ms == NOW + CLAIM_MS


def test_all_who_had_it_stay_on_record() -> None:
    claim = CardClaim().taken("ADA", NOW).ended(NOW + 1).taken("BEN", NOW + 2)

    assert read_claim(claim.to_text()) == claim
    assert claim.past == ("ADA", "BEN")
    assert CardClaim().to_text() == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "[" * 100_000,
        '{"by":"ADA"}',
        '{"by":1,"since_ms":1,"until_ms":2,"past":[]}',
        '{"by":"ADA","since_ms":true,"until_ms":2,"past":[]}',
        '{"by":"ADA","since_ms":1,"until_ms":"x","past":[]}',
        '{"by":"ADA","since_ms":1,"until_ms":2,"past":"ADA"}',
    ],
)
def test_a_damaged_claim_holds_nobody_up(text: str) -> None:
    assert read_claim(text) == CardClaim()


def test_a_damaged_snooze_leaves_nobody_out() -> None:
    assert read_snoozes(write_snoozes({"ADA": NOW})) == {"ADA": NOW}
    assert read_snoozes('{"ADA":"x","BEN":true,"MIA":7}') == {"MIA": 7}
    assert read_snoozes("[1]") == {}
