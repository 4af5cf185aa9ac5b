"""Parked calls: they may run, and wait until the application lets them start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from agents import ApprovalResult, InDoubtResult, ToolOutcome, approval_gate
from agents.core.asking.answers import Cancelled, Expired
from agents.core.asking.infos import ApprovalInfo, ParkedInfo
from agents.core.codec import Json
from agents.core.component.state import get_interrupt_state
from agents.core.errors import ResumeDataError
from agents.core.interrupt import interrupt
from agents.core.pending import InterruptContext
from agents.core.scope import AskAgain, Park, StartingCall
from agents.gates import tool
from agents.models import call, say
from agents.policy import Allow, Deny, Ruling
from tests.unit.agents.gates.test_granted import BY_GRANT, GrantingHouse
from tests.unit.agents.house import FILE, always
from tests.unit.agents.support import Plain, World, brief, contexts, dies_in, yes

FROZEN = Park(reason="Everything is frozen.", kept={"since_ms": 5})


@dataclass
class Switch:
    """Lets calls wait while it is on."""

    is_on: bool = True
    seen: list[StartingCall] = field(default_factory=list)

    async def __call__(self, call: StartingCall) -> Mapping[str, Json] | AskAgain | Park:
        self.seen.append(call)
        return FROZEN if self.is_on and not (call.only_checks or call.goes_on) else {}


def a_world(switch: Switch, *tools: object, script: list[object] | None = None) -> World:
    world = World(
        script or [call("pay", {"x": 2}, id="c1"), say("done")],  # type: ignore[arg-type]
        [*tools],  # type: ignore[list-item]
        durability="step",
    )
    world.before_start = switch
    return world


async def parked(world: World) -> InterruptContext:
    """The interrupt of the call that was approved, and waits."""
    asked = contexts(await world.run())["c1"]
    if isinstance(asked.info, ParkedInfo):
        return asked
    return contexts(await world.resume({asked.id: yes(asked)}))["c1"]


async def test_an_approved_call_waits_and_starts_later_by_the_same_decision() -> None:
    switch, pay = Switch(), Plain("pay")
    world = a_world(switch, approval_gate(pay))
    waits = await parked(world)
    info = waits.info
    assert isinstance(info, ParkedInfo)
    assert (info.tool_name, info.why, info.kept) == ("pay", FROZEN.reason, {"since_ms": 5})
    assert pay.calls == []
    switch.is_on = False
    events = await world.resume({waits.id: True})
    assert brief(events)[-1] == "says done"
    assert len(pay.calls) == 1
    first, second = switch.seen
    assert (first.decisions, first.parked) == (second.decisions, None)
    assert (len(first.decisions), second.parked) == (1, {"since_ms": 5})


async def test_a_call_that_is_still_frozen_waits_again() -> None:
    switch, pay = Switch(), Plain("pay")
    world = a_world(switch, approval_gate(pay))
    waits = await parked(world)
    again = contexts(await world.resume({waits.id: True}))["c1"]
    assert isinstance(again.info, ParkedInfo)
    assert again.id != waits.id
    switch.is_on = False
    await world.resume({again.id: True})
    assert len(pay.calls) == 1


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Cancelled(reason="no need"), ToolOutcome.CANCELLED),
        (Expired(), ToolOutcome.EXPIRED),
        (ApprovalResult(approved=False, reason="too risky"), ToolOutcome.REJECTED),
    ],
)
async def test_a_parked_call_can_be_taken_back(answer: object, outcome: ToolOutcome) -> None:
    switch, pay = Switch(), Plain("pay")
    world = a_world(switch, approval_gate(pay))
    waits = await parked(world)
    events = await world.resume({waits.id: answer})
    assert any(f"pay#c1 {outcome}" in line for line in brief(events))
    assert pay.calls == []


async def test_a_parked_call_takes_no_other_answer() -> None:
    world = a_world(Switch(), approval_gate(Plain("pay")))
    waits = await parked(world)
    with pytest.raises(ResumeDataError):
        await world.resume({waits.id: "start"})


async def test_another_answer_leaves_a_parked_call_as_it_was() -> None:
    switch, pay, send = Switch(), Plain("pay"), Plain("send")
    script: list[object] = [
        [call("pay", {"x": 2}, id="c1"), call("send", {"x": 3}, id="c2")],
        say("done"),
    ]
    world = a_world(switch, approval_gate(pay), approval_gate(send), script=script)
    asked = contexts(await world.run())
    left = contexts(await world.resume({asked["c1"].id: yes(asked["c1"])}))
    switch.is_on = False
    after = contexts(await world.resume({asked["c2"].id: yes(asked["c2"])}))
    assert (len(pay.calls), len(send.calls)) == (0, 1)
    assert after["c1"].id == left["c1"].id
    await world.resume({after["c1"].id: True})
    assert len(pay.calls) == 1


async def test_a_call_that_waited_and_asks_goes_on_after_its_answer() -> None:
    began: list[int] = []

    @tool
    def pay(x: int) -> str:
        """Pay."""
        if not get_interrupt_state(str)[0]:
            began.append(x)
            interrupt("how?")
        return "paid"

    switch = Switch()
    world = a_world(switch, approval_gate(pay))
    waits = await parked(world)
    switch.is_on = False
    asks = contexts(await world.resume({waits.id: True}))["c1"]
    switch.is_on = True
    events = await world.resume({asks.id: "by card"})
    assert (brief(events)[-1], began) == ("says done", [2])


async def test_a_doubt_that_runs_again_waits_with_its_decision() -> None:
    switch, pay = Switch(is_on=False), Plain("pay")

    world = a_world(switch, approval_gate(pay))
    asked = contexts(await world.run())["c1"]
    await dies_in(pay, world.resume({asked.id: yes(asked)}))
    doubt = contexts(await world.recover())["c1"]
    switch.is_on, pay.body = True, None
    waits = contexts(await world.resume({doubt.id: InDoubtResult(choice="again")}))["c1"]
    assert isinstance(waits.info, ParkedInfo)
    switch.is_on = False
    await world.resume({waits.id: True})
    assert len(pay.calls) == 2
    assert switch.seen[-1].decisions == (doubt.id,)


def in_house(ruling: Ruling) -> tuple[GrantingHouse, Switch, Plain, World]:
    """A call that is parked, and that an application's policy lets run without people."""
    house, switch, pay = GrantingHouse(always(ruling), answer=BY_GRANT), Switch(), Plain("pay")
    world = a_world(switch, pay)
    world.policy = house
    return house, switch, pay, world


async def test_a_parked_call_names_its_grant_again_at_each_start() -> None:
    house, switch, pay, world = in_house(FILE)
    waits = await parked(world)
    assert isinstance(waits.info, ParkedInfo)
    switch.is_on = False
    await world.resume({waits.id: True})
    assert (len(pay.calls), len(house.sought)) == (1, 2)
    assert [call.grant for call in switch.seen] == ["g1", "g1"]


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (Allow(rule="free"), Deny("never", "no-pay"), "refused"),
        (Allow(rule="free"), Allow(rule="other"), "ran"),
        (Allow(rule="free"), FILE, "asked"),
        (FILE, FILE, "asked"),
        (FILE, Allow(rule="free"), "ran"),
    ],
)
async def test_a_parked_call_that_nobody_decided_is_judged_like_a_new_one(
    before: Ruling, after: Ruling, outcome: str
) -> None:
    house, switch, pay, world = in_house(before)
    waits = await parked(world)
    house.rules, house.answer, switch.is_on = always(after), None, False
    events = await world.resume({waits.id: True})
    assert len(pay.calls) == (outcome == "ran")
    if outcome == "asked":
        assert isinstance(contexts(events)["c1"].info, ApprovalInfo)
    if outcome == "refused":
        assert any("pay#c1 refused" in line for line in brief(events))
