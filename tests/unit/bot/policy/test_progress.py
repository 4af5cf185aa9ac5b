"""Progress is read from the record alone; what cannot be read says nothing."""

from __future__ import annotations

from bot.policy.demands import wants_reason
from bot.policy.progress import VoteProgress, progress_of
from bot.records.approval import APPROVE, Approval, CastVote, Kind
from bot.records.terms import Group, Requirement, Stage, Terms
from tests.contract.builders import an_approval

NONE = VoteProgress()


def a_card(*, stages: int = 1, **changes: object) -> Approval:
    requirement = Requirement(name="sre", groups=("sre",), count=2)
    terms = Terms.model_validate(
        {
            "rules": ("r",),
            "stages": tuple(
                Stage(
                    name=f"s{number}",
                    approve=(requirement.model_copy(update={"name": f"sre{number}"}),),
                )
                for number in range(stages)
            ),
            "groups": {"sre": Group(users=("U1", "U2"))},
            "approve_reason": True,
            "reject": 2,
            **changes,
        }
    )
    return an_approval(terms=terms)


def test_votes_fill_slots_by_the_groups_that_they_counted_by() -> None:
    card = a_card()
    vote = CastVote(by="U1", choice=APPROVE, at_ms=1, digest=card.digest, groups=("sre",))
    progress = progress_of(card.changed(votes=(vote,)))
    assert [str(tally) for tally in progress.tallies] == ["1 of 2"]
    assert (progress.stage, progress.votes, progress.rejections) == ("", (vote,), 2)
    assert not progress.is_plain


def test_a_stage_has_its_name_where_there_are_several() -> None:
    assert progress_of(a_card(stages=2).changed(stage=1)).stage == "s1"


def test_of_a_doubt_only_the_votes_are_known() -> None:
    assert progress_of(a_card().changed(kind=Kind.DOUBT)).tallies == ()


def test_a_question_has_no_progress() -> None:
    assert progress_of(a_card().changed(kind=Kind.QUESTION)) == NONE


def test_a_reason_is_wanted_as_the_terms_say() -> None:
    card = a_card()
    assert wants_reason(card, rejects=False)
    assert not wants_reason(card, rejects=True)
    assert not wants_reason(card.changed(kind=Kind.DOUBT), rejects=False)
