"""Middlewares around tools that are agents themselves."""

from __future__ import annotations

from agents import ChatModelAgent, ScriptedModel, approval_gate
from agents.middlewares.gates import approval_middleware
from agents.middlewares.tools import ToolErrorHandler
from agents.models import call, say
from agents.runs.topology import Component
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.support import Plain, World, brief, contexts, yes


def office(pay: Plain, inner: ScriptedModel) -> World:
    """An agent whose tool is an agent with a gated tool; both gates ask."""
    clerk = ChatModelAgent(
        name="Inner", model=inner, tools=[approval_gate(pay)], description="pays"
    )
    return World(
        [call("Inner", {"request": "pay"}, id="o1"), say("all done")],
        [AgentTool(clerk)],
        options={
            "middlewares": [ToolErrorHandler(), approval_middleware("Inner"), ToolErrorHandler()]
        },
    )


async def test_e065_both_gates_ask_one_after_the_other() -> None:
    pay, inner = Plain("pay"), ScriptedModel([call("pay", id="i1"), say("paid")])
    world = office(pay, inner)

    outer = contexts(await world.run())["o1"]
    assert inner.calls == 0
    second = contexts(await world.resume({outer.id: yes(outer)}))["i1"]
    assert str(second.address) == "agent:A;tool:Inner:o1;agent:Inner;tool:pay:i1"
    events = await world.resume({second.id: yes(second)})

    assert brief(events) == ["tool Inner#o1 ran: paid", "says all done"]
    assert inner.calls == 2
    assert len(pay.calls) == 1


def test_what_is_inside_of_wrappers_is_seen() -> None:
    world = office(Plain("pay"), ScriptedModel([]))
    outer = world.agent()
    assert isinstance(outer, ChatModelAgent)

    (component,) = outer.components().values()

    assert isinstance(component, Component)
    assert component.kind == "approval"
    assert set(component.inner.components()) == {("agent", "Inner")}  # type: ignore[attr-defined]
