"""The question that a policy answers: a call of a tool, and the world that it is judged in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agents.core.codec import Json
from bot.policy.terms import Group, Risk

Gate = Literal["none", "approval", "review", "policy"]
"""The gate that code puts around a tool.

In a review, people may edit. A policy in code is a gate that need not ask: its rulings say.
"""

Members: TypeAlias = Callable[[Group], Awaitable[frozenset[str] | None]]
"""Looks up the user ids of a group; None when that fails: what depends on it is undecided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFacts:
    """A tool, as its author declares it.

    Attributes:
        name: Its name.
        tags: Words for its kind.
        risk: The harm that it can do.
        gate: The gate around it.
        schema: JSON schema of its arguments.
    """

    name: str
    tags: tuple[str, ...] = ()
    risk: Risk = "medium"
    gate: Gate = "none"
    schema: Mapping[str, Json] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyQuestion:
    """A call that is judged (2.1).

    Attributes:
        tool: The tool.
        arguments: Canonical arguments.
        requesters: Slack ids of everybody whose words led to it.
        channel: Id of the thread's channel.
        agent: Name of the agent that calls.
        gated: Whether code puts a gate around the tool.
    """

    tool: ToolFacts
    arguments: Mapping[str, Json]
    requesters: tuple[str, ...] = ()
    channel: str = ""
    agent: str = ""
    gated: bool = False


def with_defaults(schema: Mapping[str, Json], arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Fill in the defaults of a tool's schema, as its canonical arguments have them."""
    fields = schema.get("properties")
    known = fields.items() if isinstance(fields, dict) else ()
    defaults = {
        name: field["default"]
        for name, field in known
        if isinstance(field, dict) and "default" in field
    }
    return {**defaults, **arguments}
