"""Groups of exceptions: what comes out of an `asyncio.TaskGroup` asks people like anything else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest

from agents import (
    ChatModelAgent,
    MemoryCheckpointStore,
    Runner,
    ScriptedModel,
    address_segment,
    approval_gate,
    get_interrupt_state,
    get_resume_context,
    interrupt,
    make_message,
    stateful_interrupt,
)
from agents.agent import AgentEvent, AgentInput, function_agent, run_agent
from agents.models import call, say
from agents.workflows import SequentialAgent
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.support import Asker, Plain, World, brief, collect, contexts, yes


async def side_by_side(*work: Awaitable[object]) -> None:
    async with asyncio.TaskGroup() as group:
        for one in work:
            group.create_task(one)  # type: ignore[arg-type]


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
    told = await collect(runner().resume("1", {context.id: "x" for context in waiting}))

    lines = brief(told)
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

    told = await collect(runner.resume("1", {context.id: "x" for context in second}))

    assert brief(told) == ["says kept 41"]


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


async def test_a_gate_around_a_task_group_is_asked_once() -> None:
    async def both(_: object) -> str:
        await side_by_side(part("x"), part("y"))
        return "both fine"

    gated = approval_gate(approval_gate(Plain("t", both)))
    world = World([call("t", id="c1"), say("done")], [gated])
    for name in ("U1", "U2"):
        (gate,) = await world.pending() or contexts(await world.run()).values()
        await world.resume({gate.id: yes(gate, by=name)})

    questions = await world.pending()
    assert [context.info for context in questions] == ["x?", "y?"]
    told = await world.resume({context.id: "yes" for context in questions})

    assert brief(told) == ["tool t#c1 ran: both fine", "says done"]
