"""Standing grants: used right before people would be asked, and never otherwise (6.6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from agents.core.asking.infos import ApprovalInfo
from agents.core.interrupt import interrupt
from agents.gates import approval_gate, policy_gate
from agents.models import Turn, call, say
from agents.policy import Allow, AllowList, Ask, Deny, PolicyCall
from tests.unit.agents.house import ByAmount, TestHouse, always
from tests.unit.agents.support import Plain, World, brief, contexts, yes

FILE = Ask(rule="file")
BY_GRANT = Allow(rule="file", terms="terms of file", grant="g1")
PAY: list[Turn] = [call("pay", {"x": 5}, id="c1"), say("done")]

Grant = Callable[[PolicyCall, str], Awaitable[Allow | None]]


@dataclass
class GrantingHouse(TestHouse):
    """A house with standing grants.

    Attributes:
        found: Its answer.
        asked: Tool and terms of all that it was asked for a grant.
    """

    __test__ = False
    found: object = None
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def grant(self, call: PolicyCall, terms: str) -> Allow | None:
        self.asked.append((call.tool, terms))
        if isinstance(self.found, Exception):
            raise self.found
        if self.found == "asks":
            interrupt("a question of its own")
        return self.found  # type: ignore[return-value]  # what it must not answer


def world(house: TestHouse, tool: Plain | None = None) -> tuple[World, Plain]:
    pay = tool or Plain("pay")
    return World(list(PAY), [pay], policy=house, durability="step"), pay


async def test_a_granted_call_runs_and_is_noted_before_it_starts() -> None:
    house = GrantingHouse(always(FILE), found=BY_GRANT)
    made, pay = world(house, Plain("pay", lambda _: f"noted: {len(house.noted)}"))
    assert "tool pay#c1 ran: noted: 1" in brief(await made.run())
    assert house.asked == [("pay", "terms of file")]
    assert house.noted == [("pay", {"x": 5}, BY_GRANT)]
    assert pay.calls == [{"x": 5}]


@pytest.mark.parametrize(
    "answer",
    [None, Allow(rule="no grant named"), Deny("no"), "yes", RuntimeError("away"), "asks"],
)
async def test_without_a_grant_that_can_be_used_people_are_asked(answer: object) -> None:
    house = GrantingHouse(always(FILE), found=answer)
    made, pay = world(house)
    context = contexts(await made.run())["c1"]
    assert isinstance(context.info, ApprovalInfo)
    assert (pay.calls, house.noted) == ([], [])


@pytest.mark.parametrize("ruling", [Allow(rule="free"), Deny("never", "no-pay")])
async def test_what_a_rule_settles_needs_no_grant(ruling: Allow | Deny) -> None:
    house = GrantingHouse(always(ruling), found=BY_GRANT)
    made, _ = world(house)
    await made.run()
    assert house.asked == []
    assert [noted for _, _, noted in house.noted] == [ruling]


async def test_a_call_that_people_approved_uses_no_grant_given_meanwhile() -> None:
    house = GrantingHouse(always(FILE))
    made, pay = world(house)
    context = contexts(await made.run())["c1"]
    house.found = BY_GRANT
    await made.resume({context.id: yes(context, by="UADA")})
    assert (len(house.asked), pay.calls, house.noted) == (1, [{"x": 5}], [])


async def test_a_gate_in_code_is_passed_by_a_grant_on_its_ruling() -> None:
    house = GrantingHouse(always(FILE), found=BY_GRANT)
    pay = Plain("pay")
    made = World(list(PAY), [approval_gate(pay)], policy=house, durability="step")
    await made.run()
    assert pay.calls == [{"x": 5}]
    assert house.asked == [("pay", "terms of file + gate")]


async def test_who_is_asked_inside_of_an_approved_gate_cannot_be_left_out() -> None:
    house, pay = GrantingHouse(always(FILE)), Plain("pay")
    inner = policy_gate(pay, ByAmount({5: Ask(rule="second")}))
    made = World(
        list(PAY), [policy_gate(inner, AllowList(["pay"]))], policy=house, durability="step"
    )
    first = contexts(await made.run())["c1"]
    house.found = BY_GRANT
    second = contexts(await made.resume({first.id: yes(first, by="UADA")}))["c1"]
    assert isinstance(second.info, ApprovalInfo)
    assert (second.info.rule, pay.calls, len(house.asked)) == ("second", [], 1)
