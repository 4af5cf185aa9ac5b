"""An agent's code that would end the process, such as `sys.exit()`, fails alone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypedDict

import pytest
from pydantic_ai.messages import ModelMessage

from agents import (
    Agent,
    AgentEvent,
    AgentInput,
    ChatModelAgent,
    MemoryCheckpointStore,
    Runner,
    ScriptedModel,
    Tool,
    ToolEvent,
    approval_gate,
    interrupt,
    make_message,
    tool,
)
from agents.core.component.exits import contained, contained_task
from agents.core.errors import ProcessExitError
from agents.core.observers import ToolOutcome
from agents.graph import GraphAgent, StateGraph
from agents.middlewares import Middleware
from agents.models import call, say
from agents.policy import Deny
from agents.policy.base import PolicyCall, Ruling, ruling_of
from agents.workflows import ParallelAgent
from tests.support.hooks import HOOKS
from tests.unit.agents.support import yes


def exit_2() -> None:
    sys.exit(2)


def interrupt_by_key() -> None:
    raise KeyboardInterrupt


def leave_generator() -> None:
    raise GeneratorExit


class State(TypedDict):
    input: str
    output: str


EXITS = [exit_2, interrupt_by_key, leave_generator]


@pytest.fixture(params=EXITS)
def leave(request: pytest.FixtureRequest) -> Callable[[], None]:
    exit_function: Callable[[], None] = request.param
    return exit_function


def _stop_iteration() -> str:
    return next(iter(()))


def tools(leave: Callable[[], None]) -> list[Any]:
    @tool
    def plain() -> str:
        """Leave."""
        leave()
        return "no"

    @tool
    async def awaited() -> str:
        """Leave."""
        await asyncio.sleep(0)
        leave()
        return "no"

    @tool
    def pieces() -> Iterator[str]:
        """Leave."""
        yield "one"
        leave()

    @tool
    async def awaited_pieces() -> AsyncIterator[str]:
        """Leave."""
        yield "one"
        leave()

    @tool
    async def stops() -> str:
        """Leave by the exception that no future carries."""
        return _stop_iteration()

    @tool
    def stops_in_thread() -> str:
        """Leave by the exception that no future carries."""
        return _stop_iteration()

    return [plain, awaited, pieces, awaited_pieces, stops, stops_in_thread]


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("is_gated", [False, True])
async def test_a_tool_that_exits_has_failed_and_the_model_is_told(
    leave: Callable[[], None], at: int, is_gated: bool
) -> None:
    exit_tool = tools(leave)[at]
    name = exit_tool.definition.name
    model = ScriptedModel([[call(name, id="c1"), call("look", id="c2")], say("It failed.")])

    @tool
    def look() -> str:
        """Look."""
        return "fine"

    gated = approval_gate(exit_tool) if is_gated else exit_tool
    agent = ChatModelAgent(name="A", model=model, tools=[gated, look])
    runner = Runner(agent, checkpoint_store=MemoryCheckpointStore())

    events = [event async for event in runner.query("go", checkpoint_id="1")]
    if is_gated:
        (waits,) = await runner.pending("1")
        events += [event async for event in runner.resume("1", {waits.id: yes(waits)})]

    done = {event.call.id: event for event in events if isinstance(event, ToolEvent)}
    assert done["c1"].outcome is ToolOutcome.FAILED
    assert done["c2"].outcome is ToolOutcome.RAN
    assert model.calls == 2


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_hook_that_exits_fails_the_run(leave: Callable[[], None], hook: str) -> None:
    async def go(*_: object) -> None:
        leave()

    kind = type("Leaving", (Middleware,), {hook: go})

    @tool
    def look() -> str:
        """Look."""
        return "fine"

    model = ScriptedModel([call("look"), say("never")])
    agent = ChatModelAgent(name="A", model=model, tools=[look], middlewares=[kind()])
    with pytest.raises(Exception, match=r"it raised \w+"):
        [event async for event in Runner(agent).query("go")]


async def test_a_model_that_exits_fails_the_run(leave: Callable[[], None]) -> None:
    class Model(ScriptedModel):
        def _next(self, messages: list[ModelMessage], info: Any) -> Any:
            leave()

    agent = ChatModelAgent(name="A", model=Model([]))
    with pytest.raises(Exception, match=r"it raised \w+"):
        [event async for event in Runner(agent).query("go")]
    with pytest.raises(Exception, match=r"it raised \w+"):
        [event async for event in Runner(agent, streaming=True).query("go")]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_node_that_exits_fails_the_graph(leave: Callable[[], None], is_async: bool) -> None:
    def plain(state: State) -> dict[str, Any]:
        leave()
        return {}

    async def awaited(state: State) -> dict[str, Any]:
        leave()
        return {}

    graph = StateGraph(State)
    graph.add_node("leaving", awaited if is_async else plain)
    graph.set_entry_point("leaving")
    with pytest.raises(ProcessExitError):
        await graph.compile().invoke({"input": "", "output": ""})
    agent = GraphAgent(graph.compile(), name="G")
    with pytest.raises(ProcessExitError):
        [event async for event in Runner(agent).query("go")]


async def test_an_agent_that_exits_fails_the_run(leave: Callable[[], None]) -> None:
    class Leaving:
        name = "L"
        description = ""

        async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
            yield make_message("one")
            leave()

        resume = run

    agent: Agent = Leaving()
    for root in (agent, ParallelAgent(name="P", agents=[agent])):
        with pytest.raises(ProcessExitError):
            [event async for event in Runner(root).query("go")]


async def test_a_policy_that_exits_denies(leave: Callable[[], None]) -> None:
    class Leaving:
        async def evaluate(self, call: PolicyCall) -> Ruling:
            leave()
            raise AssertionError

    policy_call = PolicyCall(tool="pay", arguments={}, address="a", thread="t")
    assert isinstance(await ruling_of(Leaving(), policy_call), Deny)


async def failed(made: Tool) -> ToolEvent:
    """Run a tool that fails; give what is told of it."""
    model = ScriptedModel([call(made.definition.name), say("It failed.")])
    agent = ChatModelAgent(name="A", model=model, tools=[made])
    (done,) = [event async for event in Runner(agent).query("go") if isinstance(event, ToolEvent)]
    assert done.outcome is ToolOutcome.FAILED
    return done


async def test_the_exit_of_a_task_group_is_the_failure_of_its_tool() -> None:
    @tool
    async def grouped() -> str:
        """Leave in a group."""
        raise BaseExceptionGroup("tasks", [ValueError("one"), SystemExit(2)])

    assert "SystemExit: 2" in (await failed(grouped)).result


async def test_a_forgotten_coroutine_is_closed_as_ever() -> None:
    """The `GeneratorExit` that closes a coroutine is no error of the code in it."""

    async def work() -> None:
        with contained():
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    coroutine = task.get_coro()
    assert coroutine is not None
    coroutine.close()
    task.cancel()


def test_a_task_of_a_tool_that_exits_does_not_end_the_loop(leave: Callable[[], None]) -> None:
    async def part() -> None:
        await asyncio.sleep(0)
        leave()

    @tool
    async def parted() -> str:
        """Leave in a task of its own."""
        async with asyncio.TaskGroup() as group:
            group.create_task(part(), name="part")
        return "no"

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(contained_task)
        cancelled = asyncio.create_task(part())
        cancelled.cancel()
        await failed(parted)

    asyncio.run(main())


async def test_a_question_in_a_bare_thread_is_a_failed_call_that_names_to_thread() -> None:
    @tool
    async def ask_in_a_thread() -> str:
        """Ask."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: interrupt("which?"))

    assert "asyncio.to_thread" in (await failed(ask_in_a_thread)).result
