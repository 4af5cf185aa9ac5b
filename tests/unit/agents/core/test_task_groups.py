"""Groups of exceptions: what comes out of an `asyncio.TaskGroup` asks people like anything else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypedDict

import pytest
from pydantic_ai.messages import ModelMessage

from agents import (
    AgentConfigError,
    ChatModelAgent,
    MemoryCheckpointStore,
    ResumeDataError,
    Runner,
    ScriptedModel,
    Tool,
    address_segment,
    approval_gate,
    get_interrupt_state,
    get_resume_context,
    interrupt,
    make_message,
    stateful_interrupt,
)
from agents.agent import Agent, AgentEvent, AgentInput, function_agent, run_agent
from agents.core.asking.answers import Denied, Expired
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.tools import ToolWrapper
from agents.graph import END, START, GraphAgent, StateGraph
from agents.middlewares import Middleware
from agents.models import call, say
from agents.tools import ToolSpec
from agents.workflows import SequentialAgent
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.support import Asker, Plain, Solo, World, brief, collect, contexts, yes


async def side_by_side(*work: Awaitable[object]) -> None:
    async with asyncio.TaskGroup() as group:
        for awaitable in work:
            group.create_task(awaitable)  # type: ignore[arg-type]


def group_of(*children: Asker, name: str = "G") -> object:
    """An agent of one's own that runs others side by side, and passes their words on."""

    async def run(given: AgentInput) -> AsyncIterator[AgentEvent]:
        said: list[AgentEvent] = []

        async def child(agent: Asker) -> None:
            async for event in run_agent(agent, given):
                said.append(event)  # noqa: PERF401 - what was told before a signal counts

        await side_by_side(*map(child, children))
        for event in said:
            yield event

    return function_agent(name, run)


@pytest.mark.parametrize("around", ["alone", "sequence", "tool"])
async def test_an_agent_may_run_others_in_a_task_group(around: str) -> None:
    group = group_of(Asker("a"), Asker("b"))
    script = [call("G", {"request": "go"}, id="c1"), say("done")]

    def runner() -> Runner:
        agents = {
            "alone": group,
            "sequence": SequentialAgent("S", [group, Asker("after")]),  # type: ignore[list-item]
            "tool": ChatModelAgent(
                name="A",
                model=ScriptedModel(script),  # type: ignore[arg-type]
                tools=[AgentTool(group)],  # type: ignore[arg-type]
            ),
        }
        return Runner(agents[around], checkpoint_store=store)  # type: ignore[arg-type]

    store = MemoryCheckpointStore()
    first = await collect(runner().query("hi", checkpoint_id="1"))
    waiting = contexts(first).values()
    del script[0]

    assert [context.info for context in waiting] == ["a?", "b?"]
    events = await collect(runner().resume("1", {context.id: "x" for context in waiting}))

    lines = brief(events)
    if around == "tool":
        assert lines == ["tool G#c1 ran: b got x", "says done"]
    else:
        assert lines[:2] == ["says a got x", "says b got x"]
    assert (around == "sequence") == (lines[-1] == "INT agent:S;agent:after")


async def test_what_an_agent_kept_before_its_task_group_it_keeps() -> None:
    async def run(given: AgentInput) -> AsyncIterator[AgentEvent]:
        _, has_state, count = get_interrupt_state(int)
        if not has_state:
            stateful_interrupt("first?", 41)
        await side_by_side(_drained(Asker("a"), given), _drained(Asker("b"), given))
        yield make_message(f"kept {count}")

    runner = Runner(function_agent("G", run), checkpoint_store=MemoryCheckpointStore())
    (first,) = contexts(await collect(runner.query("hi", checkpoint_id="1"))).values()
    second = contexts(await collect(runner.resume("1", {first.id: "go"}))).values()

    events = await collect(runner.resume("1", {context.id: "x" for context in second}))

    assert brief(events) == ["says kept 41"]


async def _drained(agent: Asker, given: AgentInput) -> None:
    async for _ in run_agent(agent, given):
        pass


async def _fails() -> None:
    raise OSError("broken")


async def test_an_error_beside_a_question_wins_and_is_kept_as_a_group_of_errors() -> None:
    async def run(given: AgentInput) -> AsyncIterator[AgentEvent]:
        await side_by_side(_drained(Asker("a"), given), _fails())
        yield make_message("never")

    runner = Runner(function_agent("G", run), checkpoint_store=MemoryCheckpointStore())

    with pytest.raises(ExceptionGroup) as raised:
        await collect(runner.query("hi", checkpoint_id="1"))

    assert [str(error) for error in raised.value.exceptions] == ["broken"]
    assert await runner.pending("1") == ()


async def _power_cut() -> None:
    raise PowerCut


class PowerCut(BaseException):
    pass


async def test_what_ends_the_process_goes_through() -> None:
    async def run(given: AgentInput) -> AsyncIterator[AgentEvent]:
        await side_by_side(_drained(Asker("a"), given), _power_cut())
        yield make_message("never")

    runner = Runner(function_agent("G", run), checkpoint_store=MemoryCheckpointStore())

    with pytest.raises(BaseExceptionGroup) as raised:
        await collect(runner.query("hi", checkpoint_id="1"))

    assert raised.value.subgroup(PowerCut) is not None


async def part(name: str) -> None:
    with address_segment("process", name):
        _, has_data, _ = get_resume_context(str)
        if not has_data:
            interrupt(f"{name}?")


async def own() -> str:
    """Ask one question of the component that runs this."""
    _, has_data, answer = get_resume_context(str)
    if not has_data:
        interrupt("own?")
    return str(answer)


async def _awaited(work: Awaitable[str]) -> str:
    return await work


async def in_a_group(*work: Awaitable[str]) -> str:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_awaited(awaitable)) for awaitable in work]
    return " ".join(task.result() for task in tasks)


class Hook(Middleware):
    """Ask in a task group before the model speaks."""

    async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        await in_a_group(own())
        return messages


async def _agent(_: AgentInput) -> AsyncIterator[AgentEvent]:
    yield make_message(await in_a_group(own()))


class State(TypedDict, total=False):
    input: str
    output: str


async def _node(_: State) -> dict[str, str]:
    return {"output": await in_a_group(own())}


def _graph(node: Callable[[State], Awaitable[dict[str, str]]]) -> Agent:
    graph = StateGraph(State)
    graph.add_node("n", node)
    graph.add_edge(START, "n")
    graph.add_edge("n", END)
    return GraphAgent(graph.compile(name="g"), "G")


def _chat(*tools: Tool, middlewares: Sequence[Middleware] = ()) -> Agent:
    script = [call("t", id="c1")] if tools else []
    model = ScriptedModel([*script, say("done")])
    return ChatModelAgent(name="A", model=model, tools=tools, middlewares=middlewares)


ASKING: dict[str, Callable[[], Agent]] = {
    "tool": lambda: _chat(Plain("t", lambda _: in_a_group(own()))),
    "gated tool": lambda: _chat(approval_gate(Plain("t", lambda _: in_a_group(own())))),
    "group in a group": lambda: _chat(Plain("t", lambda _: in_a_group(in_a_group(own())))),
    "segment": lambda: _chat(Plain("t", lambda _: in_a_group(_in_segment(own)))),
    "hook": lambda: _chat(middlewares=[Hook()]),
    "agent": lambda: function_agent("G", _agent),
    "sequence": lambda: SequentialAgent("S", [function_agent("G", _agent)]),
    "node": lambda: _graph(_node),
}


async def _in_segment(work: Callable[[], Awaitable[str]]) -> str:
    with address_segment("part", "x"):
        return await in_a_group(work())


@pytest.mark.parametrize("kind", ASKING)
async def test_a_component_asks_in_a_task_group_as_anywhere(kind: str) -> None:
    agent = ASKING[kind]()
    solo = Solo(agent)
    asked = await solo.ask()
    if kind == "gated tool":
        asked = await solo.ask({asked[0].id: yes(asked[0])})

    assert [context.info for context in asked] == ["own?"]
    await solo.answer({asked[0].id: "blue"})

    assert await solo.runner.pending("1") == ()


@pytest.mark.parametrize("asks", [interrupt, lambda info: stateful_interrupt(info, "kept")])
async def test_a_component_and_its_children_ask_in_one_task_group(
    asks: Callable[[str], NoReturn],
) -> None:
    async def with_state() -> str:
        _, has_state, state = get_interrupt_state(str)
        is_target, has_data, answer = get_resume_context(str)
        if not has_data:
            asks("own?")
        return f"{answer} {state} {is_target}" if has_state else f"{answer} {is_target}"

    group = lambda _: in_a_group(_in_segment(own), with_state())  # noqa: E731
    world = World([call("t", id="c1"), say("done")], [Plain("t", group)])
    asked = contexts(await world.run()).values()

    assert [context.info for context in asked] == ["own?", "own?"]
    events = await world.resume({c.id: str(len(c.address.segments)) for c in asked})

    state = "" if asks is interrupt else " kept"
    assert brief(events) == [f"tool t#c1 ran: 3 2{state} True", "says done"]


async def test_a_question_in_a_task_group_stays_after_an_answer_of_another_type() -> None:
    world = World(
        [call("t", id="c1"), say("done")],
        [Plain("t", lambda _: in_a_group(_in_segment(own), own()))],
    )
    asked = contexts(await world.run()).values()
    child, mine = sorted(asked, key=lambda context: -len(context.address.segments))

    with pytest.raises(ResumeDataError):
        await world.resume({child.id: "fine", mine.id: 5})

    assert [context.id for context in await world.pending()] == [mine.id]


async def test_two_questions_of_one_component_in_a_task_group_are_refused() -> None:
    world = World(
        [call("t", id="c1"), say("done")], [Plain("t", lambda _: in_a_group(own(), own()))]
    )

    with pytest.raises(AgentConfigError, match="address_segment"):
        await world.run()


@dataclass(frozen=True, slots=True)
class _AsksBeforeItsGate(ToolWrapper):
    """A tool that asks two questions side by side before its own gate."""

    @property
    def definition(self) -> ToolSpec:
        return self.tool.definition

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        await side_by_side(part("x"), part("y"))
        return await self.tool.call(arguments)


@pytest.mark.parametrize("gates", [0, 1])
async def test_a_denial_and_an_expiry_in_a_group_end_the_call_and_not_the_run(gates: int) -> None:
    tool: Tool = _AsksBeforeItsGate(approval_gate(Plain("t", lambda _: "never")))
    for _ in range(gates):
        tool = approval_gate(tool)
    world = World([call("t", id="c1"), say("done")], [tool])
    await world.run()
    for _ in range(gates):
        (gate,) = await world.pending()
        await world.resume({gate.id: yes(gate)})
    x, y = await world.pending()

    events = await world.resume({x.id: Expired(), y.id: Denied(reason="It is Friday.")})

    assert "A rule denies this request by now" in brief(events)[0]
    assert brief(events)[1] == "says done"


async def test_a_node_whose_group_got_no_answer_says_so() -> None:
    async def node(_: State) -> dict[str, str]:
        await side_by_side(part("x"), part("y"))
        return {"output": "never"}

    runner = Runner(_graph(node), checkpoint_store=MemoryCheckpointStore())
    asked = contexts(await collect(runner.query("hi", checkpoint_id="1")))
    questions = {context.id: Expired() for context in asked.values() if context.is_root_cause}

    events = await collect(runner.resume("1", questions))

    assert "This is not a rejection." in brief(events)[0]
