"""Agents one after the other; each is told what those before it said."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agents.agent import ActionEvent, Agent, AgentEvent, AgentInput, check_unique_names, run_agent
from agents.chat.handoff import Notes, told
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
    """An agent of a sequence waits. Stored: version 1, must stay readable.

    Attributes:
        agent_name: Of the sequence.
        waiting: Name of the agent in it.
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
        agent_name: Whose turn it is.
        iteration: How often all agents have been through.
        begun_at: How many of the notes were there when its turn began.
        notes: What the agents have said.
        before: Names of the agents before it, in their order.
    """

    agent_name: str
    iteration: int
    begun_at: int
    notes: list[Json]
    before: tuple[str, ...] = ()


@dataclass(slots=True)
class Position:
    """The progress of a sequence or a loop, in memory; see `StepsState`.

    Attributes:
        index: Number of the agent whose turn it is.
        iteration: See `StepsState`.
        begun_at: See `StepsState`.
        notes: See `StepsState`.
    """

    index: int = 0
    iteration: int = 0
    begun_at: int = 0
    notes: Notes = field(default_factory=Notes)

    def next(self, count: int) -> None:
        """Go on to the next agent of so many."""
        self.index += 1
        if self.index == count:
            self.index = 0
            self.iteration += 1
        self.begun_at = len(self.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Runs agents one after the other, once or again and again: a sequence, or a loop.

    Attributes:
        name: Of the agent that this is.
        agents: Those that it runs; at least one, all of different names.
        rounds: How often all of them run; None has no limit.
        is_loop: Whether a `BreakLoop` ends here, and nothing around it.
        info: Makes what is shown when the agent of that name waits, in that iteration.
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
        async with aclosing(self._go(given, Position())) as events:
            async for event in events:
                yield event

    async def resume(self, given: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        """Go on with the agent that waits; those before it do not run again."""
        async with aclosing(self._go(given, self._position())) as events:
            async for event in events:
                yield event

    def _position(self) -> Position:
        _, has_state, state = get_interrupt_state(StepsState)
        if not has_state or state is None:
            raise CheckpointDecodeError(f"agent {self.name!r} has lost how far it was")
        names = [agent.name for agent in self.agents]
        if state.agent_name not in names:
            keep_waiting(gone(state.agent_name, names))
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

    async def _go(self, given: AgentInput, at: Position) -> AsyncGenerator[AgentEvent, None]:
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
        """Between two agents: stop, when somebody outside wants that."""
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
        """Run the agent whose turn it is, with the same input each time it goes on."""
        agent = self.agents[at.index]
        heard = told(agent.name, given, at.notes.all[: at.begun_at])
        try:
            async with aclosing(run_agent(agent, heard)) as events:
                async for event in events:
                    at.notes.take(event)
                    yield self._passed(event)
        except InterruptSignal as signal:
            composite_interrupt(self.info(agent.name, at.iteration), self._state(at), signal)

    def _passed(self, event: AgentEvent) -> AgentEvent:
        """Return the event for agents further out: a break that ends this loop is done."""
        if self.is_loop and isinstance(event, ActionEvent) and isinstance(event.action, BreakLoop):
            return replace(event, is_done=True)
        return event


class Stepwise:
    """An agent that runs others one after the other.

    Args:
        name: Unique among its siblings; part of addresses.
        description: What it is good at.
        steps: The others, and how they run.
    """

    def __init__(self, name: str, description: str, steps: Steps) -> None:
        self.name = name
        self.description = description
        self._steps = steps

    def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Run the agents; see `Agent.run`."""
        return self._steps.run(input)

    def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Go on with the agent that waits, in the same round; see `Agent.resume`."""
        return self._steps.resume(input)

    def components(self) -> Mapping[Key, Component]:
        """Its agents; see `Described`."""
        return dict(agent_component(agent) for agent in self._steps.agents)


class SequentialAgent(Stepwise):
    """Runs agents one after the other.

    Each gets the input, and is told what those before it said. After an interrupt it goes on with
    the agent that waits. An agent that wants to exit, to break a loop or to hand over to somebody
    else ends the sequence.

    Args:
        name: Unique among its siblings; part of addresses.
        agents: What it runs; at least one.
        description: What it is good at, for models that may call it.

    Raises:
        AgentConfigError: There is no agent.
        DuplicateNameError: Two agents have one name.
    """

    def __init__(self, name: str, agents: Sequence[Agent], *, description: str = "") -> None:
        steps = Steps(name=name, agents=tuple(agents), rounds=1, is_loop=False, info=self._info)
        super().__init__(name, description, steps)

    def _info(self, waiting: str, _: int) -> SequentialInfo:
        return SequentialInfo(agent_name=self.name, waiting=waiting)


def check_children(owner: str, agents: Sequence[Agent]) -> None:
    """Make sure that a workflow has agents, of different names.

    Raises:
        AgentConfigError: There is no agent.
        DuplicateNameError: Two agents have one name.
    """
    if not agents:
        raise AgentConfigError(f"agent {owner!r} has no agents to run; give it at least one")
    check_unique_names(owner, agents)


def _after(name: str, before: Sequence[str]) -> str:
    return f"{name!r} after {', '.join(map(repr, before)) or 'no other agent'}"


def gone(name: str, now: Sequence[str]) -> AgentChangedError:
    """Make the error that an agent that waits is not there any more."""
    return AgentChangedError(str(current_address()), f"an agent {name!r}", f"only {', '.join(now)}")
