"""The input of an evaluation: a tool call and the facts that rules use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agents.core.codec import Json
from bot.policy.terms import Group, Risk

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
    """

    name: str
    tags: tuple[str, ...] = ()
    risk: Risk = "medium"
    gate: Gate = "none"
    schema: Mapping[str, Json] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyQuestion:
    """A call to evaluate.

    Attributes:
        tool: The tool.
        arguments: Canonical arguments.
        requesters: Slack user ids of the people whose words led to the call.
        channel: Id of the thread's channel.
        agent: Name of the calling agent.
        gated: Whether code puts a gate around the tool.
    """

    tool: ToolFacts
    arguments: Mapping[str, Json]
    requesters: tuple[str, ...] = ()
    channel: str = ""
    agent: str = ""
    gated: bool = False


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
