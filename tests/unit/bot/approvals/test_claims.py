"""Claims: who has a request, and who had it."""

from __future__ import annotations

from bot.records.approval import CLAIM_MS, CardClaim

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

    assert claim.past == ("ADA", "BEN")
