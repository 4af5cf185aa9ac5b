"""What a gate's own state and words carry from the question to the run, and what breaks it off."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import pytest

from agents.core.asking.answers import Cancelled, Expired, ReviewEditResult
from agents.core.asking.infos import ApprovalInfo, CallInfo, FollowUpInfo, ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json, decode, encode, register
from agents.core.component.state import get_resume_context
from agents.core.errors import ToolError
from agents.core.interrupt import interrupt
from agents.core.observers import ToolOutcome
from agents.core.scope import AskAgain, StartingCall, current_scope
from agents.gates import approval_gate, policy_gate, review_edit_gate
from agents.gates.base import CallGate
from agents.gates.decorator import tool
from agents.gates.rulings import GateState
from agents.policy import Ask, Deny, PolicyCall, Ruling
from agents.tools import Tool
from tests.unit.agents.stage import Stage
from tests.unit.agents.support import Plain

SAME = Ask(kind="review", rule="same")


@dataclass(frozen=True, slots=True)
class HalfGate(CallGate):
    """Asks for a review, but ends the call by itself when `x` is odd."""

    gate_name = "half"

    async def _question(self, arguments: dict[str, Json]) -> CallInfo | ToolReturn | None:
        if arguments["x"] in {1, 3, 5}:
            return ToolReturn("odd", ToolOutcome.REFUSED)
        return ReviewEditInfo(**self._shown(arguments, "half"))


@dataclass
class Titled:
    """A policy with one ruling for each call, whose cards can be told apart by their titles."""

    title: str

    async def evaluate(self, _: PolicyCall) -> Ruling:
        return replace(SAME, title=self.title)


async def asked(made: Tool, arguments: dict[str, Json] | None = None) -> Stage:
    stage = Stage(made, arguments or {"x": 6})
    assert await stage.run() is None
    return stage


def edited(info: ReviewEditInfo, x: int, by: str) -> ReviewEditResult:
    return info.edit({"x": x}, by=by)


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
    assert await stage.answer(edited(info, 5, "UADA")) is None
    assert [str(refusal) for refusal in stage.refusals] == ["'pay' did not run: odd"]
    assert isinstance(await stage.answer(stage.question(ReviewEditInfo).accept()), ToolReturn)
    assert pay.calls == [{"x": 6}]


async def test_a_gate_around_that_would_end_the_edited_call_refuses_the_edit() -> None:
    pay = Plain("pay")
    stage = await asked(HalfGate(review_edit_gate(pay)))
    await stage.answer(stage.question(ReviewEditInfo).accept(by="UMIA"))
    assert await stage.answer(edited(stage.question(ReviewEditInfo), 5, "UADA")) is None
    assert [str(refusal) for refusal in stage.refusals] == ["'pay' did not run: odd"]
    assert pay.calls == []


async def test_a_question_that_ends_the_call_is_its_result() -> None:
    pay = Plain("pay")
    result = await Stage(HalfGate(pay), {"x": 5}).run()
    assert (result, pay.calls) == (ToolReturn("odd", ToolOutcome.REFUSED), [])


# ---- words that name the tool --------------------------------------------------------------------


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


async def test_rules_that_changed_before_the_start_end_the_call_by_its_name() -> None:
    rulings: list[Ruling] = [SAME, Deny("too late.")]

    @dataclass
    class OneByOne:
        async def evaluate(self, _: PolicyCall) -> Ruling:
            return rulings.pop(0)

    async def watch(_: StartingCall) -> AskAgain:
        return AskAgain("too old")

    pay = Plain("pay")
    stage = await asked(policy_gate(pay, OneByOne()))
    stage.before_start = watch
    assert await stage.answer(stage.question(ReviewEditInfo).accept()) == ToolReturn(
        "The rules here do not allow this call of 'pay'; nothing ran. Reason: the rules do not "
        "allow the call with these arguments: too late.\n"
        "Do not try the same call again or work around it.",
        ToolOutcome.REFUSED,
    )
    assert pay.calls == []


# ---- what is kept --------------------------------------------------------------------------------


def asking_tool(ran: list[int]) -> Tool:
    async def pay(x: int) -> str:
        """Pay."""
        if not get_resume_context(str)[1]:
            interrupt("sure?")
        ran.append(x)
        return "paid"

    return tool(pay)


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
        assert stage.question(ApprovalInfo).arguments == {"x": 6}
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
        await Stage(Forged(pay), {"x": 6}).run()
    assert pay.calls == []


async def test_what_people_were_shown_is_stored_once() -> None:
    stage = await asked(approval_gate(asking_tool([])))
    for answer in (None, stage.question(ApprovalInfo).approve(by="UMIA")):
        if answer is not None:
            await stage.answer(answer)
        assert stage.point is not None
        state = decode(stage.point.state)
        assert isinstance(state, GateState)
        assert (stage.point.info is not None, state.info) == (True, None)


async def test_a_question_whose_info_was_kept_in_the_state_long_ago_is_answered() -> None:
    pay = Plain("pay")
    stage = await asked(approval_gate(pay))
    assert stage.point is not None
    info = stage.question(ApprovalInfo)
    stage.point = replace(stage.point, info="May it run?", state=encode(GateState(info=info)))
    await stage.answer(info.approve(by="UMIA"))
    assert pay.calls == [{"x": 6}]


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


async def test_asked_anew_by_itself_a_gate_names_who_agreed_around_it_even_to_other_rules() -> None:
    pay = Plain("pay")
    before, after = Ask(rule="before"), Ask(rule="after")
    rulings: list[Ruling] = [before, after, after]

    @dataclass
    class Shifting:
        async def evaluate(self, _: PolicyCall) -> Ruling:
            return rulings.pop(0)

    stage = await asked(policy_gate(policy_gate(pay, Titled("inner")), Shifting()))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UBEN"))
    info = stage.question(ReviewEditInfo)
    ruling = Ask(rule="other").to_text()
    other = ReviewEditResult(
        edited_arguments={"x": 6},
        digest=info.digest_of({"x": 6}, ruling=ruling),
        ruling=ruling,
        by="UADA",
    )
    assert await stage.answer(other) is None
    again = stage.question(ReviewEditInfo)
    assert (again.title, again.counted, pay.calls) == ("inner", ("UBEN",), [])


# ---- what a gate knows when it is judged ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgedGate(CallGate):
    """Judges a waiting call as soon as it is called again; remembers what it knew of it."""

    gate_name = "judged"
    called: list[dict[str, Json]] = field(default_factory=list)
    seen: list[CallInfo | None] = field(default_factory=list)

    async def _question(self, arguments: dict[str, Json]) -> CallInfo:
        return ReviewEditInfo(**self._shown(arguments, "judged"))

    async def demand(
        self, arguments: dict[str, Json], before: GateState, *, inside: bool
    ) -> CallInfo:
        self.seen.append(before.info)
        return await self._question(arguments)

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        self.called.append(arguments)
        if len(self.called) == 1:
            return await CallGate.call(self, arguments)
        await self.judge({"x": 7})
        return "judged"


@pytest.mark.parametrize("is_old", [False, True])
async def test_a_gate_that_is_judged_knows_what_people_were_shown(is_old: bool) -> None:
    gate = JudgedGate(Plain("pay"))
    stage = await asked(gate)
    assert stage.point is not None
    info = stage.question(ReviewEditInfo)
    if is_old:
        state = encode(GateState(info=info))
        stage.point = replace(stage.point, info="May it run?", state=state)
    assert await stage.run() == ToolReturn("judged")
    assert gate.seen == [info]
