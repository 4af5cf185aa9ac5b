"""The world that a policy file is checked in: the tools and agents that exist.

People, user groups and channels are Slack's, and are looked up through the directory.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.policy.judging.world import ToolFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyWorld:
    """The tools and agents of a deployment.

    Attributes:
        tools: All of them; agents may have different tools of one name.
        agents: Names of the agents.
    """

    tools: tuple[ToolFacts, ...] = ()
    agents: frozenset[str] = frozenset()
