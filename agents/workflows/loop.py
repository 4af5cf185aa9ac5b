"""Agents one after the other, again and again."""

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


class LoopAgent(Stepwise):
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
        steps = Steps(
            name=name, agents=tuple(agents), rounds=max_iterations, is_loop=True, info=self._info
        )
        super().__init__(name, description, steps)

    def _info(self, waiting: str, iteration: int) -> LoopInfo:
        return LoopInfo(agent_name=self.name, waiting=waiting, iteration=iteration)
