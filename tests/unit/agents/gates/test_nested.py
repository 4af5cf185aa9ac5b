"""Agents in agents, tools that ask behind gates, and signals that go astray."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from agents import (
    Agent,
    AgentEvent,
    AgentInput,
    ApprovalInfo,
    ChatModelAgent,
    FollowUpInfo,
    MessageEvent,
    ResumeDataError,
    ResumeError,
    ResumeParams,
    ReviewEditInfo,
    ScriptedModel,
    Tool,
    ToolEvent,
    ToolOutcome,
    address_segment,
    approval_gate,
    composite_interrupt,
    follow_up_tool,
    get_interrupt_state,
    get_resume_context,
    interrupt,
    make_message,
    register,
    tool,
)
from agents.agent import run_agent
from agents.chat import ChatInterruptInfo
from agents.core.codec import Json
from agents.core.errors import (
    CheckpointDecodeError,
    OutsideRunError,
    SwallowedInterruptError,
    UnknownInterruptError,
    UnusedAnswerError,
)
from agents.core.interrupt import InterruptSignal, keep_waiting
from agents.core.messages import user_message
from agents.core.scope import current_address
from agents.core.tools import CallText
from agents.models import Turn, call, say
from agents.tools import ToolSpec
from tests.unit.agents.support import (
    Asker,
    Died,
    Plain,
    World,
    brief,
    collect,
    contexts,
    follow,
    yes,
)


@dataclass
class AgentAsTool:
    """A small agent tool: its result is what the agent said last."""

    agent: Agent

    @property
    def definition(self) -> ToolSpec:
        return ToolSpec(name=self.agent.name, description="", schema={}, idempotent=True)

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        return {"request": str(arguments.get("request", ""))}

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        return CallText(title=self.agent.name)

    async def call(self, arguments: dict[str, Json]) -> str:
        text = ""
        request = AgentInput(messages=(user_message(str(arguments["request"])),))
        try:
            async for event in run_agent(self.agent, request):
                if isinstance(event, MessageEvent):
                    text = event.text
        except InterruptSignal as signal:
            composite_interrupt("agent tool interrupt", text, signal)
        return text


@register("test.steps/1")
@dataclass(frozen=True)
class Steps:
    done: list[int]


@dataclass
class Row:
    """Runs agents side by side, or again and again, and keeps what is done."""

    name: str
    agents: Sequence[Agent]
    rounds: int = 1
    description: str = ""

    def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        return self._go(input, set(), 0)

    async def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002
        _, _, steps = get_interrupt_state(Steps)
        assert steps is not None
        async for event in self._go(input, set(steps.done[1:]), steps.done[0]):
            yield event

    async def _go(
        self, given: AgentInput, done: set[int], first: int
    ) -> AsyncGenerator[AgentEvent, None]:
        for number in range(first, self.rounds):
            signals = []
            for at, agent in enumerate(self.agents):
                if at in done:
                    continue
                try:
                    async for event in run_agent(agent, given):
                        yield event
                    done.add(at)
                except InterruptSignal as signal:
                    signals.append(signal)
            if signals:
                composite_interrupt("row", Steps([number, *done]), *signals)
            done.clear()


def inner_world() -> tuple[World, Plain, list[ScriptedModel]]:
    pay, log = Plain("pay"), Plain("log")
    inner_script: list[Turn] = [call("pay", {"x": 1}, id="i1"), say("inner done")]
    models = [ScriptedModel(inner_script)]

    @dataclass
    class Nested(World):
        def agent(self, name: str = "Outer") -> Agent:
            inner_models = [m for m in models if m.calls]
            models.append(ScriptedModel(inner_script[sum(m.calls for m in inner_models) :]))
            tools = [approval_gate(pay)]
            inner = ChatModelAgent(name="Inner", model=models[-1], tools=tools)
            self.tools = [AgentAsTool(inner), log]
            return super().agent(name)

    script: list[Turn] = [
        [call("Inner", {"request": "do it"}, id="o1"), call("log", id="o2")],
        say("outer done"),
    ]
    return Nested(script, durability="step"), pay, models


async def test_80_an_agent_as_a_tool_is_interrupted_and_resumed() -> None:
    world, pay, models = inner_world()

    events = await world.run()

    address = "agent:Outer;tool:Inner:o1;agent:Inner;tool:pay:i1"
    assert brief(events)[1:] == ["tool log#o2 ran: log ok {}", f"INT {address}"]
    context = contexts(events)["i1"]
    chain = []
    at = context.parent
    while at is not None:
        chain.append((str(at.address), at.info))
        at = at.parent
    assert chain == [
        ("agent:Outer;tool:Inner:o1;agent:Inner", ChatInterruptInfo(agent_name="Inner")),
        ("agent:Outer;tool:Inner:o1", "agent tool interrupt"),
        ("agent:Outer", ChatInterruptInfo(agent_name="Outer")),
    ]

    done = await world.resume({address: yes(context)})

    assert brief(done) == ["tool Inner#o1 ran: inner done", "says outer done"]
    assert (len(pay.calls), sum(m.calls for m in models)) == (1, 2)
    first = models[1].inputs[0][0].parts[0]
    assert getattr(first, "content", "") == "do it"


async def test_every_info_of_the_runtime_can_be_printed() -> None:
    world, _, _ = inner_world()
    context = contexts(await world.run())["i1"]

    assert context.parent is not None
    assert str(context.parent.info) == "Agent 'Inner' interrupted"


async def test_79_d11_a_parent_takes_only_its_own_kind_of_answer() -> None:
    world, _, _ = inner_world()
    context = contexts(await world.run())["i1"]
    assert context.parent is not None
    inner, tool = context.parent, context.parent.parent
    assert tool is not None

    with pytest.raises(ResumeDataError, match="Inner"):
        await world.resume({inner.id: "x"})
    with pytest.raises(UnusedAnswerError, match="nobody used the answer for agent:Outer;tool:"):
        await world.resume({tool.id: "x"})

    assert contexts(await world.resume({}))["i1"].id == context.id


async def test_i6_the_second_run_of_an_agent_has_an_address_of_its_own() -> None:
    world = World([])
    loop = Row("loop", [Asker("a")], rounds=2)

    first = contexts(await collect(world.runner(loop).query("hi", checkpoint_id="1")))
    assert list(first) == ["agent:loop;agent:a"]
    runner = world.runner(loop)
    second_events = await collect(
        runner.resume_with_params("1", ResumeParams(targets={"agent:loop;agent:a": "one"}))
    )
    second = second_events[-1].contexts[0]  # type: ignore[union-attr]
    last = await collect(
        world.runner(loop).resume_with_params("1", ResumeParams(targets={second.id: "two"}))
    )

    assert brief(second_events)[:2] == ["says a got one", "says a asking"]
    assert str(second.address) == "agent:loop;agent:a:2"
    assert brief(last) == ["says a got two"]
    keys = [event.key for event in (*second_events, *last)]
    assert len(set(keys)) == len(keys)
    assert second_events[0].run_path == ("loop", "a")


async def test_i6_a_sibling_that_is_not_answered_is_not_entered() -> None:
    entered: list[str] = []

    class Counted(Asker):
        def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
            entered.append(self.name)
            return super().resume(input)

    world = World([])
    row = Row("row", [Counted("a"), Counted("b")])
    asked = (await collect(world.runner(row).query("hi", checkpoint_id="1")))[-1].contexts  # type: ignore[union-attr]
    params = ResumeParams(targets={asked[1].id: "B"})
    events = await collect(world.runner(row).resume_with_params("1", params))

    assert brief(events) == ["says b got B", "INT agent:row;agent:a"]
    assert events[-1].contexts == (asked[0],)  # type: ignore[union-attr]
    assert entered == ["b"]

    again = await collect(world.runner(row).resume("1"))
    assert again[-1].contexts[0].id != asked[0].id  # type: ignore[union-attr]
    assert entered == ["b", "a"]


async def test_d3_a_tool_that_asks_behind_a_gate() -> None:
    world = World([call("ask_people", {"questions": ["who?"]}, id="c1"), say("done")])
    world.tools = [approval_gate(follow_up_tool())]
    outer = contexts(await world.run())["c1"]
    assert isinstance(outer.info, ApprovalInfo)

    inner = contexts(await world.resume({outer.id: yes(outer)}))["c1"]
    assert isinstance(inner.info, FollowUpInfo)
    assert inner.parent is not None
    with pytest.raises(UnknownInterruptError):
        await world.resume({outer.id: yes(outer)})

    events = await world.resume({inner.id: "Ada"})

    assert brief(events) == ["tool ask_people#c1 answered: Ada", "says done"]


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

    params = ResumeParams(targets=answers)
    with pytest.raises(ResumeDataError, match="amount"):
        await follow(world.runner().resume_with_params("1", params), seen)

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


async def test_two_questions_of_one_task_group() -> None:
    async def ask(name: str) -> str:
        with address_segment("part", name):
            is_target, _, data = get_resume_context(str)
            return str(data) if is_target else interrupt(f"{name}?")

    async def both() -> str:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(name)) for name in ("x", "y")]
        return " ".join(task.result() for task in tasks)

    world = World([call("form", id="c1"), say("done")], [Plain("form", lambda _: both())])
    asked = contexts(await world.run())
    first, two = asked.values()
    assert [first.info, two.info] == ["x?", "y?"]
    assert first.parent == two.parent

    events = await world.resume({first.id: "1", two.id: "2"})

    assert brief(events) == ["tool form#c1 ran: 1 2", "says done"]


async def test_an_error_beside_a_question_wins() -> None:
    async def fail() -> str:
        raise ValueError("bad")

    async def ask() -> str:
        interrupt("q")

    async def mixed() -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask())
            group.create_task(fail())
        return "never"

    world = World([call("mixed", id="c1"), say("done")], [Plain("mixed", lambda _: mixed())])

    events = await world.run()

    assert brief(events)[1].startswith("tool mixed#c1 failed: The tool failed: ExceptionGroup")
    assert brief(events)[2] == "says done"


async def test_a_group_with_more_than_errors_ends_the_run() -> None:
    async def both() -> str:
        raise BaseExceptionGroup("both", [KeyError("x"), Died()])

    world = World([call("both", id="c1"), say("done")], [Plain("both", lambda _: both())])

    with pytest.raises(BaseExceptionGroup):
        await world.run()


async def test_a_tool_that_is_cancelled_from_inside_has_failed() -> None:
    async def cancelled() -> str:
        raise asyncio.CancelledError

    world = World([call("t", id="c1"), say("done")], [Plain("t", lambda _: cancelled())])

    first, failed, last = brief(await world.run())

    assert (first, last) == ("calls t#c1", "says done")
    assert failed.startswith("tool t#c1 failed: The tool failed: ToolError: it was cancelled")


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

    params = ResumeParams(targets={context.id: "many"})
    with pytest.raises(ResumeDataError, match="a number"):
        await follow(world.runner().resume_with_params("1", params), seen)

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
    store = world.store
    stored = await store.load("1")  # type: ignore[attr-defined]
    damaged = stored.data.replace('"countersign.chat-state/1"', '"dict"')
    store._kept["1"].data = damaged  # type: ignore[attr-defined]

    with pytest.raises(CheckpointDecodeError):
        await world.resume({context.id: yes(context)})


def test_outside_of_a_run_there_is_no_address() -> None:
    with pytest.raises(OutsideRunError, match="current_address"):
        current_address()
    with pytest.raises(OutsideRunError):
        interrupt("q")


def test_tools_keep_the_protocol() -> None:
    tools: list[Tool] = [AgentAsTool(Asker("a")), Plain("p")]
    assert [tool.definition.name for tool in tools] == ["a", "p"]
