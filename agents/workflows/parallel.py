"""The parallel agent: runs agents side by side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from agents.agent import Agent, AgentEvent, AgentInput, run_agent
from agents.core.cancel import stop
from agents.core.codec import register
from agents.core.component.state import get_interrupt_state
from agents.core.errors import CheckpointDecodeError
from agents.core.interrupt import InterruptSignal, composite_interrupt, keep_waiting
from agents.core.pending import Unanswerable
from agents.core.scope import current_address
from agents.runs.topology import Component, Key, agent_component
from agents.workflows.sequential import check_children, gone


@register("countersign.parallel-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelInfo(Unanswerable):
    """Parallel agents are interrupted. Stored: version 1, must stay readable.

    Attributes:
        agent_name: Name of the parallel agent.
        waiting: Names of the interrupted agents, in order.
    """

    agent_name: str
    waiting: list[str]

    def __str__(self) -> str:
        return "Parallel workflow interrupted"


@register("countersign.parallel-state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelState:
    """The ended and the interrupted branches. Stored: version 1, must stay readable."""

    done: list[str]
    waiting: list[str]


_Told = tuple[int, AgentEvent | None]
"""Number of a branch, and its event; None marks its end."""


class ParallelAgent:
    """Runs agents side by side, each on the same input, without notes of the others.

    All branches run to their end or to an interrupt. Then the agent interrupts for all interrupted
    branches; an error in a branch takes precedence and ends the agent. On resume, ended branches do
    not run again. Later agents read the notes in order of the branches, not of time.

    Args:
        name: Unique among its siblings; part of addresses.
        agents: The branches; at least one.
        description: What the agent is good at, for models that may call it.

    Raises:
        AgentConfigError: There is no agent.
        DuplicateNameError: Two agents share a name.
    """

    def __init__(self, name: str, agents: Sequence[Agent], *, description: str = "") -> None:
        check_children(name, agents)
        self.name = name
        self.description = description
        self._agents = tuple(agents)

    async def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Run the branches; see `Agent.run`."""
        async with aclosing(self._run_branches(input, set())) as events:
            async for event in events:
                yield event

    async def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Resume the answered branches; see `Agent.resume`."""
        _, has_state, state = get_interrupt_state(ParallelState)
        if not has_state or state is None:
            raise CheckpointDecodeError(f"agent {self.name!r} has lost how far it was")
        names = [agent.name for agent in self._agents]
        for name in state.waiting:
            if name not in names:
                keep_waiting(gone(name, names))
        async with aclosing(self._run_branches(input, set(state.done))) as events:
            async for event in events:
                yield event

    def components(self) -> Mapping[Key, Component]:
        """The branches; see `Described`."""
        return dict(agent_component(agent) for agent in self._agents)

    async def _run_branches(
        self, given: AgentInput, done: set[str]
    ) -> AsyncGenerator[AgentEvent, None]:
        queue: asyncio.Queue[_Told] = asyncio.Queue()
        tasks = {
            number: asyncio.create_task(_branch(number, agent, given, queue))
            for number, agent in enumerate(self._agents)
            if agent.name not in done
        }
        try:
            async for event in _events(queue, len(tasks)):
                yield event
            await asyncio.wait(tasks.values())
        finally:
            await stop(*tasks.values())
        failures = {
            number: failure for number, task in tasks.items() if (failure := _failure(task))
        }
        self._end(failures)

    def _end(self, failures: Mapping[int, BaseException]) -> None:
        """Raise the failures of the branches, in their order.

        Raises:
            InterruptSignal: Branches are interrupted.
            BaseException: A branch has failed. Other failures are added as notes.
        """
        errors = [error for error in failures.values() if not isinstance(error, InterruptSignal)]
        if errors:
            # An exception that ends the process takes precedence over one that ends the run.
            first = min(errors, key=lambda error: isinstance(error, Exception))
            for other in errors:
                if other is not first:
                    first.add_note(f"beside it: {type(other).__name__}: {other}")
            raise first
        signals = [error for error in failures.values() if isinstance(error, InterruptSignal)]
        if signals:
            waiting = [self._agents[number].name for number in failures]
            done = [agent.name for agent in self._agents if agent.name not in waiting]
            info = ParallelInfo(agent_name=self.name, waiting=waiting)
            composite_interrupt(info, ParallelState(done=done, waiting=waiting), *signals)


async def _branch(
    number: int, agent: Agent, given: AgentInput, queue: asyncio.Queue[_Told]
) -> None:
    at = str(current_address())
    try:
        async with aclosing(run_agent(agent, given)) as events:
            async for event in events:
                inside = replace(event, branches=((at, number), *event.branches))
                queue.put_nowait((number, inside))
    finally:
        queue.put_nowait((number, None))


async def _events(queue: asyncio.Queue[_Told], running: int) -> AsyncGenerator[AgentEvent, None]:
    while running:
        _, event = await queue.get()
        if event is None:
            running -= 1
        else:
            yield event


def _failure(task: asyncio.Task[None]) -> BaseException | None:
    return (
        asyncio.CancelledError("a branch was cancelled") if task.cancelled() else task.exception()
    )
