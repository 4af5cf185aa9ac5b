"""Progress is read from the record alone; what cannot be read says nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.people.progress import VoteProgress, progress_of
from bot.people.terms_of import wants_reason
from bot.policy.tally import APPROVE, CastVote, write_votes
from bot.policy.terms import Group, Requirement, Stage, Terms
from storage.records import Approval, Kind
from tests.contract.builders import an_approval

NONE = VoteProgress()


def a_card(*, stages: int = 1, **changes: object) -> Approval:
    one = Requirement(name="sre", groups=("sre",), count=2)
    terms = Terms.model_validate(
        {
            "rules": ("r",),
            "stages": tuple(
                Stage(name=f"s{number}", approve=(one.model_copy(update={"name": f"sre{number}"}),))
                for number in range(stages)
            ),
            "groups": {"sre": Group(users=("U1", "U2"))},
            "approve_reason": True,
            "reject": 2,
            **changes,
        }
    )
    return replace(an_approval(), terms_json=terms.to_text())


def test_votes_fill_slots_by_the_groups_that_they_counted_by() -> None:
    card = a_card()
    vote = CastVote(by="U1", choice=APPROVE, at_ms=1, digest=card.digest, groups=("sre",))
    found = progress_of(replace(card, votes_json=write_votes([vote])))
    assert [str(one) for one in found.tallies] == ["1 of 2"]
    assert (found.stage, found.votes, found.rejections) == ("", (vote,), 2)
    assert not found.is_plain


def test_a_stage_has_its_name_where_there_are_several() -> None:
    assert progress_of(replace(a_card(stages=2), stage=1)).stage == "s1"


def test_of_a_doubt_only_the_votes_are_known() -> None:
    assert progress_of(replace(a_card(), kind=Kind.DOUBT)).tallies == ()


@pytest.mark.parametrize(
    "card",
    [
        replace(a_card(), terms_json="{"),
        replace(a_card(), votes_json='[{"by": 5}]'),
        replace(
            a_card(),
            votes_json='[{"by":"U1","choice":"approve","at_ms":1,"digest":"d",'
            '"grounds":{"read_ms":"soon"}}]',
        ),
        replace(a_card(), stage=3),
        replace(a_card(), kind=Kind.QUESTION),
    ],
    ids=["terms", "votes", "grounds", "stage", "question"],
)
def test_what_cannot_be_read_has_no_progress(card: Approval) -> None:
    assert progress_of(card) == NONE


def test_a_reason_is_wanted_as_the_terms_say() -> None:
    card = a_card()
    assert wants_reason(card, rejects=False)
    assert not wants_reason(card, rejects=True)
    assert not wants_reason(replace(card, terms_json="{"), rejects=False)
    assert not wants_reason(replace(card, kind=Kind.DOUBT), rejects=False)
