"""Agents in agents, and tools that ask behind gates."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

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
    ResumeParams,
    ScriptedModel,
    approval_gate,
    composite_interrupt,
    follow_up_tool,
    get_interrupt_state,
    register,
)
from agents.agent import run_agent
from agents.chat import ChatInterruptInfo
from agents.core.codec import Json
from agents.core.errors import (
    UnknownInterruptError,
    UnusedAnswerError,
)
from agents.core.interrupt import InterruptSignal
from agents.core.messages import user_message
from agents.core.tools import CallText
from agents.models import Turn, call, say
from agents.tools import ToolSpec
from tests.unit.agents.support import (
    Asker,
    Plain,
    World,
    brief,
    collect,
    contexts,
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
