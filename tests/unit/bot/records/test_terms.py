"""The terms of a ruling: kept as text, and bound by a digest."""

from datetime import datetime

import pytest

from bot.records.terms import Group, Override, Requirement, Rotation, Stage, Terms, TermsError

DUTY = Rotation(
    start=datetime.fromisoformat("2026-11-02T09:00"),
    every="1w",
    people=("U0ADA", "U0BEN"),
    overrides=(
        Override(
            start=datetime.fromisoformat("2026-12-24T09:00"),
            until=datetime.fromisoformat("2026-12-27T09:00"),
            user="U0MIA",
        ),
    ),
    timezone="Europe/Berlin",
)
TERMS = Terms(
    rules=("big-refunds", "code:over-100"),
    stages=(Stage(approve=(Requirement(name="sre", groups=("sre",), count=2),)),),
    groups={"sre": Group(usergroups=("S0SRE",)), "duty": Group(rotation=DUTY)},
)


def test_terms_are_read_as_they_were_written() -> None:
    assert Terms.from_text(TERMS.text) == TERMS


def test_the_names_of_all_rules_are_shown_joined() -> None:
    assert TERMS.rule == "big-refunds + code:over-100"


@pytest.mark.parametrize(
    "change",
    [
        {"rules": ("other",)},
        {"exclude": ("requesters", "editors")},
        {"groups": {**TERMS.groups, "sre": Group(users=("U0ADA",))}},
        {"reject": 2},
        {"max_age_s": 60},
        {"risk": "high"},
        {"delegation": False},
        {"always_ask": True},
        {"on_expiry": "cancel_run"},
    ],
)
def test_the_digest_covers_what_people_decide_under(change: dict[str, object]) -> None:
    assert TERMS.model_copy(update=change).digest != TERMS.digest


@pytest.mark.parametrize("change", [{"expires_s": 60}, {"route": "dm"}, {"remind_s": 0}])
def test_the_digest_does_not_cover_how_people_are_told(change: dict[str, object]) -> None:
    assert TERMS.model_copy(update=change).digest == TERMS.digest


def test_a_copy_with_other_values_has_its_own_digest_and_text() -> None:
    before = (TERMS.digest, TERMS.text)
    copy = TERMS.model_copy(update={"reject": 2})
    assert Terms.from_text(copy.text) == copy
    assert copy.digest not in before
    assert (TERMS.digest, TERMS.text) == before


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"rules":["x"],"stages":[]', "null"])
def test_damaged_terms_let_nobody_decide(text: str) -> None:
    with pytest.raises(TermsError):
        Terms.from_text(text)


def test_terms_of_a_later_release_let_nobody_decide() -> None:
    with pytest.raises(TermsError):
        Terms.from_text(TERMS.text.replace('"rules"', '"laws"', 1))
