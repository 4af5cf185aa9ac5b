"""For whom an answer counts when several gates stand around a call, or nobody is named (I13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.infos import ApprovalInfo, CallInfo, ReviewEditInfo, ReviewEditResult
from agents.gates import approval_gate, guard, review_edit_gate
from agents.gates.complete import complete_gate
from agents.gates.decorator import tool
from agents.gates.policy import PolicyGate
from agents.gates.questions import ParametersInfo
from agents.gates.rulings import GateState, Vote
from agents.policy import Ask, PolicyCall, Ruling
from agents.tools import Tool
from tests.unit.agents.stage import Stage
from tests.unit.agents.support import Plain

MIA = Ask(rule="big", approvers=("UMIA",))
ANYBODY = Ask(kind="review", rule="small")
NOT_THE_EDITOR = replace(ANYBODY, exclude_editors=True)


@dataclass
class ByAmount:
    """A policy of one's own: what it says of a call depends on `x`."""

    rulings: Mapping[int, Ruling]

    async def evaluate(self, call: PolicyCall) -> Ruling:
        return self.rulings[call.arguments["x"]]  # type: ignore[index]


async def asked(made: Tool, arguments: dict[str, Json] | None = None) -> Stage:
    stage = Stage(made, arguments or {"x": 5})
    assert await stage.run() is None
    return stage


@pytest.mark.parametrize("rule", ["always", "dear"])
async def test_what_a_gate_asks_is_bound_to_its_own_rule_and_kind(rule: str) -> None:
    approval = await asked(approval_gate(Plain("pay"), rule=rule))
    review = await asked(review_edit_gate(Plain("pay"), rule=rule))
    for info, kind in (
        (approval.question(ApprovalInfo), "approval"),
        (review.question(ReviewEditInfo), "review"),
    ):
        assert (info.rule, info.ruling) == (rule, Ask(rule=rule).to_text(kind=kind))


async def test_a_vote_counts_for_the_gate_whose_people_were_asked() -> None:
    stage = await asked(approval_gate(Plain("pay")))
    info = stage.question(ApprovalInfo)
    vote = Vote(ruling=info.ruling, by="UMIA", editor="", editors=(), slot="b", edits=False)
    left: list[tuple[str, CallInfo]] = [("a", info), ("b", info), ("c", info)]
    counted, then = vote.cast(GateState(), left)
    assert counted.agreed == {"b": info.ruling}
    assert [slot for slot, _ in then] == ["a", "c"]


async def test_an_edit_that_was_approved_outside_counts_when_an_argument_is_filled_in() -> None:
    paid: list[tuple[int, str]] = []

    @tool
    def pay(x: int, to: str) -> str:
        """Pay."""
        paid.append((x, to))
        return "paid"

    policy = ByAmount({5: ANYBODY, 6: MIA})
    stage = await asked(PolicyGate(complete_gate(pay, ["to"]), policy))
    info = stage.question(ReviewEditInfo)
    edit = ReviewEditResult(
        edited_arguments={"x": 6},
        digest=info.digest_of({"x": 6}, ruling=MIA.to_text()),
        ruling=MIA.to_text(),
        by="UMIA",
        edited_by="UADA",
    )
    assert await stage.answer(edit) is None
    await stage.answer(stage.question(ParametersInfo).complete({"to": "Ben"}, by="UBEN"))
    assert (stage.refusals, paid) == ((), [(6, "Ben")])


async def test_edit_by_nobody_in_particular_is_asked_about_again_and_then_runs() -> None:
    pay = Plain("pay")
    stage = await asked(guard(pay, ByAmount({5: NOT_THE_EDITOR, 6: NOT_THE_EDITOR})))
    assert await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6})) is None
    assert pay.calls == []
    assert isinstance(await stage.answer(stage.question(ReviewEditInfo).accept()), ToolReturn)
    assert pay.calls == [{"x": 6}]


async def test_two_who_are_not_named_are_not_taken_for_one() -> None:
    pay = Plain("pay")
    stage = await asked(guard(review_edit_gate(pay), ByAmount({5: MIA, 6: MIA})))
    await stage.answer(stage.question(ApprovalInfo).approve())
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}))
    assert pay.calls == []
    info = stage.question(ApprovalInfo)
    assert info.counted == ()
    await stage.answer(info.approve())
    assert (stage.refusals, pay.calls) == ((), [{"x": 6}])
