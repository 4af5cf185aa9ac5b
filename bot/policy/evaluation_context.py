"""The tools and agents against which a policy file is checked.

Slack's people, user groups and channels are looked up through the directory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agents import Agent
from agents.core.tools import ToolSpec
from agents.runs.declared import agents_declared, tools_declared
from bot.policy.evaluation.context import Gate, ToolFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyWorld:
    """The tools and agents of a deployment.

    Attributes:
        tools: All tools; different agents may have different tools of one name.
        agents: Names of the agents.
    """

    tools: tuple[ToolFacts, ...] = ()
    agents: frozenset[str] = frozenset()


def world_of(agents: Iterable[Agent]) -> PolicyWorld:
    """Return the tools and agents that a deployment's agents declare."""
    found = list(agents)
    specs = [spec for agent in found for spec in tools_declared(agent)]
    return PolicyWorld(
        tools=tuple(facts_of(spec) for spec in specs),
        agents=frozenset(name for agent in found for name in agents_declared(agent)),
    )


def facts_of(spec: ToolSpec) -> ToolFacts:
    """Convert a tool's definition to the facts that rules use."""
    return ToolFacts(
        name=spec.name, tags=spec.tags, risk=spec.risk, gate=gate_of(spec.gates), schema=spec.schema
    )


def gate_of(gates: Iterable[str]) -> Gate:
    """Return the gate as rules see it: review if one of the gates permits edits."""
    names = set(gates)
    if names & {"review", "review_edit"}:
        return "review"
    return "approval" if names & {"approval", "policy"} else "none"
