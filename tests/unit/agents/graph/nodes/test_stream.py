"""What `stream` tells: scenarios 100 and 101 of the graphs' reference."""

from __future__ import annotations

from typing import Any

import pytest

from agents.core.cancel import CancelToken
from agents.core.observers import RunEvent
from agents.graph import START, Send, StateGraph
from tests.unit.agents.graph.support import Lab, State, chain, fan, ids


async def stream(lab: Lab, given: dict[str, object] | None = None, **more: Any) -> list[Any]:
    return [part async for part in lab.graph.stream(given, thread_id="t", **more)]


def a_then_ask(lab: Lab) -> StateGraph:
    return chain(lab, a=lab.write("a", a=1), b=lab.ask("b", "q"))


async def test_g100_updates() -> None:
    lab = Lab(a_then_ask)
    parts = await stream(lab, {})
    waiting = (await lab.state()).interrupts
    assert parts == [{"a": {"a": 1}}, {"__interrupt__": waiting}]
    assert await stream(lab, resume="x") == [{"b": {"b": "x"}}]


async def test_g100_values() -> None:
    lab = Lab(a_then_ask)
    parts = await stream(lab, {}, mode="values")
    state = {"a": 1, "log": []}
    assert parts == [state, {**state, "__interrupt__": (await lab.state()).interrupts}]
    assert await stream(lab, resume="x", mode="values") == [{**state, "b": "x"}]


async def test_g100_several_modes_in_order() -> None:
    lab = Lab(a_then_ask)
    parts = await stream(lab, {}, mode=["updates", "values"])
    assert [mode for mode, _ in parts] == ["updates", "values", "updates", "values"]
    lab = Lab(a_then_ask, {"interrupt_before": ["a"]})
    parts = await stream(lab, {}, mode=["interrupts"])
    assert parts == [("interrupts", (await lab.state()).interrupts)]


async def test_g101_finished_siblings_are_told_as_cached() -> None:
    lab = Lab(lambda lab: fan(a=lab.write("a", a=1), b=lab.ask("b", "q")))
    await stream(lab, {})
    assert await stream(lab, resume="x") == [
        {"a": {"a": 1}, "__metadata__": {"cached": True}},
        {"b": {"b": "x"}},
    ]


async def test_errors_come_after_what_happened() -> None:
    def fail(state: State) -> object:
        raise ValueError("boom")

    lab = Lab(lambda lab: chain(lab, a=lab.write("a"), b=fail))
    parts = lab.graph.stream({}, thread_id="t")
    assert await anext(parts) == {"a": {"log": ["a"]}}
    with pytest.raises(ValueError, match="boom"):
        await anext(parts)


async def test_a_reader_that_goes_away_leaves_a_thread_that_recovers() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.write("a"), b=lab.write("b")))
    parts = lab.graph.stream({}, thread_id="t")
    await anext(parts)
    await parts.aclose()
    assert (await lab.state()).phase == "running"
    assert (await lab.graph.recover("t")).values["log"] == ["a", "b"]


async def test_e143_a_graph_that_is_stopped_between_two_steps() -> None:
    token = CancelToken()

    def stop(state: State) -> object:
        token.cancel("after_tools")
        return {"a": state["foo"]}

    lab = Lab(lambda lab: chain(lab, a=stop, b=lambda s: {"b": s["foo"]}))
    result = await lab.run({"foo": "x"}, cancel=token)
    assert [interrupt.kind for interrupt in result.interrupts] == ["stop"]
    assert (result.next, result.values["a"]) == (("b",), "x")
    assert (await lab.run()).values["b"] == "x"


async def test_e143_a_stop_in_a_sub_graph_beside_a_question() -> None:
    token = CancelToken()

    def stop(state: State) -> object:
        token.cancel("after_tools")
        return {"a": 1}

    def build(lab: Lab) -> StateGraph:
        inner = chain(lab, s=stop, n=lab.write("n")).compile()
        return fan(p=inner, b=lab.ask("b", "q"))  # type: ignore[arg-type]

    lab = Lab(build)
    result = await lab.run({}, cancel=token)
    assert sorted(interrupt.kind for interrupt in result.interrupts) == ["node", "stop"]
    question = next(interrupt.id for interrupt in result.interrupts if interrupt.kind == "node")
    result = await lab.run()
    assert ids(result) == [question]
    assert lab.ran == {"n": 1, "b": 1}
    assert (await lab.run(resume="x")).values["b"] == "x"


async def test_observers_are_told() -> None:
    events: list[RunEvent] = []
    lab = Lab(a_then_ask, {"observers": [events.append]})
    await lab.start()
    await lab.run(resume="x")
    names = ["RunStarted", "RunInterrupted", "RunResumed", "RunFinished"]
    assert [type(event).__name__ for event in events] == names

    def fail(state: State) -> object:
        raise ValueError("boom")

    events.clear()
    lab.build = lambda lab: chain(lab, a=fail)
    with pytest.raises(ValueError, match="boom"):
        await lab.start()
    assert [type(event).__name__ for event in events] == ["RunStarted", "RunFailed"]


async def test_e143_a_stop_keeps_the_inputs_of_what_has_not_begun() -> None:
    token = CancelToken()

    def stop(state: State) -> object:
        token.cancel("now")
        return {"foo": "x"}

    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(State).add_node("a", stop).add_edge(START, "a")
        graph.add_node("w", lambda sent: {"log": [f"{sent['n']} of {sent['foo']}"]})
        sends = [Send("w", {"foo": "own", "n": number}) for number in (1, 2)]
        graph.add_conditional_edges("a", lambda s: sends, ["w"])
        return graph

    lab = Lab(build)
    result = await lab.run({"foo": "given"}, cancel=token)
    assert (result.next, result.values["log"]) == (("w", "w"), [])
    assert (await lab.run()).values["log"] == ["1 of own", "2 of own"]
