"""Standing grants: used right before people would be asked, and never otherwise (6.6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from agents.core.asking.infos import ApprovalInfo
from agents.core.interrupt import interrupt
from agents.gates import approval_gate, policy_gate
from agents.policy import Allow, AllowList, Ask, Deny, PolicyCall
from tests.unit.agents.house import FILE, ByAmount, TestHouse, always, asked, world
from tests.unit.agents.support import Plain, brief, contexts, yes

BY_GRANT = Allow(rule="file", terms="terms of file", grant="g1")

Grant = Callable[[PolicyCall, str], Awaitable[Allow | None]]


@dataclass
class GrantingHouse(TestHouse):
    """A house with standing grants.

    Attributes:
        found: Its answer.
        sought: Tool and terms of all that it was asked for a grant.
    """

    __test__ = False
    answer: object = None
    sought: list[tuple[str, str]] = field(default_factory=list)

    async def grant(self, call: PolicyCall, terms: str) -> Allow | None:
        self.sought.append((call.tool, terms))
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer == "asks":
            interrupt("a question of its own")
        return self.answer  # type: ignore[return-value]  # what it must not answer


async def test_a_granted_call_runs_and_is_noted_before_it_starts() -> None:
    house = GrantingHouse(always(FILE), answer=BY_GRANT)
    pay = Plain("pay", lambda _: f"noted: {len(house.noted)}")
    assert "tool pay#c1 ran: noted: 1" in brief(await world(pay, house).run())
    assert house.sought == [("pay", "terms of file")]
    assert house.noted == [("pay", {"x": 5}, BY_GRANT)]
    assert pay.calls == [{"x": 5}]


@pytest.mark.parametrize(
    "answer",
    [None, Allow(rule="no grant named"), Deny("no"), "yes", RuntimeError("away"), "asks"],
)
async def test_without_a_grant_that_can_be_used_people_are_asked(answer: object) -> None:
    house = GrantingHouse(always(FILE), answer=answer)
    pay = Plain("pay")
    _, context = await asked(pay, house)
    assert isinstance(context.info, ApprovalInfo)
    assert (pay.calls, house.noted) == ([], [])


@pytest.mark.parametrize("ruling", [Allow(rule="free"), Deny("never", "no-pay")])
async def test_what_a_rule_settles_needs_no_grant(ruling: Allow | Deny) -> None:
    house = GrantingHouse(always(ruling), answer=BY_GRANT)
    await world(Plain("pay"), house).run()
    assert house.sought == []
    assert [noted for _, _, noted in house.noted] == [ruling]


async def test_a_call_that_people_approved_uses_no_grant_given_meanwhile() -> None:
    house, pay = GrantingHouse(always(FILE)), Plain("pay")
    made, context = await asked(pay, house)
    house.answer = BY_GRANT
    await made.resume({context.id: yes(context, by="UADA")})
    assert (len(house.sought), pay.calls, house.noted) == (1, [{"x": 5}], [])


async def test_a_gate_in_code_is_passed_by_a_grant_on_its_ruling() -> None:
    house = GrantingHouse(always(FILE), answer=BY_GRANT)
    pay = Plain("pay")
    await world(approval_gate(pay), house).run()
    assert pay.calls == [{"x": 5}]
    assert house.sought == [("pay", "terms of file + gate")]


async def test_who_is_asked_inside_of_an_approved_gate_cannot_be_left_out() -> None:
    house, pay = GrantingHouse(always(FILE)), Plain("pay")
    inner = policy_gate(pay, ByAmount({5: Ask(rule="second")}))
    made, first = await asked(policy_gate(inner, AllowList(["pay"])), house)
    house.answer = BY_GRANT
    second = contexts(await made.resume({first.id: yes(first, by="UADA")}))["c1"]
    assert isinstance(second.info, ApprovalInfo)
    assert (second.info.rule, pay.calls, len(house.sought)) == ("second", [], 1)
