"""A time limit of tools: a call in doubt, or a failure that says that it may have taken effect."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pytest

from agents import AgentEvent, InDoubtInfo, InDoubtResult, Runner, interrupt, tool
from agents.core.address import Address, Segment
from agents.core.calls import ToolCall
from agents.core.component.state import get_resume_context
from agents.core.errors import AgentConfigError
from agents.core.journal import Journal
from agents.core.messages import PlannedCall
from agents.core.scope import RunContext, Scope, StartingCall, entered
from agents.core.tools import Tool
from agents.gates.approval import approval_gate
from agents.models import call, say
from agents.tools.call import execute
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.support import Asker, Plain, World, brief, collect, contexts, yes

SHORT = timedelta(milliseconds=30)
LONG = timedelta(seconds=60)


async def forever() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


def a_world(made: Tool) -> World:
    return World([call("work", id="c1"), say("done")], [made])


async def approved(world: World, **options: timedelta) -> list[AgentEvent]:
    """Run to the approval of the call, approve it, and return the events after that."""
    runner = world.runner(**options)  # type: ignore[arg-type]
    asked = contexts(await collect(runner.query("hi", checkpoint_id="1")))
    targets = {context.id: yes(context) for context in asked.values()}
    return await collect(runner.resume("1", targets))


async def test_a_tool_without_a_gate_fails_and_the_model_reads_that_it_may_have_acted() -> None:
    slow = tool(name="work", timeout=SHORT)(forever)
    lines = brief(await a_world(slow).run())
    assert lines[-2] == (
        "tool work#c1 failed: The tool failed: It did not finish within its limit of 0.03 seconds. "
        "It may have taken effect."
    )
    assert lines[-1].endswith("done")


async def test_people_are_asked_about_an_approved_call_at_its_limit() -> None:
    slow = tool(name="work", gate="approval", timeout=SHORT)(forever)
    (doubt,) = contexts(await approved(a_world(slow))).values()
    assert isinstance(doubt.info, InDoubtInfo)
    assert doubt.info.limit == SHORT
    assert str(doubt.info) == "Work: it did not finish within 0.03 seconds. What happened?"


@pytest.mark.parametrize("choice", ["ran", "give_up"])
async def test_the_answer_about_the_limit_is_the_result(choice: str) -> None:
    slow = tool(name="work", gate="approval", timeout=SHORT)(forever)
    world = a_world(slow)
    (doubt,) = contexts(await approved(world)).values()
    answer = InDoubtResult(choice=choice, result="412 rows" if choice == "ran" else None)  # type: ignore[arg-type]
    lines = brief(await collect(world.runner().resume("1", {doubt.id: answer})))
    lines_by_choice = {
        "ran": "tool work#c1 ran: 412 rows",
        "give_up": "tool work#c1 failed: 'work' was started, and did not finish within its limit "
        "of 0.03 seconds. It is unknown whether it took effect. Do not call it again by yourself; "
        "say so to the people.",
    }
    assert lines[0] == lines_by_choice[choice]


async def test_an_idempotent_call_fails_at_its_limit() -> None:
    slow = tool(name="work", gate="approval", timeout=SHORT, idempotent=True)(forever)
    world = a_world(slow)
    assert "It may have taken effect." in brief(await approved(world))[0]


async def test_the_thread_of_a_function_goes_on() -> None:
    go_on, ended = threading.Event(), threading.Event()

    @tool(gate="approval", timeout=SHORT)
    def work() -> str:
        """Work in a thread."""
        go_on.wait(10)
        ended.set()
        return "done"

    (doubt,) = contexts(await approved(a_world(work))).values()
    assert isinstance(doubt.info, InDoubtInfo)
    assert not ended.is_set()
    go_on.set()
    assert await asyncio.to_thread(ended.wait, 10)


async def test_a_generator_is_limited_as_a_whole() -> None:
    go_on = threading.Event()

    @tool(timeout=SHORT)
    def work() -> Iterator[str]:
        """Yield one part, then wait."""
        yield "part"
        go_on.wait(10)

    lines = brief(await a_world(work).run())
    go_on.set()
    assert "did not finish within its limit" in lines[-2]


async def test_a_tool_that_catches_its_cancellation_does_not_hold_the_run() -> None:
    go_on = asyncio.Event()

    @tool(timeout=SHORT)
    async def work() -> str:
        """Refuse to end."""
        while not go_on.is_set():
            with suppress(asyncio.CancelledError):
                await go_on.wait()
        return "done"

    run = RunContext(checkpoint_id="1", new_id=str, journal=Journal(None, "1"))
    planned = PlannedCall(ToolCall("c1", "work", {}))
    with entered(Scope(run=run, address=Address((Segment("agent", "A"),)))):
        result = await execute(planned, {"work": work}, why="", grace=timedelta())
    go_on.set()
    assert "did not finish within its limit" in result.text


async def test_a_tool_that_ends_at_its_cancellation_keeps_its_result() -> None:
    @tool(timeout=SHORT)
    async def work() -> str:
        """Return what was done so far."""
        with suppress(asyncio.CancelledError):
            await forever()
        return "half"

    assert brief(await a_world(work).run())[-2] == "tool work#c1 ran: half"


async def test_the_time_before_the_start_does_not_count() -> None:
    pay = Plain("pay")

    async def look_up(_: StartingCall) -> dict[str, object]:
        await asyncio.sleep(SHORT.total_seconds() * 3)
        return {}

    world = World([call("pay", id="c1"), say("done")], [approval_gate(pay)])
    world.before_start = look_up  # type: ignore[assignment]
    lines = brief(await approved(world, tool_timeout=SHORT))
    assert lines[0].startswith("tool pay#c1 ran")


async def test_waiting_for_people_does_not_count() -> None:
    @tool(timeout=LONG)
    async def work() -> str:
        """Ask people."""
        is_target, _, answer = get_resume_context(str)
        if not is_target:
            interrupt("go on?")
        return f"people said {answer}"

    world = a_world(work)
    runner = world.runner()
    (asked,) = contexts(await collect(runner.query("hi", checkpoint_id="1"))).values()
    lines = brief(await collect(runner.resume("1", {asked.id: "yes"})))
    assert lines[0] == "tool work#c1 ran: people said yes"


async def test_the_runner_has_a_default_that_a_tool_overrides() -> None:
    quick, slow = tool(name="work")(forever), tool(name="long", timeout=LONG)(forever)
    world = a_world(quick)
    lines = brief(await collect(world.runner(tool_timeout=SHORT).query("hi")))
    assert "within its limit of 0.03 seconds" in lines[-2]
    events = World([call("long", id="c1")], [slow]).runner(tool_timeout=SHORT).query("hi")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(collect(events), 0.2)


async def test_a_tool_that_runs_agents_has_no_default_limit() -> None:
    nested = AgentTool(Asker("inner"))
    world = World([call("inner", {"request": "x"}, id="c1"), say("done")], [nested])
    events = await collect(world.runner(tool_timeout=timedelta(microseconds=1)).query("hi"))
    assert contexts(events)


@pytest.mark.parametrize("limit", [timedelta(), timedelta(seconds=-1), 30, "30s"])
def test_a_limit_that_is_no_positive_duration_is_refused(limit: object) -> None:
    with pytest.raises(AgentConfigError, match="positive duration"):
        tool(timeout=limit)(forever)  # type: ignore[call-overload]
    with pytest.raises(AgentConfigError, match="positive duration"):
        Runner(World([]).agent(), tool_timeout=limit)  # type: ignore[arg-type]
