"""Runs agents in sequence, once or in a loop, and shares their notes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agents.agent import ActionEvent, Agent, AgentEvent, AgentInput, check_unique_names, run_agent
from agents.chat.handoff import Notes, input_after
from agents.core.calls import BreakLoop
from agents.core.cancel import CancelInfo
from agents.core.codec import Json, register
from agents.core.component.state import get_interrupt_state
from agents.core.errors import AgentChangedError, AgentConfigError, CheckpointDecodeError
from agents.core.interrupt import (
    InterruptSignal,
    composite_interrupt,
    keep_waiting,
    stateful_interrupt,
)
from agents.core.pending import Unanswerable
from agents.core.scope import current_address, current_scope
from agents.runs.topology import Component, Key, agent_component


@register("countersign.sequential-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialInfo(Unanswerable):
    """An agent of a sequence is interrupted. Stored: version 1, must stay readable.

    Attributes:
        agent_name: Name of the sequence.
        waiting: Name of the interrupted agent.
    """

    agent_name: str
    waiting: str

    def __str__(self) -> str:
        return "Sequential workflow interrupted"


@register("countersign.steps-state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class StepsState:
    """The progress of a sequence or a loop. Stored: version 1, must stay readable.

    Attributes:
        agent_name: The current agent.
        iteration: Number of complete rounds.
        begun_at: Number of notes when the current agent began.
        notes: Notes of all agents.
        before: Names of the agents before the current one, in order.
    """

    agent_name: str
    iteration: int
    begun_at: int
    notes: list[Json]
    before: tuple[str, ...] = ()


@dataclass(slots=True)
class Position:
    """The progress of a sequence or a loop, in memory; see `StepsState`."""

    index: int = 0
    iteration: int = 0
    begun_at: int = 0
    notes: Notes = field(default_factory=Notes)

    def next(self, count: int) -> None:
        """Advance to the next of `count` agents."""
        self.index += 1
        if self.index == count:
            self.index = 0
            self.iteration += 1
        self.begun_at = len(self.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Runs agents in sequence, once (a sequence) or repeatedly (a loop).

    Attributes:
        name: Name of the sequence or loop.
        agents: Agents to run; at least one, with different names.
        rounds: Maximum number of rounds; None has no limit.
        is_loop: Whether a `BreakLoop` ends here.
        info: Builds the interrupt's info from an agent's name and the iteration.
    """

    name: str
    agents: Sequence[Agent]
    rounds: int | None
    is_loop: bool
    info: Callable[[str, int], object]

    def __post_init__(self) -> None:
        check_children(self.name, self.agents)

    async def run(self, given: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        """Begin; see `Agent.run`."""
        async with aclosing(self._run_agents(given, Position())) as events:
            async for event in events:
                yield event

    async def resume(self, given: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        """Resume the interrupted agent; earlier agents do not run again."""
        async with aclosing(self._run_agents(given, self._position())) as events:
            async for event in events:
                yield event

    def _position(self) -> Position:
        _, has_state, state = get_interrupt_state(StepsState)
        if not has_state or state is None:
            raise CheckpointDecodeError(f"agent {self.name!r} has lost how far it was")
        names = [agent.name for agent in self.agents]
        if state.agent_name not in names:
            keep_waiting(gone(state.agent_name, names))
        # Another order of the agents could skip an agent, or run one a second time.
        before = names[: names.index(state.agent_name)]
        if [*state.before] != before:
            was, now = (_after(state.agent_name, some) for some in (state.before, before))
            keep_waiting(AgentChangedError(str(current_address()), was, now))
        return Position(
            names.index(state.agent_name),
            state.iteration,
            state.begun_at,
            Notes.from_json(state.notes),
        )

    async def _run_agents(
        self, given: AgentInput, at: Position
    ) -> AsyncGenerator[AgentEvent, None]:
        has_moved = False
        while self.rounds is None or at.iteration < self.rounds:
            if has_moved:
                self._stop_here(at)
            async with aclosing(self._turn(given, at)) as events:
                async for event in events:
                    yield event
            if at.notes.action(at.begun_at) is not None:
                return
            at.next(len(self.agents))
            has_moved = True

    def _stop_here(self, at: Position) -> None:
        """Interrupt between two agents if a stop was requested."""
        if current_scope("Steps").run.cancel.wants("after_tools"):
            stateful_interrupt(CancelInfo(mode="after_tools"), self._state(at))

    def _state(self, at: Position) -> StepsState:
        return StepsState(
            agent_name=self.agents[at.index].name,
            iteration=at.iteration,
            begun_at=at.begun_at,
            notes=at.notes.to_json(),
            before=tuple(agent.name for agent in self.agents[: at.index]),
        )

    async def _turn(self, given: AgentInput, at: Position) -> AsyncGenerator[AgentEvent, None]:
        """Run the current agent; its input is always the same on resume."""
        agent = self.agents[at.index]
        # Only notes from before this agent, so that a resumed agent receives the same input.
        agent_input = input_after(agent.name, given, at.notes.all[: at.begun_at])
        try:
            async with aclosing(run_agent(agent, agent_input)) as events:
                async for event in events:
                    at.notes.add_event(event)
                    yield self._passed(event)
        except InterruptSignal as signal:
            composite_interrupt(self.info(agent.name, at.iteration), self._state(at), signal)

    def _passed(self, event: AgentEvent) -> AgentEvent:
        """Return the event for enclosing agents. A break of this loop is marked done."""
        if self.is_loop and isinstance(event, ActionEvent) and isinstance(event.action, BreakLoop):
            return replace(event, is_done=True)
        return event


class Stepwise:
    """Base class of agents that run other agents in sequence."""

    def __init__(self, name: str, description: str, steps: Steps) -> None:
        self.name = name
        self.description = description
        self._steps = steps

    def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Run the agents; see `Agent.run`."""
        return self._steps.run(input)

    def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Resume the interrupted agent, in the same round; see `Agent.resume`."""
        return self._steps.resume(input)

    def components(self) -> Mapping[Key, Component]:
        """The agents; see `Described`."""
        return dict(agent_component(agent) for agent in self._steps.agents)


class SequentialAgent(Stepwise):
    """Runs agents one after the other.

    Each agent receives the input and the notes of the agents before it. On resume, the sequence
    continues with the interrupted agent. An exit, a break or a transfer of an agent ends the
    sequence.

    While an agent waits, a release may add agents after it. The agents before it must stay as they
    are: an agent that is put before it would be skipped, for example a check of what comes next. So
    its answer is refused with `AgentChangedError`, and the question stays. Resume it with the
    release that asked, or cancel the run.

    Args:
        name: Unique among its siblings; part of addresses.
        agents: Agents to run; at least one.
        description: What the agent is good at, for models that may call it.

    Raises:
        AgentConfigError: There is no agent.
        DuplicateNameError: Two agents share a name.
    """

    def __init__(self, name: str, agents: Sequence[Agent], *, description: str = "") -> None:
        steps = Steps(name=name, agents=tuple(agents), rounds=1, is_loop=False, info=self._info)
        super().__init__(name, description, steps)

    def _info(self, waiting: str, _: int) -> SequentialInfo:
        return SequentialInfo(agent_name=self.name, waiting=waiting)


def check_children(owner: str, agents: Sequence[Agent]) -> None:
    """Check that a workflow has agents, with different names."""
    if not agents:
        raise AgentConfigError(f"agent {owner!r} has no agents to run; give it at least one")
    check_unique_names(owner, agents)


def _after(name: str, before: Sequence[str]) -> str:
    return f"{name!r} after {', '.join(map(repr, before)) or 'no other agent'}"


def gone(name: str, now: Sequence[str]) -> AgentChangedError:
    """Return the error that the interrupted agent no longer exists."""
    return AgentChangedError(str(current_address()), f"an agent {name!r}", f"only {', '.join(now)}")


@register("countersign.loop-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class LoopInfo(Unanswerable):
    """An agent of a loop is interrupted. Stored: version 1, must stay readable.

    Attributes:
        agent_name: Name of the loop.
        waiting: Name of the interrupted agent.
        iteration: Number of complete rounds.
    """

    agent_name: str
    waiting: str
    iteration: int

    def __str__(self) -> str:
        return "Loop workflow interrupted"


class LoopAgent(Stepwise):
    """Runs agents in sequence, repeatedly, until an agent breaks the loop.

    Rounds are counted across interrupts. Each agent reads the notes of all rounds so far; its own
    notes are its own words. From the second round on, an agent's address has a number: `agent:Rev`,
    then `agent:Rev:2`. (Eino reuses the address; an answer of one round could then apply to the
    next.)

    Args:
        name: Unique among its siblings; part of addresses.
        agents: Agents to run; at least one.
        max_iterations: Maximum number of rounds; the loop then ends. None has no limit.
        description: What the agent is good at, for models that may call it.

    Raises:
        AgentConfigError: There is no agent, or `max_iterations` is less than 1.
        DuplicateNameError: Two agents share a name.
    """

    def __init__(
        self,
        name: str,
        agents: Sequence[Agent],
        *,
        max_iterations: int | None = None,
        description: str = "",
    ) -> None:
        if max_iterations is not None and max_iterations < 1:
            raise AgentConfigError(
                f"agent {name!r} would run nothing; `max_iterations` is at least 1, or None"
            )
        steps = Steps(
            name=name, agents=tuple(agents), rounds=max_iterations, is_loop=True, info=self._info
        )
        super().__init__(name, description, steps)

    def _info(self, waiting: str, iteration: int) -> LoopInfo:
        return LoopInfo(agent_name=self.name, waiting=waiting, iteration=iteration)
