"""Gates: nothing runs without a decision, and what was shown is what runs (I1, I2, I9)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Annotated

import pytest
from pydantic import Field

from agents import MemoryCheckpointStore, Runner, address_segment, make_message
from agents.agent import AgentEvent, AgentInput, function_agent
from agents.core.asking.answers import (
    ApprovalResult,
    Cancelled,
    Denied,
    NoApprovers,
    ReviewEditResult,
    Withdrawn,
)
from agents.core.asking.infos import ApprovalInfo, ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json, decode, encode
from agents.core.errors import InvalidArgumentsError, ResumeDataError, ToolError
from agents.core.observers import ToolOutcome
from agents.core.tools import Tool
from agents.gates.approval import approval_gate, review_edit_gate
from agents.gates.decorator import tool
from agents.gates.rulings import GateState
from tests.unit.agents.stage import Stage, asked, asking_tool
from tests.unit.agents.support import collect, yes

PAY: dict[str, Json] = {"order": "o1", "euros": 5}
FULL: dict[str, Json] = {**PAY, "note": None, "notify": True}


class Till:
    """Remembers what ran."""

    def __init__(self) -> None:
        self.paid: list[dict[str, Json]] = []

    async def pay(
        self,
        order: str,
        euros: Annotated[int, Field(ge=1)],
        note: str | None = None,
        notify: bool = True,
    ) -> str:
        """Pay money."""
        self.paid.append({"order": order, "euros": euros, "note": note, "notify": notify})
        return f"{euros} EUR paid"

    def stage(self, gate: str, why: str = "") -> Stage:
        words = tool(title="Pay {euros} EUR", preview=lambda euros, **_: f"{euros} EUR leave.")
        wrap = approval_gate if gate == "approval" else review_edit_gate
        return Stage(wrap(words(self.pay)), PAY, why)


@pytest.fixture
def till() -> Till:
    return Till()


def twice_gated(plain: Tool) -> Tool:
    return approval_gate(review_edit_gate(plain))


def by_hand(gated: Tool, arguments: dict[str, Json]) -> Runner:
    """Runs an agent that calls a tool itself: what the runtime calls, it has checked before."""

    async def run(_: AgentInput) -> AsyncIterator[AgentEvent]:
        with address_segment("tool", "pay", "c1"):
            yield make_message(str(await gated.call(arguments)))

    return Runner(function_agent("A", run), checkpoint_store=MemoryCheckpointStore())


async def approval(till: Till) -> tuple[Stage, ApprovalInfo]:
    stage = till.stage("approval", "They asked.")
    assert await stage.run() is None
    return stage, stage.question(ApprovalInfo)


async def review(till: Till) -> tuple[Stage, ReviewEditInfo]:
    stage = till.stage("review")
    assert await stage.run() is None
    return stage, stage.question(ReviewEditInfo)


async def test_gate_asks_before_it_runs_anything(till: Till) -> None:
    stage, info = await approval(till)
    assert till.paid == []
    assert not stage.started
    assert info.tool_name == "pay"
    assert info.arguments == FULL
    assert info.call_id == "c1"
    assert info.title == "Pay 5 EUR"
    assert info.why == "They asked."
    assert info.preview == "5 EUR leave."
    assert info.rule == "always"
    assert info.thread == "t1"
    assert info.address == "agent:A;tool:pay:c1"
    assert info.schema == stage.tool.definition.schema
    assert info.digest == info.digest_of(FULL)
    assert str(info) == "Pay 5 EUR: may this call of 'pay' run?"


@pytest.mark.parametrize("gate", [approval_gate, review_edit_gate, twice_gated])
@pytest.mark.parametrize("arguments", [{}, {**PAY, "euros": 0}, {**PAY, "euros": "many"}])
async def test_nobody_is_asked_about_a_call_that_could_not_run(
    till: Till, gate: Callable[[Tool], Tool], arguments: dict[str, Json]
) -> None:
    runner = by_hand(gate(tool(till.pay)), arguments)
    with pytest.raises(InvalidArgumentsError, match="the arguments do not fit"):
        await collect(runner.query("hi", checkpoint_id="1"))
    assert await runner.pending("1") == ()


async def test_a_call_by_hand_is_shown_with_its_defaults_and_runs_so(till: Till) -> None:
    runner = by_hand(approval_gate(tool(till.pay)), dict(PAY))
    await collect(runner.query("hi", checkpoint_id="1"))
    (asked,) = await runner.pending("1")

    assert isinstance(asked.info, ApprovalInfo)
    assert asked.info.arguments == FULL
    await collect(runner.resume("1", {asked.id: asked.info.approve()}))
    assert till.paid == [FULL]


@pytest.mark.parametrize(
    ("tags", "leaves"), [(["external"], True), (["money"], False), ([], False)]
)
async def test_a_tool_can_say_that_its_call_is_seen_outside(
    till: Till, tags: list[str], leaves: bool
) -> None:
    stage = await asked(approval_gate(tool(tags=tags)(till.pay)), PAY)
    assert stage.question(ApprovalInfo).leaves is leaves


async def test_rejected_runs_nothing_and_tells_the_reason(till: Till) -> None:
    stage, info = await approval(till)
    result = await stage.result(info.reject("too much", by="U1"))
    assert result.outcome is ToolOutcome.REJECTED
    assert "Rejected by a person; the call to 'pay' did not run. Reason: too much" in result.text
    assert "U1" not in result.text
    assert till.paid == []
    assert not stage.started


@pytest.mark.parametrize(
    ("answer", "fact"),
    [
        (Withdrawn(by="U1", reason="use 6"), "The request was withdrawn by the requester"),
        (Denied(reason="use 6"), "A rule denies this request by now"),
        (NoApprovers(reason="use 6"), "Nobody can decide this request, so nobody was asked"),
        (Cancelled(reason="use 6"), "The request was cancelled; the call to 'pay' did not run."),
    ],
)
async def test_i9_withdrawn_and_undecidable_are_facts_of_their_own(
    till: Till, answer: Cancelled, fact: str
) -> None:
    stage, _ = await review(till)
    assert decode(encode(answer)) == answer
    result = await stage.result(answer)
    assert result.outcome is ToolOutcome.CANCELLED
    assert result.text.startswith(fact)
    assert result.text.endswith("This is not a rejection. Reason: use 6")
    assert till.paid == []


@pytest.mark.parametrize(
    ("gate", "answer"),
    [
        ("approval", {"approved": True}),
        ("approval", ApprovalResult(approved=True)),
        ("approval", ApprovalResult(approved=True, digest="")),
        ("approval", ApprovalResult(approved=True, digest="0" * 64)),
        ("approval", ReviewEditResult(no_need_to_edit=True)),
        ("review", "no need to edit"),
        ("review", ReviewEditResult()),
        ("review", ReviewEditResult(no_need_to_edit=True)),
        ("review", ReviewEditResult(edited_arguments=FULL)),
        ("review", ReviewEditResult(edited_arguments=FULL, digest="0" * 64)),
        ("review", ApprovalResult(approved=True)),
    ],
)
async def test_wrong_answer_never_runs(till: Till, gate: str, answer: object) -> None:
    stage = till.stage(gate)
    await stage.run()
    assert isinstance(await stage.refused(answer), ResumeDataError)
    assert till.paid == []
    assert await stage.answer(yes(stage.asked)) is not None


async def test_digest_of_another_thread_never_runs(till: Till) -> None:
    stage, info = await approval(till)
    stage.thread = "t2"
    assert "changed since people were asked" in str(await stage.refused(info.approve()))
    assert till.paid == []


async def test_other_arguments_than_shown_never_run(till: Till) -> None:
    stage, info = await approval(till)
    stage.arguments = {"order": "o1", "euros": 5000}
    assert await stage.answer(info.approve()) == ToolReturn("5 EUR paid")


async def test_changed_rule_refuses_to_run_and_can_still_be_rejected(till: Till) -> None:
    stage, info = await approval(till)
    stage.tool = approval_gate(tool(till.pay), rule="money")
    assert await stage.answer(info.approve()) is None
    assert till.paid == []
    result = await stage.result(info.reject())
    assert result.outcome is ToolOutcome.REJECTED


async def test_edited_arguments_are_what_runs_and_the_model_is_told(till: Till) -> None:
    stage, info = await review(till)
    edited: dict[str, Json] = {**FULL, "euros": 4, "note": "für Ü"}
    result = await stage.answer(info.edit(edited))
    assert till.paid == [edited]
    assert result is not None
    assert result.text.startswith("A person changed the arguments to {")
    assert '"note": "für Ü"' in result.text
    assert result.text.endswith("The tool ran with these. Result: 4 EUR paid")


@pytest.mark.parametrize(
    ("edited", "fault"),
    [
        ({**FULL, "euros": 0}, "euros"),
        ({**FULL, "euros": "many"}, "euros"),
        ({**FULL, "to": "me"}, "to"),
        ({}, "order"),
        ({"order": "o1", "euros": 5}, "leave out notify"),
    ],
)
async def test_edit_that_does_not_fit_is_refused_and_can_be_repeated(
    till: Till, edited: dict[str, Json], fault: str
) -> None:
    stage, info = await review(till)
    assert fault in str(await stage.refused(info.edit(edited)))
    assert till.paid == []
    assert await stage.answer(info.edit({**FULL, "euros": 3})) is not None
    assert [paid["euros"] for paid in till.paid] == [3]


async def test_rejection_beats_acceptance_beats_edit(till: Till) -> None:
    stage, info = await review(till)
    both = replace(info.edit({**FULL, "euros": 1}), no_need_to_edit=True, digest=info.digest)
    assert await stage.answer(replace(both, disapproved=True)) is not None
    assert till.paid == []
    stage, _ = await review(till)
    await stage.answer(both)
    assert till.paid == [FULL]


async def test_lost_state_runs_nothing(till: Till) -> None:
    stage, info = await approval(till)
    assert stage.point is not None
    stage.point = replace(stage.point, state="what?")
    with pytest.raises(ToolError, match="has lost what it asked"):
        await stage.answer(info.approve())
    assert till.paid == []


async def test_state_that_was_tampered_with_runs_nothing(till: Till) -> None:
    stage, info = await approval(till)
    assert stage.point is not None
    forged = GateState(info=info, approved=True, arguments={**FULL, "euros": 9}, digest=info.digest)
    stage.point = replace(stage.point, state=encode(forged))
    with pytest.raises(ToolError, match="nobody agreed"):
        await stage.run()
    assert till.paid == []


async def test_edit_is_told_after_an_inner_question_too() -> None:
    stage = await asked(review_edit_gate(asking_tool([])), {"x": 1})
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 2}))
    assert stage.asked.info == "sure about 2?"
    result = await stage.result("yes")
    assert result.text.endswith("Result: 2: yes")
