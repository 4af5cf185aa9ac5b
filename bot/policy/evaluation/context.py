"""The input of an evaluation: a tool call, the facts that rules use, and the tools and agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agents import Agent
from agents.core.codec import Json
from agents.core.tools import ToolSpec
from agents.runs.declared import agents_declared, tools_declared
from bot.records.origin import RequestDoor
from bot.records.terms import Group, Risk

Gate = Literal["none", "approval", "review", "policy"]
"""The gate that code puts around a tool.

A review gate permits edits. A policy in code is a gate that may ask or not, as it decides.
"""

Members: TypeAlias = Callable[[Group], Awaitable[frozenset[str] | None]]
"""Looks up the user ids of a group; None on failure (conditions are undecided)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFacts:
    """A tool as its author declares it.

    Attributes:
        name: Name of the tool.
        tags: Words for its kind.
        risk: The harm that it can do.
        gate: The gate around it.
        schema: JSON schema of its arguments.
        limit: The limit that the question is about, instead of a call; empty for a call.
    """

    name: str
    tags: tuple[str, ...] = ()
    risk: Risk = "medium"
    gate: Gate = "none"
    schema: Mapping[str, Json] = field(default_factory=dict, compare=False)
    limit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFacts:
    """The program that asks, as the bot knows it.

    Attributes:
        name: Name of the program.
        is_trusted: Whether the tags and the risk that it gives are true. Otherwise they are claims.
        claimed: Slack user ids of the requesters that it alone has named.
    """

    name: str
    is_trusted: bool = False
    claimed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyQuestion:
    """A call to evaluate.

    Attributes:
        arguments: Canonical arguments.
        requesters: Slack user ids of the people whose words led to the call.
        channel: Id of the thread's channel.
        agent: Name of the calling agent.
        gated: Whether code puts a gate around the tool.
        door: The way by which the call came.
        program: The program that asks, or that started the thread; None without one.
        is_unattended: Whether an agent calls in a thread that no person started.
    """

    tool: ToolFacts
    arguments: Mapping[str, Json]
    requesters: tuple[str, ...] = ()
    channel: str = ""
    agent: str = ""
    gated: bool = False
    door: RequestDoor = RequestDoor.SLACK
    program: ProgramFacts | None = None
    is_unattended: bool = False


def with_defaults(schema: Mapping[str, Json], arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Fill in the defaults of a tool's schema, as in its canonical arguments."""
    fields = schema.get("properties")
    known = fields.items() if isinstance(fields, dict) else ()
    defaults = {
        name: field["default"]
        for name, field in known
        if isinstance(field, dict) and "default" in field
    }
    return {**defaults, **arguments}


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
    all_agents = list(agents)
    specs = [spec for agent in all_agents for spec in tools_declared(agent)]
    return PolicyWorld(
        tools=tuple(facts_of(spec) for spec in specs),
        agents=frozenset(name for agent in all_agents for name in agents_declared(agent)),
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
