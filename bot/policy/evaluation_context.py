"""The world that a policy file is checked in: the tools and agents that exist.

People, user groups and channels are Slack's, and are looked up through the directory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agents import Agent
from agents.runs.declared import agents_declared, tools_declared
from agents.tools.base import ToolSpec
from bot.policy.evaluation.context import Gate, ToolFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyWorld:
    """The tools and agents of a deployment.

    Attributes:
        tools: All of them; agents may have different tools of one name.
        agents: Names of the agents.
    """

    tools: tuple[ToolFacts, ...] = ()
    agents: frozenset[str] = frozenset()


def world_of(agents: Iterable[Agent]) -> PolicyWorld:
    """The tools and agents that a deployment's agents declare."""
    found = list(agents)
    specs = [spec for agent in found for spec in tools_declared(agent)]
    return PolicyWorld(
        tools=tuple(facts_of(spec) for spec in specs),
        agents=frozenset(name for agent in found for name in agents_declared(agent)),
    )


def facts_of(spec: ToolSpec) -> ToolFacts:
    """A tool's definition, as rules know it."""
    return ToolFacts(
        name=spec.name, tags=spec.tags, risk=spec.risk, gate=gate_of(spec.gates), schema=spec.schema
    )


def gate_of(gates: Iterable[str]) -> Gate:
    """The gate that some gates of the runtime are to rules: the one that lets people edit first."""
    names = set(gates)
    if names & {"review", "review_edit"}:
        return "review"
    return "approval" if names & {"approval", "policy"} else "none"
