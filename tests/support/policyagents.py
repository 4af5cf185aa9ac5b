"""Agents that declare the tools of the conformance cases, as a deployment's module would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, approval_gate, review_edit_gate
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.tools import CallText, Tool, ToolSpec
from tests.support.policies import WORLD


@dataclass(frozen=True)
class WorldTool:
    """A tool of the world; it runs nothing."""

    definition: ToolSpec

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        return dict(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        return CallText(title=f"{self.definition.name} {sorted(arguments)}")

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        return f"{self.definition.name} {sorted(arguments)}"


GATES = {"approval": approval_gate, "review": review_edit_gate}


def world_tools() -> list[Tool]:
    """The tools, with their gates."""
    tools: list[Tool] = []
    for name, facts in WORLD["tools"].items():
        spec = ToolSpec(
            name=name,
            description=name,
            schema=facts["schema"],
            tags=tuple(facts["tags"]),
            risk=facts["risk"],
        )
        made: Tool = WorldTool(spec)
        tools.append(GATES[facts["gate"]](made) if facts["gate"] in GATES else made)
    return tools


def build(model: Model) -> Mapping[str, Agent]:
    """The agents `clerk` and `deployer`."""
    made = [
        ChatModelAgent(name=name, model=model, tools=world_tools(), instruction="work")
        for name in WORLD["agents"]
    ]
    return {"*": made[0], "C0PAY": made[1]}
