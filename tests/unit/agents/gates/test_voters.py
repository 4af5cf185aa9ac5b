"""Whoever was counted for an answer is used up, also when several were (I13); frozen terms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.core.asking.answers import ApprovalResult, InDoubtResult, ReviewEditResult
from agents.core.asking.infos import ApprovalInfo, ReviewEditInfo
from agents.core.errors import AgentConfigError
from agents.gates import approval_gate, policy_gate, review_edit_gate
from agents.gates.decorator import tool
from agents.gates.human import HumanResponse
from agents.policy import AllowList, Ask
from tests.unit.agents.gates.test_votes import NOT_THE_EDITOR
from tests.unit.agents.house import ByAmount
from tests.unit.agents.stage import Stage
from tests.unit.agents.support import Plain


async def asked_twice() -> tuple[Stage, Plain]:
    """A call whose outer gate two people have let pass; the inner one asks now."""
    pay = Plain("pay")
    stage = Stage(approval_gate(review_edit_gate(pay)), {"x": 5})
    assert await stage.run() is None
    yes = replace(stage.question(ApprovalInfo).approve(by="UADA"), voters=("UADA", "UMIA"))
    assert await stage.answer(yes) is None
    return stage, pay


async def test_the_inner_gate_shows_all_who_were_counted_outside() -> None:
    stage, _ = await asked_twice()
    assert stage.question(ReviewEditInfo).counted == ("UADA", "UMIA")


@pytest.mark.parametrize("voters", [("UMIA",), ("UBEN", "UMIA")])
async def test_nobody_who_was_counted_outside_counts_inside(voters: tuple[str, ...]) -> None:
    stage, pay = await asked_twice()
    yes = replace(stage.question(ReviewEditInfo).accept(by="UBEN"), voters=voters)
    assert await stage.answer(yes) is None
    assert "UMIA has agreed in another gate" in str(stage.refusals[0])
    assert pay.calls == []


async def test_other_people_let_it_run() -> None:
    stage, pay = await asked_twice()
    yes = replace(stage.question(ReviewEditInfo).accept(by="UBEN"), voters=("UBEN", "USAM"))
    assert await stage.answer(yes) is not None
    assert pay.calls == [{"x": 5}]


@pytest.mark.parametrize(
    ("voters", "runs"), [(("UBEN", "USAM"), True), (("UBEN", "UADA"), False), ((), False)]
)
async def test_an_editor_among_the_voters_of_an_edit_does_not_count_where_it_is_excluded(
    voters: tuple[str, ...], runs: bool
) -> None:
    pay = Plain("pay")
    stage = Stage(policy_gate(pay, ByAmount({5: NOT_THE_EDITOR, 6: NOT_THE_EDITOR})), {"x": 5})
    assert await stage.run() is None
    edit = replace(stage.question(ReviewEditInfo).edit({"x": 6}), edited_by="UADA", voters=voters)
    await stage.answer(edit)
    assert (pay.calls == [{"x": 6}]) is runs


@pytest.mark.parametrize("voters", [("",), (1,), ["UADA"], "UADA", None])
def test_voters_without_names_are_refused(voters: object) -> None:
    with pytest.raises(TypeError, match="voters must be a tuple of names"):
        ApprovalResult(approved=True, voters=voters)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="voters must be"):
        ReviewEditResult(no_need_to_edit=True, voters=voters)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="voters must be"):
        InDoubtResult(choice="ran", voters=voters)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="voters must be"):
        HumanResponse(type="accept", voters=voters)  # type: ignore[arg-type]


def test_what_is_bound_stands_for_the_whole_ruling_and_the_terms_are_not_in_it() -> None:
    ask = Ask(rule="big", approvers=("UADA",), terms="long", bound="d1")
    assert ask.to_text() == '{"bound":"d1","effect":"ask","kind":"approval","rule":"big"}'
    assert ask.to_text() == replace(ask, terms="other", reason="else").to_text()
    assert ask.to_text() != replace(ask, bound="d2").to_text()
    assert ask.to_text() != replace(ask, kind="review").to_text()


async def test_terms_are_frozen_with_the_question() -> None:
    ask = Ask(rule="big", terms='{"a":1}', bound="d1")
    stage = Stage(policy_gate(Plain("pay"), ByAmount({5: ask})), {"x": 5})
    assert await stage.run() is None
    assert stage.question(ApprovalInfo).terms == '{"a":1}'


async def test_a_policy_is_told_the_risk_of_a_tool() -> None:
    @tool(risk="critical")
    def wipe() -> None:
        """Wipe."""

    assert wipe.definition.risk == "critical"
    assert Plain("pay").definition.risk == "medium"
    assert policy_gate(wipe, AllowList(["wipe"])).definition.risk == "critical"


def test_a_risk_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AgentConfigError, match="use 'low', 'medium', 'high', 'critical'"):

        @tool(risk="huge")  # type: ignore[call-overload, untyped-decorator]
        def wipe() -> None:
            """Wipe."""
