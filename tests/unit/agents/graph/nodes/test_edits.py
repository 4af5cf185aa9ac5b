"""Edits at breakpoints: where the graph goes is worked out anew, and what runs was shown."""

from __future__ import annotations

from typing import TypedDict

import pytest

from agents.core.asking.answers import Cancelled
from agents.core.errors import ResumeDataError
from agents.graph import (
    END,
    START,
    Command,
    NodeRefusedError,
    Send,
    StateGraph,
    StateUpdate,
)
from tests.unit.agents.graph.support import Lab, ids, values_of


class Order(TypedDict, total=False):
    amount: int
    people: list[str]
    to: str


def sized(lab: Lab) -> StateGraph:
    """Big sums take another way than small ones."""
    graph = StateGraph(Order).add_node("plan", lab.write("plan", to="shop"))
    for name in ("big", "small"):

        def pay(state: Order, name: str = name) -> None:
            lab.notes.append((name, state["amount"]))

        graph.add_node(name, pay)
    graph.add_edge(START, "plan")
    return graph.add_conditional_edges(
        "plan", lambda s: "big" if s["amount"] > 100 else "small", ["big", "small"]
    )


def sent(lab: Lab) -> StateGraph:
    """Everybody is paid by a run of their own."""
    graph = StateGraph(Order).add_node("pay", lambda to: lab.notes.append(to["to"]))
    return graph.add_conditional_edges(
        START, lambda s: [Send("pay", {"to": name}) for name in s["people"]] or END, ["pay", END]
    )


@pytest.mark.parametrize("paid", [("small", 20), ("big", 300)], ids=["elsewhere", "the same"])
async def test_an_edit_changes_where_the_graph_goes_and_is_not_asked_again(
    paid: tuple[str, int],
) -> None:
    lab = Lab(sized, {"interrupt_before": ["big"]})
    await lab.start(amount=200)
    result = await lab.run(resume=StateUpdate({"amount": paid[1]}))
    assert (lab.notes, result.interrupts) == ([paid], ())


async def test_an_edit_after_a_node_changes_where_the_graph_goes() -> None:
    lab = Lab(sized, {"interrupt_after": ["plan"]})
    await lab.start(amount=20)
    await lab.run(resume=StateUpdate({"amount": 200}))
    assert lab.notes == [("big", 200)]


async def test_an_edit_that_leads_elsewhere_asks_at_the_breakpoint_there() -> None:
    lab = Lab(sized, {"interrupt_before": ["big", "small"]})
    [asked] = ids(await lab.start(amount=200))
    result = await lab.run(resume=StateUpdate({"amount": 20}))
    assert (values_of(result), ids(result) != [asked], lab.notes) == (["small"], True, [])
    assert result.interrupts[0].state == {"amount": 20, "to": "shop"}
    await lab.run(resume=True)
    assert lab.notes == [("small", 20)]


async def test_an_edit_that_leads_to_the_end_ends() -> None:
    lab = Lab(sent, {"interrupt_before": ["pay"]})
    await lab.start(people=["Rosa"])
    result = await lab.run(resume=StateUpdate({"people": []}))
    assert (result.next, lab.notes, (await lab.state()).phase) == ((), [], "finished")


async def test_a_breakpoint_shows_the_arguments_of_each_send() -> None:
    lab = Lab(sent, {"interrupt_before": ["pay"]})
    [question] = (await lab.start(people=["Rosa", "Eve"])).interrupts
    assert question.sends == (Send("pay", {"to": "Rosa"}), Send("pay", {"to": "Eve"}))
    await lab.run(resume=True)
    assert sorted(map(str, lab.notes)) == ["Eve", "Rosa"]


async def test_a_breakpoint_after_a_node_shows_the_sends_that_follow() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(Order).add_node("plan", lambda s: None).add_edge(START, "plan")
        graph.add_node("pay", lab.notes.append)
        return graph.add_conditional_edges("plan", lambda s: Send("pay", {"to": "Rosa"}), ["pay"])

    lab = Lab(build, {"interrupt_after": ["plan"]})
    [question] = (await lab.start()).interrupts
    assert question.sends == (Send("pay", {"to": "Rosa"}),)


async def test_an_edit_sends_only_to_those_who_are_left() -> None:
    lab = Lab(sent, {"interrupt_before": ["pay"]})
    await lab.start(people=["Rosa", "Eve", "Bob"])
    await lab.run(resume=StateUpdate({"people": ["Rosa"]}))
    assert lab.notes == ["Rosa"]


@pytest.mark.parametrize("people", [["Mallory"], ["Rosa", "Rosa"], ["Rosa", "Mallory"]])
async def test_arguments_that_nobody_was_shown_are_asked_before_they_run(people: list[str]) -> None:
    lab = Lab(sent, {"interrupt_before": ["pay"]})
    await lab.start(people=["Rosa", "Eve"])
    result = await lab.run(resume=StateUpdate({"people": people}))
    assert lab.notes == []
    assert [send.arg for send in result.interrupts[0].sends] == [
        {"to": person} for person in people
    ]
    await lab.run(resume=True)
    assert sorted(map(str, lab.notes)) == sorted(people)


async def test_an_edit_that_no_router_can_bear_changes_nothing() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(Order).add_node("pay", lambda s: lab.notes.append(s["to"]))
        known = {"Rosa": "pay"}
        return graph.add_conditional_edges(START, lambda s: known[s["to"]], ["pay"])

    lab = Lab(build, {"interrupt_before": ["pay"]})
    await lab.start(to="Rosa")
    with pytest.raises(ResumeDataError, match=r"leads nowhere: KeyError.*'Eve'"):
        await lab.run(resume=StateUpdate({"to": "Eve"}))
    state = await lab.state()
    assert (values_of(state), state.values["to"], state.phase) == (["pay"], "Rosa", "paused")
    await lab.run(resume=True)
    assert lab.notes == ["Rosa"]


async def test_an_edit_of_the_graph_itself_at_a_breakpoint_asks_anew() -> None:
    lab = Lab(sized, {"interrupt_before": ["big", "small"]})
    [question] = (await lab.start(amount=200)).interrupts
    assert question.context.parent is not None
    graph = question.context.parent.id
    result = await lab.run(resume_map={graph: StateUpdate({"amount": 20})})
    [new] = result.interrupts
    assert (new.value, new.state, new.id == question.id) == (
        "small",
        {"amount": 20, "to": "shop"},
        False,
    )
    await lab.run(resume=True)
    assert lab.notes == [("small", 20)]


async def test_an_edit_of_the_graph_itself_that_no_router_can_bear() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(Order).add_node("pay", lambda s: None)
        return graph.add_conditional_edges(START, lambda s: {"Rosa": "pay"}[s["to"]], ["pay"])

    lab = Lab(build, {"interrupt_before": ["pay"]})
    [question] = (await lab.start(to="Rosa")).interrupts
    assert question.context.parent is not None
    with pytest.raises(ResumeDataError, match="leads nowhere"):
        await lab.run(resume_map={question.context.parent.id: StateUpdate({"to": "Eve"})})
    assert ids(await lab.state()) == [question.id]


async def test_a_yes_beside_an_edit_that_nobody_saw_is_asked_anew() -> None:
    lab = Lab(sized, {"interrupt_before": ["big"]})
    [question] = (await lab.start(amount=200)).interrupts
    assert question.context.parent is not None
    both = {question.context.parent.id: StateUpdate({"amount": 900}), question.id: True}
    with pytest.raises(ResumeDataError, match="asked anew"):
        await lab.run(resume_map=both)
    [new] = (await lab.state()).interrupts
    assert (new.state, lab.notes) == ({"amount": 900, "to": "shop"}, [])


async def test_a_command_that_writes_at_a_breakpoint_is_shown_before_it_runs() -> None:
    lab = Lab(sized, {"interrupt_before": ["big", "small"]})
    await lab.start(amount=200)
    with pytest.raises(ResumeDataError, match="asked anew"):
        await lab.run(resume=True, command=Command(update={"amount": 500}))
    await lab.run(command=Command(update={"amount": 20}))
    assert (await lab.pending(), lab.notes) == (["small"], [])


async def test_a_no_counts_whatever_has_changed() -> None:
    for answer in (False, Cancelled(by="U1")):
        lab = Lab(sized, {"interrupt_before": ["big"]})
        await lab.start(amount=200)
        with pytest.raises(NodeRefusedError):
            await lab.run(resume=answer, command=Command(update={"amount": 500}))
        assert lab.notes == []


async def test_a_command_at_a_breakpoint_still_adds_its_nodes() -> None:
    lab = Lab(sized, {"interrupt_before": ["big"]})
    await lab.start(amount=200)
    result = await lab.run(command=Command(update={"amount": 300}, goto="small"))
    assert values_of(result) == ["big"]
    await lab.run(resume=True)
    assert lab.notes == [("big", 300), ("small", 300)]


async def test_an_update_by_hand_at_a_breakpoint_changes_where_the_graph_goes() -> None:
    lab = Lab(sized, {"interrupt_before": ["big"]})
    await lab.start(amount=200)
    state = await lab.graph.update_state("t", {"amount": 20})
    assert state.next == ("small",)
    await lab.run()
    assert lab.notes == [("small", 20)]


async def test_edges_that_wait_count_arrivals_once_when_they_are_followed_again() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(Order)
        for name in ("a", "b", "c", "both"):
            graph.add_node(name, lab.write(name, to=name) if name == "c" else lambda s: None)
        graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c")
        return graph.add_edge(["a", "c"], "both")

    lab = Lab(build, {"interrupt_before": ["b", "both"]})
    await lab.start(amount=1)
    await lab.run(resume=StateUpdate({"amount": 2}))
    assert await lab.pending() == ["both"]
    await lab.run(resume=StateUpdate({"amount": 3}))
    assert ((await lab.state()).phase, (await lab.state()).values["amount"]) == ("finished", 3)
