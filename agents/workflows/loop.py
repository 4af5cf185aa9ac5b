"""The loop agent: runs agents in sequence, repeatedly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.agent import Agent
from agents.core.codec import register
from agents.core.errors import AgentConfigError
from agents.core.pending import Unanswerable
from agents.workflows.sequential import Steps, Stepwise


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
