"""Stopping a run at once while its tools work: what begins again, what is asked, what is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from agents.agent import AgentEvent, AgentInput, function_agent, make_message, run_agent
from agents.chat.agent import ChatModelAgent
from agents.core.address import Address, Segment
from agents.core.asking.answers import InDoubtResult
from agents.core.asking.infos import InDoubtInfo, ReviewEditInfo
from agents.core.calls import ToolCall, ToolReturn
from agents.core.cancel import CancelInfo, CancelToken
from agents.core.component.state import address_segment, get_interrupt_state, get_resume_context
from agents.core.errors import CheckpointDecodeError, RunCancelledError
from agents.core.interrupt import (
    InterruptSignal,
    composite_interrupt,
    interrupt,
    stateful_interrupt,
)
from agents.core.journal import Journal
from agents.core.messages import PlannedCall
from agents.core.pending import InterruptContext, InterruptNode
from agents.core.scope import RunContext, Scope, entered
from agents.core.starts import start_call
from agents.core.tools import Tool
from agents.gates.approval import approval_gate, review_edit_gate
from agents.memory import MemoryCheckpointStore
from agents.models import ScriptedModel, call, say
from agents.tools.call import execute
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.support import Plain, World, brief, collect, contexts, yes


class Hanging(Plain):
    """A tool that does not end before it is told so."""

    def __init__(self, name: str, *, idempotent: bool = False) -> None:
        super().__init__(name, lambda _: self._wait(), idempotent)
        self.inside = asyncio.Event()
        self.is_quick = False

    async def _wait(self) -> str:
        self.inside.set()
        if not self.is_quick:
            await asyncio.Event().wait()
        return f"{self.name} ended"


async def stop_when(
    world: World, inside: asyncio.Event, targets: dict[str, object] | None = None
) -> dict[str, InterruptContext]:
    """Run or resume, stop it as soon as somebody is inside, and give what stands, by call id."""
    token, runner = CancelToken(), world.runner()
    events = (
        runner.query("hi", checkpoint_id="1", cancel=token)
        if targets is None
        else runner.resume("1", targets, cancel=token)
    )
    error = await stopped(events, inside, token)
    waiting: tuple[InterruptContext, ...] = error.value.contexts
    assert waiting == await world.pending()
    return {context.address.segments[-1].sub_id: context for context in waiting}


async def stopped(
    events: AsyncIterator[AgentEvent], inside: asyncio.Event, token: CancelToken
) -> pytest.ExceptionInfo[RunCancelledError]:
    task = asyncio.ensure_future(collect(events))
    waiter = asyncio.ensure_future(inside.wait())
    await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()
    token.cancel()
    with pytest.raises(RunCancelledError) as error:
        await task
    return error


async def go_on(world: World) -> list[AgentEvent]:
    """Go on with what was stopped; what people were asked waits on."""
    return await world.resume({})


async def test_151_a_plain_call_begins_again_and_the_others_are_as_they_were() -> None:
    slow, ok, pay = Hanging("slow"), Plain("ok"), Plain("pay")
    calls = [call("slow", {"x": 1}, id="c1"), call("ok", id="c2"), call("pay", id="c3")]
    world = World([calls, say("done")], [slow, ok, approval_gate(pay)])

    stands = await stop_when(world, slow.inside)

    assert list(stands) == ["c1", "c3"]
    assert stands["c1"].info == CancelInfo(mode="now")
    assert str(stands["c1"].address) == "agent:A;tool:slow:c1"
    slow.is_quick = True
    events = await go_on(world)
    assert brief(events) == ["tool slow#c1 ran: slow ended", "INT agent:A;tool:pay:c3"]
    assert contexts(events)["c3"] == stands["c3"]
    assert brief(await world.resume({stands["c3"].id: yes(stands["c3"])}))[-1] == "says done"
    assert (len(slow.calls), len(ok.calls), len(pay.calls)) == (2, 1, 1)


async def test_i5_of_an_approved_call_that_had_started_people_are_asked() -> None:
    pay = Hanging("pay")
    world = World([call("pay", {"x": 7}, id="c1"), say("done")], [approval_gate(pay)])
    asked = contexts(await world.run())["c1"]

    stands = await stop_when(world, pay.inside, {asked.id: yes(asked)})

    doubt = stands["c1"]
    assert doubt.info == InDoubtInfo(
        tool_name="pay", arguments={"x": 7}, title="Do pay", call_id="c1"
    )
    assert brief(await go_on(world)) == ["INT agent:A;tool:pay:c1"]
    assert len(pay.calls) == 1
    again = await stop_when(world, renewed(pay), {doubt.id: InDoubtResult(choice="again")})
    assert isinstance(again["c1"].info, InDoubtInfo)
    assert again["c1"].id != doubt.id
    pay.is_quick = True
    events = await world.resume({again["c1"].id: InDoubtResult(choice="again")})
    assert brief(events) == ["tool pay#c1 ran: pay ended", "says done"]
    assert pay.calls == [{"x": 7}] * 3


def renewed(tool: Hanging) -> asyncio.Event:
    tool.inside = asyncio.Event()
    return tool.inside


@pytest.mark.parametrize("durability", ["step", "interrupt"])
async def test_i1_an_idempotent_call_runs_again_on_the_same_decision(durability: str) -> None:
    pay = Hanging("pay", idempotent=True)
    world = World([call("pay", {"x": 7}, id="c1"), say("done")], [review_edit_gate(pay)])
    world.durability = durability
    asked = contexts(await world.run())["c1"]
    assert isinstance(asked.info, ReviewEditInfo)
    stands = await stop_when(world, pay.inside, {asked.id: asked.info.edit({"x": 8})})
    assert isinstance(stands["c1"].info, CancelInfo)
    await stop_when(world, renewed(pay), {})

    pay.is_quick = True
    events = await go_on(world)

    assert brief(events)[0].startswith("tool pay#c1 ran: ")
    assert brief(events)[0].endswith("pay ended")
    assert pay.calls == [{"x": 8}] * 3


async def test_i1_a_call_that_had_not_begun_keeps_its_decision() -> None:
    slow, pay, look = Hanging("slow"), Plain("pay"), Plain("look")
    calls = [call("slow", {"x": 1}, id="c1"), call("pay", {"x": 2}, id="c2"), call("look", id="c3")]
    tools: list[Tool] = [approval_gate(slow), approval_gate(pay), look]
    world = World([calls, say("done")], tools)
    world.options["sequential_tools"] = True
    asked = contexts(await world.run())
    assert look.calls == [{}]

    stands = await stop_when(world, slow.inside, {c.id: yes(c) for c in asked.values()})

    assert [type(context.info) for context in stands.values()] == [InDoubtInfo, CancelInfo]
    events = await go_on(world)
    assert brief(events) == ['tool pay#c2 ran: pay ok {"x": 2}', "INT agent:A;tool:slow:c1"]
    assert (len(pay.calls), len(look.calls)) == (1, 1)


@pytest.mark.parametrize("idempotent", [True, False])
async def test_i5_a_tool_that_was_stopped_with_its_answer_keeps_it_or_is_in_doubt(
    idempotent: bool,
) -> None:
    inside, is_quick = asyncio.Event(), False

    async def body() -> str:
        was_interrupted, _, state = get_interrupt_state(str)
        if not was_interrupted:
            stateful_interrupt("which?", "kept")
        _, _, answer = get_resume_context(str)
        inside.set()
        if not is_quick:
            await asyncio.Event().wait()
        return f"{state} {answer}"

    tool = Plain("ask", lambda _: body(), idempotent=idempotent)
    world = World([call("ask", id="c1"), say("done")], [tool])
    asked = contexts(await world.run())["c1"]
    stands = (await stop_when(world, inside, {asked.id: "this one"}))["c1"]
    assert isinstance(stands.info, CancelInfo if idempotent else InDoubtInfo)

    is_quick = True
    targets = {} if idempotent else {stands.id: InDoubtResult(choice="again")}
    assert brief(await world.resume(targets))[0] == "tool ask#c1 ran: kept this one"


async def test_i6_what_still_waits_inside_a_stopped_call_stays_answerable() -> None:
    inside = asyncio.Event()
    is_quick = False

    async def part(name: str) -> str:
        with address_segment("part", name):
            is_target, _, answer = get_resume_context(str)
            if not is_target:
                interrupt(f"{name}?")
            return str(answer)

    async def both() -> str:
        answers = await asyncio.gather(part("x"), part("y"), return_exceptions=True)
        signals = [answer for answer in answers if isinstance(answer, InterruptSignal)]
        if len(signals) == 2:
            composite_interrupt("both", None, *signals)
        inside.set()
        if not is_quick:
            await asyncio.Event().wait()
        return " ".join(map(str, answers))

    tool = Plain("form", lambda _: both(), idempotent=True)
    world = World([call("form", id="c1"), say("done")], [tool])
    x, y = contexts(await world.run()).values()
    token = CancelToken()
    await stopped(world.runner().resume("1", {x.id: "1"}, cancel=token), inside, token)

    (left,) = await world.pending()
    assert (left.id, left.info) == (y.id, "y?")
    is_quick = True
    events = await world.resume({left.id: "2"})
    assert brief(events) == ["tool form#c1 ran: 1 2", "says done"]


async def test_a_call_that_ends_all_the_same_keeps_its_result() -> None:
    inside = asyncio.Event()

    async def stubborn() -> str:
        inside.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "cleaned up and done"
        return "never"

    tool = Plain("t", lambda _: stubborn())
    world = World([call("t", id="c1"), say("done")], [tool])
    token = CancelToken()
    error = await stopped(
        world.runner().query("hi", checkpoint_id="1", cancel=token), inside, token
    )

    assert [str(context.address) for context in error.value.contexts] == ["agent:A"]
    assert brief(await go_on(world)) == ["says done"]
    assert len(tool.calls) == 1


async def test_151_an_agent_in_a_tool_stops_by_itself_and_loses_nothing() -> None:
    slow, ok = Hanging("slow"), Plain("ok")
    inner_calls = [call("slow", id="i1"), call("ok", id="i2")]
    store = MemoryCheckpointStore()

    def world(inner: list[object], outer: list[object]) -> World:
        agent = ChatModelAgent(
            name="Inner",
            model=ScriptedModel(inner),  # type: ignore[arg-type]
            tools=[slow, ok],
        )
        return World(outer, [approval_gate(AgentTool(agent))], store=store)  # type: ignore[arg-type]

    first = world([inner_calls], [call("Inner", {"request": "go"}, id="o1")])
    asked = contexts(await first.run())["o1"]
    stands = await stop_when(first, slow.inside, {asked.id: yes(asked)})
    assert list(stands) == ["i1"]

    slow.is_quick = True
    second = world([say("inner done")], [say("done")])
    events = await go_on(second)

    assert brief(events) == ["tool Inner#o1 ran: inner done", "says done"]
    assert (len(slow.calls), len(ok.calls)) == (2, 1)


class Round:
    """A call that is executed alone, again and again, through what a store would keep."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.point: InterruptNode | None = None
        self.journal = Journal(None, "1")
        self.ids = 0

    async def run(
        self, *, answers: dict[str, object] | None = None, cancel: CancelToken | None = None
    ) -> ToolReturn | None:
        """Execute it; None when it waits. Agents inside get no time to stop."""
        run = RunContext(
            checkpoint_id="1",
            new_id=self._new_id,
            journal=self.journal,
            waiting=InterruptNode.from_json(self.point.to_json()) if self.point else None,
            answers=answers or {},
            cancel=cancel or CancelToken(),
        )
        planned = PlannedCall(ToolCall("c1", self.tool.definition.name, {}))
        tools = {self.tool.definition.name: self.tool}
        scope = Scope(run=run, address=Address((Segment("agent", "A"),)))
        self.journal = Journal(None, "1")
        run.journal = self.journal
        with entered(scope):
            try:
                return await execute(planned, tools, why="", grace=timedelta())
            except InterruptSignal as signal:
                self.point = signal.point
                return None

    def _new_id(self) -> str:
        self.ids += 1
        return f"p{self.ids}"


@pytest.mark.parametrize("has_started", [True, False])
async def test_i5_an_agent_that_does_not_stop_is_cut_off(has_started: bool) -> None:
    """Then it begins again, unless something in it had started that people agreed to."""
    inside = asyncio.Event()

    async def stuck(input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        yield make_message("stuck")
        if has_started:
            with address_segment("tool", "pay", "i1"):
                await start_call(Plain("pay").definition, {"x": 1})
        inside.set()
        await asyncio.Event().wait()

    async def body() -> str:
        async for _ in run_agent(function_agent("B", stuck), AgentInput(messages=())):
            pass
        return "never"

    alone = Round(Plain("outer", lambda _: body()))
    token = CancelToken()
    task = asyncio.ensure_future(alone.run(cancel=token))
    await inside.wait()
    token.cancel()

    assert await task is None
    assert alone.point is not None
    (context,) = alone.point.contexts()
    assert isinstance(context.info, InDoubtInfo if has_started else CancelInfo)


async def test_an_entry_that_is_being_written_is_not_cut_off() -> None:
    writing, go = asyncio.Event(), asyncio.Event()

    class Slow(MemoryCheckpointStore):
        async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
            writing.set()
            await go.wait()
            await super().append(checkpoint_id, entry, base=base, index=index)

    pay, look = Hanging("pay"), Hanging("look")
    calls = [call("pay", id="c1"), call("look", id="c2")]
    store = Slow()
    world = World([calls, say("done")], [approval_gate(pay), approval_gate(look)], store=store)
    asked = contexts(await world.run())
    targets = {context.id: yes(context) for context in asked.values()}
    token = CancelToken()
    events = world.runner().resume("1", targets, cancel=token)
    task = asyncio.ensure_future(collect(events))
    await writing.wait()
    token.cancel()
    go.set()
    with pytest.raises(RunCancelledError):
        await task

    left = {context.address.segments[-1].sub_id: context for context in await world.pending()}
    assert all(isinstance(context.info, InDoubtInfo) for context in left.values())
    assert (len(pay.calls), len(look.calls)) == (1, 1)
    answers = {context.id: InDoubtResult(choice="ran") for context in left.values()}
    assert brief(await world.resume(answers))[-1] == "says done"


async def test_a_stopped_call_without_its_state_runs_nothing() -> None:
    slow = Hanging("slow")
    alone = Round(slow)
    token = CancelToken()
    token.cancel()
    assert await alone.run(cancel=token) is None
    assert slow.calls == []
    point = alone.point
    assert point is not None
    alone.point = InterruptNode(
        id=point.id, address=point.address, slot=point.slot, info=point.info, state="lost"
    )

    with pytest.raises(CheckpointDecodeError, match="lost its state"):
        await alone.run(answers={point.id: None})
    assert slow.calls == []


async def test_what_a_dead_process_did_inside_a_call_is_read_although_the_run_is_stopped() -> None:
    """The outer call is entered: only so its inner agent finds what has finished in it."""
    entry = '{"kind":"finished","at":"agent:A;tool:outer:c1;agent:B;tool:x:i1"}'
    outer = Plain("outer")
    run = RunContext(checkpoint_id="1", new_id=str, journal=Journal(None, "1", entries=[entry]))
    run.cancel.cancel()
    planned = PlannedCall(ToolCall("c1", "outer", {}))
    with entered(Scope(run=run, address=Address((Segment("agent", "A"),)))):
        result = await execute(planned, {"outer": outer}, why="")

    assert result.text == "outer ok {}"
