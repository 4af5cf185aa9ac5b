"""The votes on a card: who has voted, and how many are missing; a plain card has no such part."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import given, strategies as st

from bot.layout.action_ids import ActionId
from bot.policy.demands import wants_reason
from bot.policy.progress import progress_of
from bot.records.approval import Approval, CastVote, Kind
from bot.records.terms import Group, Requirement, Stage, Terms
from bot.slack.cards.card_for import card_for
from bot.slack.cards.details import details_modal
from bot.slack.cards.footer import stage_line
from bot.slack.cards.review import FormReader, review_modal
from tests.unit.bot.slack.cards.samples import an_approval

SRE = Requirement(name="sre", groups=("sre",), count=2)
SECURITY = Requirement(name="security", groups=("security",))
GROUPS = {"sre": Group(users=("UADA", "UBEN")), "security": Group(users=("UMIA",))}
TERMS = Terms(rules=("big",), stages=(Stage(approve=(SRE, SECURITY)),), groups=GROUPS)


def under(terms: Terms, *votes: CastVote, **changes: object) -> Approval:
    kept = an_approval(terms=terms, votes=votes)
    return kept.changed(**changes)


def a_vote(by: str, *groups: str, choice: str = "approve", note: str = "") -> CastVote:
    digest = an_approval().digest
    return CastVote(by=by, choice=choice, at_ms=1_000, digest=digest, note=note, groups=groups)


def drawn(approval: Approval) -> str:
    return json.dumps(card_for(approval, approvers_text="").blocks, ensure_ascii=False)


def test_each_requirement_says_how_many_it_has() -> None:
    card = drawn(under(TERMS, a_vote("UMIA", "security")))
    assert "⏳ *1 of 3 approvals*" in card
    assert "⏳ Still needs 2 more: <@UADA> or <@UBEN>." in card
    assert "✅ <@UMIA> approved, <!date^1^{time}" in card
    text = card_for(under(TERMS, a_vote("UMIA", "security")), approvers_text="").text
    assert text.startswith(
        "1 of 3 approvals: Deploy payments 1.4.2 to production. Waiting for <@UADA> or <@UBEN>."
    )


def test_a_card_without_votes_says_how_many_of_whom_it_needs() -> None:
    groups = {**GROUPS, "sre": Group(usergroups=("S0SRE",))}
    card = drawn(under(Terms(rules=("big",), stages=TERMS.stages, groups=groups)))
    assert "Needs 3 approvals: 2 of <!subteam^S0SRE> and <@UMIA>." in card


def test_a_stage_says_once_who_is_missing() -> None:
    stages = (Stage(name="first", approve=(SRE,)), Stage(name="then", approve=(SECURITY,)))
    terms = Terms(rules=("big",), stages=stages, groups=GROUPS)
    card = drawn(under(terms, a_vote("UADA", "sre"), a_vote("UBEN", "sre"), stage=1))
    assert "⏳ Still needs 1 more: <@UMIA>." in card
    assert card.count("<@UMIA>") == 1


def test_nobody_is_counted_by_a_group_that_they_were_not_in() -> None:
    (sre, security) = progress_of(under(TERMS, a_vote("UADA", "sre"))).tallies
    assert (str(sre), str(security)) == ("1 of 2", "0 of 1")


def test_a_plain_card_says_nothing_of_votes() -> None:
    terms = Terms(rules=("a",), stages=(Stage(approve=(SECURITY,)),), groups=GROUPS)
    for approval in (an_approval(), under(terms)):
        assert progress_of(approval).is_plain
        assert "of 1" not in drawn(approval)
        assert ActionId.TAKE_BACK not in drawn(approval)


CHAIN = tuple(
    Stage(name=name, approve=(Requirement(name=name, groups=(name,), count=count),))
    for name, count in (("technical", 1), ("legal", 2), ("finance", 1))
)
CHAINED = Terms(
    rules=("a",),
    stages=CHAIN,
    groups={
        "technical": Group(users=("UADA",)),
        "legal": Group(users=("UBEN", "UMIA", "U0ROSA")),
        "finance": Group(usergroups=("S0FIN",)),
    },
)
FIRST = "Stage 1 of 3: technical. Then: 2 of <@UBEN> or <@UMIA>, then <!subteam^S0FIN>."


@pytest.mark.parametrize(
    "shown",
    [
        drawn,
        lambda approval: card_for(approval, approvers_text="").text,
        lambda approval: json.dumps(review_modal(approval, FormReader(can_approve=True))),
        lambda approval: json.dumps(review_modal(approval, FormReader())),
        lambda approval: json.dumps(details_modal(approval)),
    ],
    ids=["card", "spoken", "review", "details", "revealed"],
)
def test_the_first_stage_says_who_is_asked_after_it(shown: Callable[[Approval], str]) -> None:
    assert FIRST in shown(under(CHAINED))


def test_a_long_list_of_later_people_is_named_by_its_stage() -> None:
    many = Group(users=tuple(f"U{n:010}" for n in range(100)))
    groups = {**CHAINED.groups, "legal": many, "finance": many}
    first = stage_line(under(CHAINED.model_copy(update={"groups": groups})))
    assert first == "Stage 1 of 3: technical. Then: legal, then finance."


@given(count=st.integers(2, 5), stage=st.integers(0, 4), risk=st.sampled_from(["low", "critical"]))
def test_each_stage_but_the_last_says_that_another_follows(
    count: int, stage: int, risk: Literal["low", "critical"]
) -> None:
    stages = tuple(Stage(name=f"part-{n}", approve=(SECURITY,)) for n in range(count))
    terms = TERMS.model_copy(update={"stages": stages, "risk": risk})
    pending = under(terms, stage=min(stage, count - 1))
    for shown in (drawn(pending), json.dumps(review_modal(pending, FormReader()))):
        assert ("Then: <@UMIA>" in shown) == (stage < count - 1)


def test_a_note_is_masked() -> None:
    card = drawn(under(TERMS, a_vote("UADA", "sre", note="password: hunter2 <!here>")))
    assert "hunter2" not in card


def test_a_rejection_that_does_not_suffice_is_said() -> None:
    terms = TERMS.model_copy(update={"reject": 2})
    card = drawn(under(terms, a_vote("UADA", "sre", choice="reject")))
    assert "<@UADA> rejected" in card
    assert "It takes 2 people to reject this." in card


def test_a_doubt_lists_its_votes() -> None:
    doubt = under(TERMS, a_vote("UADA", "sre", choice="ran"), kind=Kind.DOUBT, form=None)
    assert progress_of(doubt).tallies == ()
    assert "<@UADA> says it ran" in drawn(doubt)


def test_reasons_are_wanted_as_the_rule_says() -> None:
    terms = TERMS.model_copy(update={"approve_reason": True})
    assert wants_reason(under(terms), rejects=False)
    assert not wants_reason(under(terms), rejects=True)
    assert not wants_reason(under(terms, kind=Kind.QUESTION), rejects=False)
