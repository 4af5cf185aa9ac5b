"""Agents one after the other, again and again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass

from agents.agent import Agent, AgentEvent, AgentInput
from agents.core.codec import register
from agents.core.errors import AgentConfigError
from agents.core.pending import Unanswerable
from agents.runs.topology import Component, Key, agent_component
from agents.workflows.sequential import Steps


@register("countersign.loop-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class LoopInfo(Unanswerable):
    """An agent of a loop waits. Stored: version 1, must stay readable.

    Attributes:
        agent_name: Of the loop.
        waiting: Name of the agent in it.
        iteration: How often all agents of the loop have been through.
    """

    agent_name: str
    waiting: str
    iteration: int

    def __str__(self) -> str:
        return "Loop workflow interrupted"


class LoopAgent:
    """Runs agents one after the other, and begins again, until one of them breaks the loop.

    It counts across interrupts. An agent is told what was said in all rounds so far; what it said
    itself are its own words. In each further round it has an address of its own: `agent:Rev`,
    then `agent:Rev:2`. (Eino gives it the same address each time; then what was answered in one
    round could be taken for an answer in the next.)

    Args:
        name: Unique among its siblings; part of addresses.
        agents: What it runs; at least one.
        max_iterations: How often all of them run at most; then the loop just ends. None has no
            limit.
        description: What it is good at, for models that may call it.

    Raises:
        AgentConfigError: There is no agent, or no iteration.
        DuplicateNameError: Two agents have one name.
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
        self.name = name
        self.description = description
        self._steps = Steps(
            name=name,
            agents=tuple(agents),
            rounds=max_iterations,
            is_loop=True,
            info=self._info,
        )

    def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Run the agents; see `Agent.run`."""
        return self._steps.run(input)

    def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Go on with the agent that waits, in the same round; see `Agent.resume`."""
        return self._steps.resume(input)

    def components(self) -> Mapping[Key, Component]:
        """Its agents; see `Described`."""
        return dict(agent_component(agent) for agent in self._steps.agents)

    def _info(self, waiting: str, iteration: int) -> LoopInfo:
        return LoopInfo(agent_name=self.name, waiting=waiting, iteration=iteration)
