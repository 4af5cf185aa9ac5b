"""The world that policies are checked in, as a deployment's agents declare it."""

from __future__ import annotations

import pytest

from agents import ChatModelAgent, approval_gate
from agents.models import ScriptedModel
from agents.runs.declared import agents_declared, tools_declared
from bot.policy.evaluation.context import gate_of, world_of
from tests.support.policies import WORLD
from tests.support.policyagents import build, world_tools
from tests.support.policyworld import policy_world

MODEL = ScriptedModel([])


def test_the_agents_of_the_cases_declare_their_world() -> None:
    world = world_of(build(MODEL).values())
    assert world.agents == policy_world().agents
    assert {tool.name: tool for tool in world.tools} == {
        tool.name: tool for tool in policy_world().tools
    }
    assert {tool.name: tool.schema for tool in world.tools} == {
        name: tool["schema"] for name, tool in WORLD["tools"].items()
    }


def test_what_stands_inside_of_a_gate_is_no_tool_without_one() -> None:
    inner = world_tools()[-1]
    agent = ChatModelAgent(name="a", model=MODEL, tools=[approval_gate(inner)])
    assert [spec.gates for spec in tools_declared(agent)] == [("approval",)]


def test_a_tool_that_also_stands_alone_is_declared_both_ways() -> None:
    inner = world_tools()[-1]
    agents = [
        ChatModelAgent(name="a", model=MODEL, tools=[approval_gate(inner)]),
        ChatModelAgent(name="b", model=MODEL, tools=[inner]),
    ]
    assert {tool.gate for tool in world_of(agents).tools} == {"approval", "none"}
    assert agents_declared(agents[0]) == ("a",)


@pytest.mark.parametrize(
    ("gates", "gate"),
    [
        ((), "none"),
        (("choice", "complete"), "none"),
        (("approval",), "approval"),
        (("policy",), "approval"),
        (("approval", "review"), "review"),
    ],
)
def test_gates_are_what_rules_know(gates: tuple[str, ...], gate: str) -> None:
    assert gate_of(gates) == gate
