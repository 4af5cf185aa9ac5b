"""Refused answers, and signals that go astray."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from agents import (
    Agent,
    AgentEvent,
    AgentInput,
    ResumeError,
    ReviewEditInfo,
    ToolEvent,
    approval_gate,
    get_resume_context,
    interrupt,
    make_message,
    tool,
)
from agents.agent import run_agent
from agents.core.asking.infos import ApprovalInfo, CallInfo
from agents.core.codec import Json, register
from agents.core.errors import (
    CheckpointDecodeError,
    ResumeDataError,
    SwallowedInterruptError,
    UnknownInterruptError,
)
from agents.core.interrupt import keep_waiting
from agents.core.observers import ToolOutcome
from agents.gates.base import CallGate
from agents.models import call, say
from tests.unit.agents.support import (
    Asker,
    Died,
    DyingStore,
    Plain,
    World,
    brief,
    collect,
    contexts,
    follow,
    tamper,
    yes,
)


async def test_a_bad_edit_is_refused_and_the_others_go_on() -> None:
    ran: list[int] = []

    @tool(gate="review")
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    assert pay.definition.gates
    calls = [call("pay", {"amount": 1}, id="c1"), call("pay", {"amount": 2}, id="c2")]
    world = World([calls, say("done")], [pay])
    asked = contexts(await world.run())
    first, two = asked["c1"].info, asked["c2"].info
    assert isinstance(first, ReviewEditInfo)
    assert isinstance(two, ReviewEditInfo)
    answers = {asked["c1"].id: first.edit({"amount": "much"}), asked["c2"].id: two.accept()}
    seen: list[AgentEvent] = []

    with pytest.raises(ResumeDataError, match="amount"):
        await follow(world.runner().resume("1", answers), seen)

    assert brief(seen) == ["tool pay#c2 ran: paid", "INT agent:A;tool:pay:c1"]
    assert contexts(seen)["c1"] == asked["c1"] or contexts(seen)["c1"].id == asked["c1"].id
    await world.resume({asked["c1"].id: first.edit({"amount": 5})})
    assert ran == [2, 5]


async def test_a_swallowed_signal_is_noticed() -> None:
    def body(_: dict[str, Json]) -> str:
        try:
            interrupt("q")
        except BaseException:  # noqa: BLE001 - the mistake that is tested
            return "went on without asking"

    world = World([call("bad", id="c1"), say("done")], [Plain("bad", body)])

    events = await world.run()

    tool_event = events[1]
    assert isinstance(tool_event, ToolEvent)
    assert tool_event.outcome is ToolOutcome.FAILED
    assert "SwallowedInterruptError" in tool_event.result
    assert "went on" not in tool_event.result


async def test_an_agent_that_swallows_a_signal_is_noticed() -> None:
    @dataclass
    class Bad:
        name: str = "bad"
        description: str = ""
        below: Agent = field(default_factory=lambda: Asker("a"))

        async def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002
            try:
                async for event in run_agent(self.below, input):
                    yield event
            except BaseException:  # noqa: BLE001 - the mistake that is tested
                yield make_message("went on")

        resume = run

    world = World([])

    with pytest.raises(SwallowedInterruptError, match="agent:bad"):
        await collect(world.runner(Bad()).query("hi", checkpoint_id="1"))

    assert await world.pending() == ()


async def test_a_tool_with_a_runner_of_its_own_may_fail_with_its_errors() -> None:
    def body(_: dict[str, Json]) -> str:
        raise UnknownInterruptError("x")

    gated = World([call("t", id="c1"), say("done")], [approval_gate(Plain("t", body))])
    context = contexts(await gated.run())["c1"]
    assert " failed: " in brief(await gated.resume({context.id: yes(context)}))[0]

    plain = World([call("t", id="c1"), say("done")], [Plain("t", body)])
    with pytest.raises(UnknownInterruptError):
        await plain.run()


async def test_an_answer_that_a_tool_refuses_may_be_given_again() -> None:
    def body(_: dict[str, Json]) -> str:
        is_target, has_data, data = get_resume_context(int)
        if not is_target:
            interrupt("how many?")
        if not has_data:
            raise ResumeDataError("a number, please")
        return f"{data}"

    world = World([call("t", id="c1"), say("done")], [Plain("t", body)])
    context = contexts(await world.run())["c1"]
    seen: list[AgentEvent] = []

    with pytest.raises(ResumeDataError, match="a number"):
        await follow(world.runner().resume("1", {context.id: "many"}), seen)

    assert contexts(seen)["c1"].id == context.id
    assert brief(await world.resume({context.id: 3}))[0] == "tool t#c1 ran: 3"


async def test_keep_waiting_needs_something_that_waits() -> None:
    world = World([call("t", id="c1"), say("x")], [Plain("t", lambda _: keep_waiting())])
    with pytest.raises(ResumeError, match="nothing waits"):
        await world.run()

    refusal = ResumeDataError("no")
    other = World([call("t", id="c1"), say("x")], [Plain("t", lambda _: keep_waiting(refusal))])
    with pytest.raises(ResumeDataError, match="no"):
        await other.run()


async def test_an_agent_whose_state_is_gone_is_a_typed_error() -> None:
    world = World([call("pay", id="c1")], [approval_gate(Plain("pay"))])
    context = contexts(await world.run())["c1"]
    await tamper(world.store, lambda text: text.replace('"countersign.chat-state/1"', '"dict"'))

    with pytest.raises(CheckpointDecodeError):
        await world.resume({context.id: yes(context)})


# ---- how often an answer is checked --------------------------------------------------------------


@register("test.counting-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class CountingInfo(ApprovalInfo):
    checks: ClassVar[list[object]] = []

    def check_answer(self, answer: object) -> None:
        self.checks.append(answer)
        ApprovalInfo.check_answer(self, answer)


@dataclass(frozen=True, slots=True)
class CountingGate(CallGate):
    @property
    def gate_name(self) -> str:
        return "counting"

    async def _question(self, arguments: dict[str, Json]) -> CallInfo:
        return CountingInfo(**self._shown(arguments, "always"))


async def test_what_a_dead_process_was_resumed_with_is_checked_again() -> None:
    CountingInfo.checks.clear()
    pay = Plain("pay")
    case = World([call("pay", {"x": 1}, id="c1"), say("done")], [CountingGate(pay)])
    context = contexts(await case.run())["c1"]
    store = case.store
    case.store = DyingStore(store, at=1, before=False)  # type: ignore[arg-type]
    with pytest.raises(Died):
        await case.resume({context.id: yes(context)})
    assert len(CountingInfo.checks) == 1

    case.store = store
    events = await case.recover()

    assert len(CountingInfo.checks) == 2
    assert brief(events)[0].startswith(f"tool pay#c1 {ToolOutcome.RAN}")
    assert len(pay.calls) == 1
