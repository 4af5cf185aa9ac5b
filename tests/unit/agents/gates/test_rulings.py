"""Who has to agree to a call: after an edit, in several gates, and when a decision is old (I13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from agents.core.asking.infos import ApprovalInfo, CallInfo, ReviewEditInfo
from agents.core.component.state import get_interrupt_state
from agents.core.interrupt import interrupt
from agents.core.observers import ToolOutcome
from agents.core.scope import StartingCall
from agents.gates import approval_gate, human_gate, policy_gate, review_edit_gate
from agents.gates.choice import choose_argument
from agents.gates.complete import fill_arguments
from agents.gates.decorator import tool
from agents.gates.human import HumanInterrupt, HumanInterruptConfig
from agents.gates.questions import CallChoiceInfo, Choice, ParametersInfo
from agents.policy import Allow, Ask, Deny
from agents.tools import Tool
from tests.unit.agents.house import ByAmount
from tests.unit.agents.stage import Stage, asked, edited
from tests.unit.agents.support import Plain, Watchman

MIA = Ask(rule="big", approvers=("UMIA",))
ANYBODY = Ask(kind="review", rule="small")


# F1: whatever part of the ruling differs, the people of the new one are asked.
@pytest.mark.parametrize(
    "big",
    [
        replace(ANYBODY, approvers=("UMIA",)),
        replace(ANYBODY, backups=("UMIA",)),
        replace(ANYBODY, kind="approval"),
        replace(ANYBODY, rule="other"),
        replace(ANYBODY, reason="dear"),
        replace(ANYBODY, expires_in=timedelta(hours=1)),
        replace(ANYBODY, escalate_in=timedelta(hours=1)),
        replace(ANYBODY, exclude_editors=True),
    ],
)
async def test_f1_edit_into_another_ruling_asks_its_people(big: Ask) -> None:
    pay = Plain("pay")
    stage = await asked(policy_gate(pay, ByAmount({5: ANYBODY, 50000: big})))
    first = stage.asked.id
    assert await stage.answer(stage.question(ReviewEditInfo).edit({"x": 50000}, by="UADA")) is None
    assert pay.calls == []
    assert stage.refusals == ()
    assert stage.asked.id != first
    info = stage.question(CallInfo)
    assert info.ruling == big.to_text()
    assert (info.arguments, info.original, info.edited_by) == ({"x": 50000}, {"x": 5}, "UADA")
    assert (info.approvers, info.backups, info.reason) == (big.approvers, big.backups, big.reason)
    answer = info.approve(by="UMIA") if isinstance(info, ApprovalInfo) else info.accept(by="UMIA")  # type: ignore[attr-defined]
    assert await stage.answer(answer) is not None
    assert pay.calls == [{"x": 50000}]


@pytest.mark.parametrize(
    "same", [replace(ANYBODY, title="Other"), replace(ANYBODY, remind_in=timedelta(minutes=1))]
)
async def test_edit_within_one_ruling_is_the_editors_approval(same: Ask) -> None:
    pay = Plain("pay")
    stage = await asked(policy_gate(pay, ByAmount({5: ANYBODY, 6: same})))
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}, by="UADA"))
    assert pay.calls == [{"x": 6}]


async def test_approval_under_the_new_ruling_runs_at_once() -> None:
    pay = Plain("pay")
    stage = await asked(policy_gate(pay, ByAmount({5: ANYBODY, 50000: MIA})))
    info = stage.question(ReviewEditInfo)
    await stage.answer(edited(info, 50000, ruling=MIA.to_text(), by="UMIA", edited_by="UADA"))
    assert pay.calls == [{"x": 50000}]


async def test_approval_under_a_ruling_that_is_not_in_force_asks_anew() -> None:
    pay, policy = Plain("pay"), ByAmount({5: ANYBODY, 50000: replace(MIA, approvers=("USAM",))})
    stage = await asked(policy_gate(pay, policy))
    info = stage.question(ReviewEditInfo)
    await stage.answer(edited(info, 50000, ruling=MIA.to_text(), by="UMIA"))
    assert pay.calls == []
    assert stage.question(ApprovalInfo).approvers == ("USAM",)


async def test_decision_is_bound_to_its_ruling() -> None:
    stage = await asked(policy_gate(Plain("pay"), ByAmount({5: ANYBODY, 50000: MIA})))
    info, before = stage.question(ReviewEditInfo), stage.asked.id
    wrong = replace(edited(info, 50000, ruling=MIA.to_text()), digest=info.digest_of({"x": 50000}))
    for answer in (wrong, replace(wrong, ruling="{")):
        await stage.answer(answer)
        assert "not bound to what was shown" in str(stage.refusals[0])
    assert stage.asked.id == before


async def test_edit_back_to_what_was_shown_is_no_approval_of_it() -> None:
    pay, dear = Plain("pay"), replace(MIA, kind="review")
    stage = await asked(policy_gate(pay, ByAmount({5: dear, 6: ANYBODY})))
    info = stage.question(ReviewEditInfo)
    await stage.answer(edited(info, 5, ruling=ANYBODY.to_text(), by="UADA", edited_by="UADA"))
    assert pay.calls == []
    assert stage.question(ReviewEditInfo).approvers == ("UMIA",)
    await stage.answer(stage.question(ReviewEditInfo).accept(by="UMIA"))
    assert pay.calls == [{"x": 5}]


async def test_edit_that_the_tool_has_no_words_for_is_asked_about_and_runs() -> None:
    paid: list[int] = []

    def say_it(x: int) -> str:
        return {5: "five"}[x]

    @tool(preview=say_it)
    def pay(x: int) -> str:
        """Pay."""
        paid.append(x)
        return "paid"

    for then, asks in ((MIA, True), (ANYBODY, False)):
        paid.clear()
        stage = await asked(policy_gate(pay, ByAmount({5: ANYBODY, 6: then})))
        await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}, by="UADA"))
        assert bool(paid) is not asks
        if asks:
            info = stage.question(ApprovalInfo)
            assert (info.title, info.preview, info.arguments) == ("Run pay", "", {"x": 6})
            await stage.answer(info.approve(by="UMIA"))
        assert paid == [6]


async def test_rules_that_change_after_the_edit_count() -> None:
    pay, policy = Plain("pay"), ByAmount({5: ANYBODY, 6: MIA})
    stage = await asked(policy_gate(pay, policy))
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}, by="UADA"))
    policy.rulings = {6: Deny("not today")}
    waits = stage.asked.id
    assert "not today" in str(await stage.refused(stage.question(ApprovalInfo).approve(by="UMIA")))
    assert (pay.calls, stage.asked.id) == ([], waits)


async def test_excluded_are_all_who_edited() -> None:
    pay, rule = Plain("pay"), replace(ANYBODY, exclude_editors=True)
    stage = await asked(policy_gate(pay, ByAmount({5: rule, 6: rule, 7: rule})))
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}, by="UADA"))
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 7}, by="UBEN"))
    info = stage.question(ReviewEditInfo)
    assert (info.edited_by, info.editors) == ("UBEN", ("UADA",))
    for name in ("UADA", "UBEN"):
        assert f"{name} has edited it" in str(await stage.refused(info.accept(by=name)))
    assert pay.calls == []
    await stage.answer(info.accept(by="UCLEO"))
    assert pay.calls == [{"x": 7}]


@pytest.mark.parametrize(
    ("by", "editor", "runs"),
    [("UBEN", "UADA", True), ("UADA", "UADA", False), (None, "UADA", False), (None, None, False)],
)
async def test_excluded_editor_cannot_be_the_one_who_approved(
    by: str | None, editor: str | None, runs: bool
) -> None:
    pay, rule = Plain("pay"), replace(ANYBODY, exclude_editors=True)
    stage = await asked(policy_gate(pay, ByAmount({5: rule, 6: rule})))
    await stage.answer(edited(stage.question(ReviewEditInfo), 6, by=by, edited_by=editor))
    assert bool(pay.calls) is runs


async def test_f6_who_was_counted_outside_may_reject_inside() -> None:
    pay = Plain("pay")
    stage = await asked(approval_gate(approval_gate(pay)))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    result = await stage.result(stage.question(ApprovalInfo).reject("no", by="UMIA"))
    assert result.outcome is ToolOutcome.REJECTED


async def test_f6_three_gates_need_three_people() -> None:
    pay = Plain("pay")
    stage = await asked(approval_gate(review_edit_gate(approval_gate(pay))))
    await stage.answer(stage.question(ApprovalInfo).approve(by="U1"))
    await stage.answer(stage.question(ReviewEditInfo).accept(by="U2"))
    for name in ("U1", "U2"):
        await stage.answer(stage.question(ApprovalInfo).approve(by=name))
        assert pay.calls == []
    await stage.answer(stage.question(ApprovalInfo).approve(by="U3"))
    assert pay.calls == [{"x": 5}]


async def test_f6_who_fills_in_does_not_approve() -> None:
    pay = Plain("pay")
    stage = await asked(fill_arguments(approval_gate(numbered(pay)), ["x"]), {})
    await stage.answer(stage.question(ParametersInfo).complete({"x": 5}, by="UADA"))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UADA"))
    assert pay.calls == []
    await stage.answer(stage.question(ApprovalInfo).approve(by="UBEN"))
    assert pay.calls == [{"x": 5}]


async def test_f6_who_approved_outside_does_not_fill_in() -> None:
    pay = Plain("pay")
    stage = await asked(approval_gate(fill_arguments(numbered(pay), ["x"])), {})
    await stage.answer(stage.question(ApprovalInfo).approve(by="UADA"))
    await stage.answer(stage.question(ParametersInfo).complete({"x": 5}, by="UADA"))
    assert "UADA has agreed in another gate" in str(stage.refusals[0])
    assert pay.calls == []
    await stage.answer(stage.question(ParametersInfo).complete({"x": 5}, by="UBEN"))
    assert pay.calls == [{"x": 5}]


def numbered(pay: Plain) -> Tool:
    async def run(x: int) -> str:
        return str(await pay.call({"x": x}))

    return tool(name="pay")(run)


async def test_edit_inside_asks_the_people_outside_about_what_runs_now() -> None:
    pay = Plain("pay")
    stage = await asked(policy_gate(review_edit_gate(pay), ByAmount({5: MIA, 6: MIA})))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}, by="UBEN"))
    assert pay.calls == []
    info = stage.question(ApprovalInfo)
    assert (info.rule, info.arguments, info.counted) == ("big", {"x": 6}, ("UBEN",))
    await stage.answer(info.approve(by="UBEN"))
    assert pay.calls == []
    await stage.answer(info.approve(by="UMIA"))
    assert pay.calls == [{"x": 6}]


async def test_edit_inside_is_agreed_to_by_those_who_had_agreed_outside() -> None:
    pay = Plain("pay")
    inner = policy_gate(pay, ByAmount({5: ANYBODY, 6: Allow()}))
    stage = await asked(policy_gate(inner, ByAmount({5: MIA, 6: MIA})))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    info = stage.question(ReviewEditInfo)
    await stage.answer(edited(info, 6, ruling=MIA.to_text(), by="UMIA", edited_by="UADA"))
    assert (stage.refusals, pay.calls) == ((), [{"x": 6}])


async def test_edit_in_the_question_of_a_gate_outside_starts_over() -> None:
    pay = Plain("pay")
    config = HumanInterruptConfig(when=lambda call: call.arguments["x"] != 5)
    stage = await asked(human_gate(review_edit_gate(pay), config))
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}, by="UADA"))
    await stage.answer(stage.question(HumanInterrupt).edit({"x": 7}, by="UBEN"))
    assert pay.calls == []
    await stage.answer(stage.question(ReviewEditInfo).accept(by="UADA"))
    assert pay.calls == [{"x": 7}]


async def test_what_people_chose_is_not_edited_inside() -> None:
    pay = Plain("pay")
    options = [Choice(id="a", label="5", value=5), Choice(id="b", label="6", value=6)]
    made = choose_argument(review_edit_gate(numbered(pay)), parameter="x", options=options)
    stage = await asked(made, {})
    await stage.answer(stage.question(CallChoiceInfo).choose("a", by="UADA"))
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}, by="UBEN"))
    assert "people have chosen 'x'" in str(stage.refusals[0])
    await stage.answer(stage.question(ReviewEditInfo).accept(by="UBEN"))
    assert pay.calls == [{"x": 5}]


# F7: what was decided too long ago does not start anything.
async def test_f7_lapsed_decision_starts_nothing_and_people_are_asked_anew() -> None:
    pay, watch = Plain("pay"), Watchman(["it is too old"], {"who": "UMIA"})
    stage = await asked(policy_gate(pay, ByAmount({5: MIA})))
    stage.before_start = watch
    first = stage.asked.id
    assert await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA")) is None
    assert (pay.calls, stage.started) == ([], False)
    info = stage.question(ApprovalInfo)
    assert (info.asked_again, info.counted, info.edited_by) == ("it is too old", (), "")
    second = stage.asked.id
    assert second != first
    await stage.answer(info.approve(by="UMIA"))
    assert pay.calls == [{"x": 5}]
    assert [call.decisions for call in watch.seen] == [(first,), (second,)]
    assert [dict(call.arguments) for call in watch.seen] == [{"x": 5}, {"x": 5}]
    noted = stage.journals[-1].started("agent:A;tool:pay:c1")
    assert noted == {"arguments": {"x": 5}, "frozen": {"who": "UMIA"}}


async def test_f7_all_gates_ask_anew() -> None:
    pay, watch = Plain("pay"), Watchman(["too old"])
    stage = await asked(policy_gate(approval_gate(pay), ByAmount({5: MIA})))
    stage.before_start = watch
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    await stage.answer(stage.question(ApprovalInfo).approve(by="UBEN"))
    rules = []
    for name in ("UBEN", "UMIA"):
        rules.append(stage.question(ApprovalInfo).rule)
        assert pay.calls == []
        await stage.answer(stage.question(ApprovalInfo).approve(by=name))
    assert rules == ["always", "big"]
    assert pay.calls == [{"x": 5}]
    assert [len(call.decisions) for call in watch.seen] == [2, 2]


async def test_f7_gate_that_asked_nobody_asks_for_the_one_around_it() -> None:
    pay, watch = Plain("pay"), Watchman(["too old"])
    stage = await asked(approval_gate(policy_gate(pay, ByAmount({5: Allow()}))))
    stage.before_start = watch
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    assert (pay.calls, stage.question(ApprovalInfo).rule) == ([], "always")
    await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
    assert pay.calls == [{"x": 5}]


async def test_f7_rules_of_today_count_for_a_lapsed_decision() -> None:
    for now, runs in ((Deny("no more"), False), (Allow(), True)):
        pay, policy = Plain("pay"), ByAmount({5: MIA})
        stage = await asked(policy_gate(pay, policy))
        stage.before_start = Watchman(["too old"])
        policy.rulings = {5: now}
        result = await stage.result(stage.question(ApprovalInfo).approve(by="UMIA"))
        assert result.outcome is (ToolOutcome.RAN if runs else ToolOutcome.REFUSED)
        assert bool(pay.calls) is runs
        assert runs or "no more" in result.text


async def test_call_that_nobody_was_asked_about_has_no_decisions() -> None:
    pay, watch = Plain("pay"), Watchman()
    stage = Stage(policy_gate(pay, ByAmount({5: Allow()})), {"x": 5})
    stage.before_start = watch
    await stage.run()
    assert pay.calls == [{"x": 5}]
    assert watch.seen == [
        StartingCall(
            checkpoint_id="t1",
            address="agent:A;tool:pay:c1",
            tool="pay",
            arguments={"x": 5},
            may_park=True,
        )
    ]


async def test_f7_lapse_of_an_edited_call_asks_about_what_was_edited() -> None:
    pay, watch = Plain("pay"), Watchman(["too old"])
    stage = await asked(policy_gate(pay, ByAmount({5: ANYBODY, 6: ANYBODY})))
    stage.before_start = watch
    await stage.answer(stage.question(ReviewEditInfo).edit({"x": 6}, by="UADA"))
    info = stage.question(ReviewEditInfo)
    assert (info.arguments, info.edited_by, info.asked_again) == ({"x": 6}, "UADA", "too old")
    result = await stage.result(info.accept(by="UADA"))
    assert result.text.startswith("A person changed the arguments")
    assert pay.calls == [{"x": 6}]


async def test_i5_call_that_goes_on_after_a_question_is_not_begun_anew() -> None:
    began: list[int] = []

    async def pay(x: int) -> str:
        if not get_interrupt_state(str)[0]:
            began.append(x)
            interrupt("how?")
        return "paid"

    for make in (approval_gate, lambda wrapped: policy_gate(wrapped, ByAmount({5: MIA}))):
        began.clear()
        watch = Watchman()
        stage = await asked(make(tool(name="pay")(pay)))
        stage.before_start = watch
        await stage.answer(stage.question(ApprovalInfo).approve(by="UMIA"))
        watch.reasons = ["it is too old"]
        result = await stage.result("by card")
        assert (result.text, began) == ("paid", [5])
        assert stage.started
        assert [call.goes_on for call in watch.seen] == [False, True]
