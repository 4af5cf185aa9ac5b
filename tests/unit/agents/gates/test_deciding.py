"""What a gate's own state and words carry from the question to the run, and what breaks it off."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import pytest

from agents.core.asking.answers import Cancelled, Expired
from agents.core.asking.infos import ApprovalInfo, CallInfo, FollowUpInfo, ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json, decode, encode, register
from agents.core.errors import ToolError
from agents.core.observers import ToolOutcome
from agents.core.scope import current_scope
from agents.gates import approval_gate, policy_gate, review_edit_gate
from agents.gates.base import CallGate
from agents.gates.decorator import tool
from agents.gates.rulings import GateState
from agents.policy import Ask, PolicyCall, Ruling
from tests.unit.agents.stage import Stage, asked, asking_tool
from tests.unit.agents.support import Plain

SAME = Ask(kind="review", rule="same")


@dataclass(frozen=True, slots=True)
class HalfGate(CallGate):
    """Asks for a review, but lets pass `x` of 0, and ends the call by itself when `x` is 1 or 3."""

    gate_name = "half"

    async def _question(self, arguments: dict[str, Json]) -> CallInfo | ToolReturn | None:
        if arguments["x"] == 0:
            return None
        if arguments["x"] in {1, 3}:
            return ToolReturn("odd", ToolOutcome.REFUSED)
        return ReviewEditInfo(**self._shown(arguments, "half"))


@dataclass
class Titled:
    """A policy with one ruling for each call, whose cards can be told apart by their titles."""

    title: str

    async def evaluate(self, _: PolicyCall) -> Ruling:
        return replace(SAME, title=self.title)


async def test_a_tool_that_takes_other_arguments_now_runs_nothing() -> None:
    ran: list[object] = []

    @tool(name="pay")
    def before(x: int) -> str:
        """Pay."""
        raise NotImplementedError

    @tool(name="pay")
    def now(x: int, currency: str = "EUR") -> str:
        """Pay."""
        ran.append((x, currency))
        return "paid"

    stage = await asked(approval_gate(before))
    info = stage.question(ApprovalInfo)
    stage.tool = approval_gate(now)

    assert await stage.answer(info.approve()) is None
    assert ran == []
    assert str(stage.refusals[0]) == (
        "'pay' did not run: the tool does not take the arguments any more that people saw; "
        "start the version that asked, or cancel and ask again"
    )


# ---- a question that ends the call ---------------------------------------------------------------


async def test_a_gate_that_would_end_the_edited_call_refuses_the_edit() -> None:
    pay = Plain("pay")
    stage = await asked(HalfGate(pay))
    info = stage.question(ReviewEditInfo)
    assert await stage.answer(info.edit({"x": 3}, by="UADA")) is None
    assert [str(refusal) for refusal in stage.refusals] == ["'pay' did not run: odd"]
    assert isinstance(await stage.answer(stage.question(ReviewEditInfo).accept()), ToolReturn)
    assert pay.calls == [{"x": 5}]


async def test_a_gate_around_that_would_end_the_edited_call_refuses_the_edit() -> None:
    pay = Plain("pay")
    stage = await asked(HalfGate(review_edit_gate(pay)))
    await stage.answer(stage.question(ReviewEditInfo).accept(by="UMIA"))
    assert await stage.answer(stage.question(ReviewEditInfo).edit({"x": 3}, by="UADA")) is None
    assert [str(refusal) for refusal in stage.refusals] == ["'pay' did not run: odd"]
    assert pay.calls == []


async def test_a_gate_of_ones_own_lets_pass_what_it_does_not_ask_about() -> None:
    pay = Plain("pay")
    assert await Stage(HalfGate(pay), {"x": 0}).run() is not None
    assert pay.calls == [{"x": 0}]


async def test_a_question_that_ends_the_call_is_its_result() -> None:
    pay = Plain("pay")
    result = await Stage(HalfGate(pay), {"x": 3}).run()
    assert (result, pay.calls) == (ToolReturn("odd", ToolOutcome.REFUSED), [])


# ---- words that name the tool --------------------------------------------------------------------


# ---- what is kept --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forged", [{"arguments": None}, {"digest": ""}, {"arguments": {"x": 7}}, {"approved": False}]
)
async def test_an_agreement_that_was_tampered_with_runs_nothing(forged: dict[str, object]) -> None:
    ran: list[int] = []
    stage = await asked(approval_gate(asking_tool(ran)))
    assert await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA")) is None
    assert stage.point is not None
    state = decode(stage.point.state)
    assert isinstance(state, GateState)
    stage.point = replace(stage.point, state=encode(replace(state, **forged)))  # type: ignore[arg-type]
    if forged == {"approved": False}:
        assert await stage.run() is None
        assert stage.question(ApprovalInfo).arguments == {"x": 5}
    else:
        with pytest.raises(ToolError, match="nobody agreed to this call of 'pay'"):
            await stage.run({"i1": "yes"})
    assert ran == []


async def test_nothing_runs_in_a_gate_without_an_agreement_even_with_a_digest_that_fits() -> None:
    pay = Plain("pay")
    gate = approval_gate(pay)
    stage = await asked(gate)
    info = stage.question(ApprovalInfo)

    @dataclass(frozen=True, slots=True)
    class Forged(CallGate):
        gate_name = "approval"

        async def _question(self, arguments: dict[str, Json]) -> None:
            return None

        async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
            state = GateState(arguments=arguments, digest=self._digest_of(info, arguments))
            return await self._run(replace(state, info=info), current_scope("a test"))

    with pytest.raises(ToolError, match="nobody agreed"):
        await Stage(Forged(pay), {"x": 5}).run()
    assert pay.calls == []


async def test_a_question_whose_info_was_kept_in_the_state_long_ago_is_answered() -> None:
    pay = Plain("pay")
    stage = await asked(approval_gate(pay))
    assert stage.point is not None
    info = stage.question(ApprovalInfo)
    stage.point = replace(stage.point, info="May it run?", state=encode(GateState(info=info)))
    await stage.answer(info.approve(by="UMIA"))
    assert pay.calls == [{"x": 5}]


@register("test.bare_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class BareInfo(CallInfo):
    """Shows a call, and does not say which answers it takes."""


@pytest.mark.parametrize("is_call", [True, False])
async def test_a_question_that_could_not_be_a_gates_own_runs_nothing(is_call: bool) -> None:
    pay = Plain("pay")
    stage = await asked(approval_gate(pay))
    assert stage.point is not None
    info = stage.question(ApprovalInfo)
    shown = {field.name: getattr(info, field.name) for field in fields(CallInfo)}
    other = BareInfo(**shown) if is_call else FollowUpInfo(questions=("who?",))
    stage.point = replace(stage.point, info=other)
    with pytest.raises(ToolError, match="the gate of 'pay' has lost what it asked; nothing ran"):
        await stage.answer("yes")
    assert pay.calls == []


# ---- whose answer counts -------------------------------------------------------------------------


async def test_an_edit_for_a_gate_around_counts_for_that_one() -> None:
    """Both demand the same: only the title tells them apart."""
    pay = Plain("pay")
    stage = await asked(policy_gate(policy_gate(pay, Titled("inner")), Titled("outer")))
    await stage.answer(stage.question(ReviewEditInfo).accept(by="UMIA"))
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 7}, by="UADA"))
    assert (stage.question(ReviewEditInfo).title, pay.calls) == ("outer", [])
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 8}, by="UBEN"))
    assert stage.question(ReviewEditInfo).title == "inner"
    await stage.answer(stage.question(ReviewEditInfo).accept(by="UADA"))
    assert pay.calls == [{"x": 8}]


async def test_f6_a_question_from_before_anybody_was_counted_still_needs_two() -> None:
    pay = Plain("pay")
    stage = await asked(approval_gate(review_edit_gate(pay)))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    assert stage.point is not None
    (inner,) = stage.point.children
    info = stage.question(ReviewEditInfo)
    assert info.counted == ("UMIA",)
    old = replace(inner, info=replace(info, counted=()))
    stage.point = replace(stage.point, children=(old,))
    assert await stage.answer(info.accept(by="UMIA")) is None
    assert [str(refusal) for refusal in stage.refusals] == [
        "'pay' did not run: UMIA has agreed in another gate of this call, which needs two"
    ]
    assert pay.calls == []


async def test_what_ends_a_question_names_the_tool_and_runs_nothing() -> None:
    for answer, text, outcome in (
        (
            Cancelled(),
            "The request was cancelled; the call to 'pay' did not run. This is not a rejection.",
            ToolOutcome.CANCELLED,
        ),
        (
            Expired(),
            "Nobody answered in time; the call to 'pay' did not run. This is not a rejection.",
            ToolOutcome.EXPIRED,
        ),
    ):
        pay = Plain("pay")
        stage = await asked(approval_gate(pay))
        assert await stage.answer(answer) == ToolReturn(text, outcome)
        assert pay.calls == []


def test_a_gate_is_the_same_whether_or_not_it_was_read() -> None:
    pay = asking_tool([])
    gate = approval_gate(pay)
    assert gate.definition is gate.definition
    assert gate == approval_gate(pay)
    assert repr(gate) == repr(approval_gate(pay))


def test_a_gate_says_of_its_tool_what_is_true_now() -> None:
    pay = Plain("pay")
    gate = approval_gate(pay)
    for inner in ((), ("inner",)):
        pay.gates = inner
        assert gate.definition.gates == ("approval", *inner)
