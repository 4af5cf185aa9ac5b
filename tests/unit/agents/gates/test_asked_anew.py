"""People are asked anew about a call that waits, under the rules of now (8.5)."""

from __future__ import annotations

import pytest

from agents.core.asking.answers import Reasked
from agents.core.asking.infos import ApprovalInfo
from agents.gates import approval_gate, policy_gate
from agents.policy import Allow, AllowList, Ask, Deny, Ruling
from tests.unit.agents.house import ByAmount, TestHouse, always, asked
from tests.unit.agents.support import Plain, brief, contexts, yes

ANEW = Reasked(reason="The rules have changed.")


async def test_a_gate_in_code_asks_once_more() -> None:
    pay = Plain("pay")
    made, first = await asked(approval_gate(pay), None)
    second = contexts(await made.resume({first.id: ANEW}))["c1"]
    assert second.id != first.id
    assert isinstance(second.info, ApprovalInfo)
    assert (second.info.asked_again, second.info.arguments) == ("The rules have changed.", {"x": 5})
    await made.resume({second.id: second.info.approve(by="UADA")})
    assert pay.calls == [{"x": 5}]


async def test_people_are_asked_under_the_ruling_of_now() -> None:
    house, pay = TestHouse(always(Ask(rule="old"))), Plain("pay")
    made, first = await asked(pay, house)
    house.rules = always(Ask(rule="new"))
    second = contexts(await made.resume({first.id: ANEW}))["c1"]
    assert isinstance(second.info, ApprovalInfo)
    assert (second.info.rule, second.info.terms, pay.calls) == ("new", "terms of new", [])
    await made.resume({second.id: second.info.approve(by="UADA")})
    assert pay.calls == [{"x": 5}]


@pytest.mark.parametrize(
    ("ruling", "ran", "noted"),
    [
        (Allow(rule="free"), [{"x": 5}], ["allow pay free"]),
        (Deny("never", "no-pay"), [], ["deny pay "]),
    ],
)
async def test_a_rule_of_now_that_asks_nobody_settles_it(
    ruling: Ruling, ran: list[object], noted: list[str]
) -> None:
    house, pay = TestHouse(always(Ask(rule="old"))), Plain("pay")
    made, first = await asked(pay, house)
    house.rules = always(ruling)
    events = await made.resume({first.id: ANEW})
    assert (pay.calls, house.acts) == (ran, noted)
    assert any("says done" in line for line in brief(events))


async def test_people_around_it_are_asked_again_too() -> None:
    house, pay = TestHouse(always(Ask(rule="file"))), Plain("pay")
    inner = policy_gate(pay, ByAmount({5: Ask(rule="second")}))
    made, first = await asked(policy_gate(inner, AllowList(["pay"])), house)
    second = contexts(await made.resume({first.id: yes(first, by="UADA")}))["c1"]
    third = contexts(await made.resume({second.id: ANEW}))["c1"]
    assert isinstance(third.info, ApprovalInfo)
    assert (third.info.rule, third.info.counted, pay.calls) == ("file + second", (), [])
    await made.resume({third.id: third.info.approve(by="UADA")})
    assert pay.calls == [{"x": 5}]
