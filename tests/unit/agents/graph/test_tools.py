"""A graph as a tool and as an agent: scenarios 136 and 137 of the reference, and example 3.3."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import Annotated, Any, TypedDict

import pytest

from agents import (
    AgentConfigError,
    ApprovalInfo,
    ResumeDataError,
    Runner,
    approval_gate,
    composite_interrupt,
    get_resume_context,
)
from agents.core.interrupt import InterruptSignal
from agents.graph import (
    START,
    CompiledGraph,
    GraphAgent,
    StateGraph,
    StateUpdate,
    graph_tool,
    node_interrupt,
)
from agents.models import call, say
from tests.unit.agents.graph.support import Lab, State
from tests.unit.agents.support import Plain, World, brief, collect, contexts, yes


def empty() -> Lab:
    """A place that only counts."""
    return Lab(lambda lab: StateGraph(State))


class Transfer(TypedDict, total=False):
    amount: int
    to: str
    comment: object
    result: str
    log: Annotated[list[str], add]


def transfer_graph(lab: Lab, **options: Any) -> CompiledGraph:
    """Validate, ask beyond 1000, execute: the graph tool of the examples."""

    def validate(state: Transfer) -> object:
        lab.ran["validate"] += 1
        return {"log": ["valid"]}

    def risk(state: Transfer) -> object:
        lab.ran["risk"] += 1
        if state["amount"] <= 1000:
            return {"comment": "small"}
        return {
            "comment": node_interrupt(f"internal approval of {state['amount']}?", response_type=str)
        }

    def run(state: Transfer) -> object:
        lab.ran["execute"] += 1
        return {"result": f"sent {state['amount']} to {state['to']} ({state['comment']})"}

    graph = StateGraph(Transfer)
    graph.add_node("validate", validate).add_node("risk", risk).add_node("execute", run)
    graph.add_edge(START, "validate").add_edge("validate", "risk").add_edge("risk", "execute")
    return graph.compile(name="transfer", **options)


def transfer_funds(amount: int, to: str) -> Mapping[str, object]:
    """Transfer money.

    Args:
        amount: How much.
        to: To whom.
    """
    return {"amount": amount, "to": to}


def banker(lab: Lab, *, gated: bool = True, amount: int = 5000, **options: Any) -> World:
    made = graph_tool(
        transfer_graph(lab, **options),
        transfer_funds,
        description="Send money",
        to_text=lambda values: str(values["result"]),
    )
    assert made.definition.description == "Send money"
    tools = [approval_gate(made) if gated else made]
    return World(
        [call("transfer_funds", {"amount": amount, "to": "bob"}, id="c1"), say("done")], tools=tools
    )


async def test_e136_a_graph_tool_with_an_approval_around_and_inside() -> None:
    lab = empty()
    world = banker(lab)
    outer = contexts(await world.run())["c1"]
    assert isinstance(outer.info, ApprovalInfo)
    assert lab.ran == {}
    [inner] = contexts(await world.resume({outer.id: yes(outer)})).values()
    assert inner.info.value == "internal approval of 5000?"  # type: ignore[attr-defined]
    assert str(inner.address) == ("agent:A;tool:transfer_funds:c1;runnable:transfer;node:risk")
    assert inner.parent is not None
    with pytest.raises(ResumeDataError):
        await world.resume({inner.id: 3})
    assert [context.id for context in await world.pending()] == [inner.id]
    events = await world.resume({inner.id: "fine"})
    assert brief(events)[0] == "tool transfer_funds#c1 ran: sent 5000 to bob (fine)"
    assert lab.ran == {"validate": 1, "risk": 2, "execute": 1}


async def test_e136_a_rejected_graph_tool_runs_nothing() -> None:
    lab = empty()
    world = banker(lab)
    outer = contexts(await world.run())["c1"]
    assert isinstance(outer.info, ApprovalInfo)
    await world.resume({outer.id: outer.info.reject("no", by="U1")})
    assert lab.ran == {}


async def test_e136_a_small_transfer_asks_once() -> None:
    lab = empty()
    world = banker(lab, amount=10)
    outer = contexts(await world.run())["c1"]
    events = await world.resume({outer.id: yes(outer)})
    assert "sent 10 to bob (small)" in brief(events)[0]


async def test_e136_a_wrapper_around_a_graph() -> None:
    lab = empty()
    seen: list[bool] = []

    async def body(arguments: dict[str, Any]) -> str:
        seen.append(get_resume_context(object)[0])
        try:
            values = await transfer_graph(lab).run_inside({"amount": 2000, "to": "bob"})
        except InterruptSignal as signal:
            composite_interrupt("wrapper tool interrupt", None, signal)
        return str(values["result"])

    world = World([call("w", {}, id="c1"), say("done")], tools=[Plain("w", body=body)])
    [inner] = contexts(await world.run()).values()
    around, parent = [], inner.parent
    while parent is not None:
        around.append(str(parent.info))
        parent = parent.parent
    assert "wrapper tool interrupt" in around
    events = await world.resume({inner.id: "ok"})
    assert "sent 2000 to bob (ok)" in brief(events)[0]
    assert seen == [False, True]


async def test_e137_a_breakpoint_and_an_edit_through_an_agent() -> None:
    lab = empty()
    world = banker(lab, gated=False, amount=10, interrupt_before=["execute"])
    [question] = contexts(await world.run()).values()
    assert question.info.state["comment"] == "small"  # type: ignore[attr-defined]
    assert question.parent is not None
    for target in (question.id, question.parent.id):
        with pytest.raises(ResumeDataError, match="wrong type"):
            await world.resume({target: StateUpdate({"amount": "x"})})
    assert [context.id for context in await world.pending()] == [question.id]
    events = await world.resume({question.id: StateUpdate({"amount": 7})})
    assert "sent 7 to bob" in brief(events)[0]
    assert lab.ran == {"validate": 1, "risk": 1, "execute": 1}


async def test_d_resume_all_enters_everything_again() -> None:
    lab = empty()
    world = banker(lab, gated=False, interrupt_before=["validate"])
    [old] = contexts(await world.run()).values()
    again = await collect(world.runner().resume("1"))
    [new] = contexts(again).values()
    assert (new.id != old.id, new.info) == (True, old.info)
    [question] = contexts(await world.resume({new.id: True})).values()
    [asked] = contexts(await collect(world.runner().resume("1"))).values()
    assert asked.id != question.id
    await world.resume({asked.id: "ok"})
    assert lab.ran["execute"] == 1


class Dialogue(TypedDict, total=False):
    input: str
    output: str


def test_a_graph_as_an_agent_needs_a_key_for_its_input() -> None:
    with pytest.raises(AgentConfigError, match="'input'"):
        GraphAgent(transfer_graph(empty()), "helper")


async def test_a_graph_as_an_agent_begins_without_words() -> None:
    graph = StateGraph(Dialogue).add_node("n", lambda s: {"output": f"<{s['input']}>"})
    agent = GraphAgent(graph.add_edge(START, "n").compile(), "helper")
    assert brief(await collect(Runner(agent).run([]))) == ["says <>"]
