"""For whom an answer counts when several gates stand around a call, or several gave it (I13)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from agents import MemoryCheckpointStore, Runner, address_segment, make_message
from agents.agent import AgentEvent, AgentInput, function_agent
from agents.core.asking.answers import ApprovalResult, InDoubtResult, ReviewEditResult
from agents.core.asking.infos import ApprovalInfo, ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.errors import AgentConfigError, ToolError
from agents.gates import approval_gate, human_gate, policy_gate, review_edit_gate
from agents.gates.approval import PolicyGate
from agents.gates.complete import fill_arguments
from agents.gates.decorator import tool
from agents.gates.human import HumanInterrupt, HumanInterruptConfig, HumanResponse
from agents.gates.questions import ParametersInfo
from agents.policy import Allow, Ask, PolicyCall, Ruling
from agents.tools import Tool
from tests.unit.agents.house import ByAmount
from tests.unit.agents.stage import asked, edited
from tests.unit.agents.support import Plain, Watchman, collect

MIA = Ask(rule="big", approvers=("UMIA",))
ANYBODY = Ask(kind="review", rule="small")
NOT_THE_EDITOR = replace(ANYBODY, exclude_editors=True)


@dataclass
class Changing:
    """A policy whose rulings come one after the other."""

    rulings: list[Ruling]

    async def evaluate(self, _: PolicyCall) -> Ruling:
        return self.rulings.pop(0)


def to_whom(paid: list[tuple[int, str]]) -> Tool:
    @tool
    def pay(x: int, to: str) -> str:
        """Pay."""
        paid.append((x, to))
        return "paid"

    return pay


@pytest.mark.parametrize("rule", ["always", "dear"])
async def test_what_a_gate_asks_is_bound_to_its_own_rule_and_kind(rule: str) -> None:
    approval = await asked(approval_gate(Plain("pay"), rule=rule))
    review = await asked(review_edit_gate(Plain("pay"), rule=rule))
    for info, kind in (
        (approval.question(ApprovalInfo), "approval"),
        (review.question(ReviewEditInfo), "review"),
    ):
        assert (info.rule, info.ruling) == (rule, Ask(rule=rule).to_text(kind=kind))


async def test_an_edit_that_was_approved_outside_counts_when_an_argument_is_filled_in() -> None:
    paid: list[tuple[int, str]] = []
    policy = ByAmount({5: ANYBODY, 6: MIA})
    stage = await asked(PolicyGate(fill_arguments(to_whom(paid), ["to"]), policy))
    info = stage.question(ReviewEditInfo)
    edit = edited(info, 6, ruling=MIA.to_text(), by="UMIA", edited_by="UADA")
    assert await stage.answer(edit) is None
    await stage.answer(stage.question(ParametersInfo).complete({"to": "Ben"}, by="UBEN"))
    assert (stage.refusals, paid) == ((), [(6, "Ben")])


async def test_edit_by_nobody_in_particular_is_asked_about_again_and_then_runs() -> None:
    pay = Plain("pay")
    stage = await asked(policy_gate(pay, ByAmount({5: NOT_THE_EDITOR, 6: NOT_THE_EDITOR})))
    assert await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6})) is None
    assert pay.calls == []
    assert isinstance(await stage.answer(stage.question(ReviewEditInfo).accept()), ToolReturn)
    assert pay.calls == [{"x": 6}]


async def test_two_who_are_not_named_are_not_taken_for_one() -> None:
    pay = Plain("pay")
    stage = await asked(policy_gate(review_edit_gate(pay), ByAmount({5: MIA, 6: MIA})))
    await stage.answer(stage.question(ApprovalInfo).approve())
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}))
    assert pay.calls == []
    info = stage.question(ApprovalInfo)
    assert info.counted == ()
    await stage.answer(info.approve())
    assert (stage.refusals, pay.calls) == ((), [{"x": 6}])


async def test_f6_who_agreed_outside_does_not_decide_for_a_gate_that_asks_later() -> None:
    paid: list[tuple[int, str]] = []
    strangers = HumanInterruptConfig(when=lambda call: call.arguments.get("to") == "Eve")
    made = approval_gate(human_gate(fill_arguments(to_whom(paid), ["to"]), strangers))
    stage = await asked(made)
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    await stage.answer(stage.question(ParametersInfo).complete({"to": "Eve"}, by="UADA"))
    info = stage.question(HumanInterrupt)
    assert info.counted == ("UMIA", "UADA")
    for name in info.counted:
        assert f"{name} has agreed in another gate" in str(
            await stage.refused(info.accept(by=name))
        )
    assert paid == []
    await stage.answer(info.accept(by="UBEN"))
    assert paid == [(5, "Eve")]


async def test_asked_again_about_the_same_call_it_names_who_agreed_around_it() -> None:
    pay, dear = Plain("pay"), replace(MIA, kind="review")
    stage = await asked(approval_gate(policy_gate(pay, ByAmount({5: dear, 6: ANYBODY}))))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UBEN"))
    info = stage.question(ReviewEditInfo)
    other = edited(info, 5, ruling=ANYBODY.to_text(), by="UADA")
    assert await stage.answer(other) is None
    again = stage.question(ReviewEditInfo)
    assert (again.counted, again.asked_again) == (("UBEN",), "")
    await stage.answer(again.accept(by="UMIA"))
    assert pay.calls == [{"x": 5}]


async def test_f7_decisions_on_what_was_edited_away_do_not_start_the_call() -> None:
    pay, watch = Plain("pay"), Watchman()
    stage = await asked(policy_gate(pay, ByAmount(dict.fromkeys((5, 6, 7), NOT_THE_EDITOR))))
    stage.before_start = watch
    ids = [stage.asked.id]
    for x in (6, 7):
        await stage.answer(stage.question(ReviewEditInfo).edit({"x": x}, by="UADA"))
        ids.append(stage.asked.id)
    await stage.answer(stage.question(ReviewEditInfo).accept(by="UBEN"))
    assert pay.calls == [{"x": 7}]
    assert [call.decisions for call in watch.seen] == [tuple(ids[1:])]


@dataclass
class Curious:
    """A policy that keeps the calls that it was asked about, and tampers with them."""

    calls: list[PolicyCall]

    async def evaluate(self, call: PolicyCall) -> Ruling:
        self.calls.append(call)
        to = call.arguments["to"]
        assert isinstance(to, list)
        to.append("Eve")
        return MIA


async def test_a_policy_sees_the_call_as_it_is_and_cannot_change_it() -> None:
    paid: list[list[str]] = []

    @tool
    def pay(to: list[str]) -> str:
        """Pay."""
        paid.append(to)
        return "paid"

    policy = Curious([])
    guarded = policy_gate(pay, policy)

    async def by_hand(_: AgentInput) -> AsyncIterator[AgentEvent]:
        with address_segment("node", "till", "n1"), address_segment("tool", "pay", "c1"):
            yield make_message(str(await guarded.call({"to": ["Ben"]})))

    runner = Runner(function_agent("A", by_hand), checkpoint_store=MemoryCheckpointStore())
    await collect(runner.query("hi", checkpoint_id="1", session_values={"team": "billing"}))
    (seen,) = policy.calls
    assert (seen.call_id, dict(seen.session)) == ("c1", {"team": "billing"})
    (waiting,) = await runner.pending("1")
    assert isinstance(waiting.info, ApprovalInfo)
    assert waiting.info.call_id == "c1"
    assert waiting.info.arguments == {"to": ["Ben"]}
    await collect(runner.resume("1", {waiting.id: waiting.info.approve(by="UMIA")}))
    assert paid == [["Ben"]]


async def test_who_agreed_for_a_gate_may_agree_again_to_what_was_filled_in() -> None:
    @dataclass
    class ByName:
        async def evaluate(self, call: PolicyCall) -> Ruling:
            return replace(MIA, rule="strangers") if "to" in call.arguments else MIA

    paid: list[tuple[int, str]] = []
    stage = await asked(PolicyGate(fill_arguments(to_whom(paid), ["to"]), ByName()))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    await stage.answer(stage.question(ParametersInfo).complete({"to": "Eve"}, by="UADA"))
    info = stage.question(ApprovalInfo)
    assert (info.rule, info.counted, paid) == ("strangers", ("UADA",), [])
    await stage.answer(info.approve(by="UMIA"))
    assert paid == [(5, "Eve")]


async def test_f7_lapse_after_a_second_approval_still_shows_the_first_call() -> None:
    pay = Plain("pay")
    stage = await asked(policy_gate(pay, ByAmount({5: ANYBODY, 6: MIA})))
    stage.before_start = Watchman(["too old"])
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}, by="UADA"))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    info = stage.question(ApprovalInfo)
    assert (info.original, info.asked_again, pay.calls) == ({"x": 5}, "too old", [])
    result = await stage.answer(info.approve(by="UMIA"))
    assert isinstance(result, ToolReturn)
    assert result.said in result.text
    assert (result.said, pay.calls) == (await Plain("pay").call({"x": 6}), [{"x": 6}])


async def test_a_question_of_a_gate_that_is_gone_runs_nothing() -> None:
    pay = Plain("pay")
    inner = review_edit_gate(pay)
    stage = await asked(policy_gate(inner, ByAmount({5: MIA, 6: MIA})))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}, by="UBEN"))
    answer = stage.question(ApprovalInfo).approve(by="UMIA")
    stage.tool = inner
    with pytest.raises(ToolError, match="nothing ran"):
        await stage.answer(answer)
    assert pay.calls == []


async def test_what_is_declared_secret_is_noted_with_the_start() -> None:
    for reasons in ([], ["too old"]):
        watch = Watchman(reasons)

        @tool(secret=["pin"])
        def pay(pin: str) -> str:
            """Pay."""
            return "paid"

        policy = Changing([MIA, Allow()])
        stage = await asked(policy_gate(pay, policy), {"pin": "1234"})
        stage.before_start = watch
        await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
        start = watch.seen[-1]
        assert (start.arguments, start.secret) == ({"pin": "1234"}, ("pin",))


# ---- several who were counted for one answer -----------------------------------------------------


@pytest.mark.parametrize("voters", [("UMIA",), ("UBEN", "UMIA")])
async def test_nobody_who_was_counted_outside_counts_inside(voters: tuple[str, ...]) -> None:
    pay = Plain("pay")
    stage = await asked(approval_gate(review_edit_gate(pay)))
    outer = replace(stage.question(ApprovalInfo).approve(by="UADA"), voters=("UADA", "UMIA"))
    assert await stage.answer(outer) is None
    yes = replace(stage.question(ReviewEditInfo).accept(by="UBEN"), voters=voters)
    assert "UMIA has agreed in another gate" in str(await stage.refused(yes))
    assert pay.calls == []


@pytest.mark.parametrize(
    ("voters", "runs"), [(("UBEN", "USAM"), True), (("UBEN", "UADA"), False), ((), False)]
)
async def test_an_editor_among_the_voters_of_an_edit_does_not_count_where_it_is_excluded(
    voters: tuple[str, ...], runs: bool
) -> None:
    pay = Plain("pay")
    stage = await asked(policy_gate(pay, ByAmount({5: NOT_THE_EDITOR, 6: NOT_THE_EDITOR})))
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


def test_a_risk_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AgentConfigError, match="use 'low', 'medium', 'high', 'critical'"):

        @tool(risk="huge")  # type: ignore[call-overload, untyped-decorator]
        def wipe() -> None:
            """Wipe."""
