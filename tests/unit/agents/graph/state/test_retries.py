"""Retry policies of nodes, and nodes that nobody sees: feature rows 11 and 30, scenario 59."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from agents.core.errors import ModelError, ToolError
from agents.core.interrupt import InterruptSignal, interrupt
from agents.graph import (
    MultipleAnswers,
    NodeContext,
    RetryPolicy,
    StateGraph,
    StateUpdateError,
    node_interrupt,
    task,
)
from tests.unit.agents.graph.support import Lab, State, fan, ids, values_of


def patient(waits: list[float], **more: Any) -> RetryPolicy:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return RetryPolicy(sleep=sleep, backoff=lambda n: timedelta(seconds=n), **more)


def single_node(lab: Lab, node: Any, **options: Any) -> StateGraph:
    graph = StateGraph(State).add_node("a", node, **options)
    return graph.add_edge("__start__", "a").add_edge("a", "__end__")


async def test_a_node_that_fails_runs_again_after_a_while() -> None:
    waits: list[float] = []
    lab = Lab(lambda lab: single_node(lab, lab.flaky("a", 2), retry_policy=patient(waits)))
    assert (await lab.start()).values["log"] == ["a"]
    assert (lab.ran["a"], waits) == (3, [1, 2])


async def test_the_last_error_counts() -> None:
    waits: list[float] = []
    lab = Lab(
        lambda lab: single_node(lab, lab.flaky("a", 9), retry_policy=patient(waits, attempts=2))
    )
    with pytest.raises(OSError, match="away"):
        await lab.start()
    assert (lab.ran["a"], waits) == (2, [1])
    state = await lab.state()
    assert (state.phase, state.tasks[0].error) == ("failed", "OSError: away")


@pytest.mark.parametrize(
    ("error", "options", "tries"),
    [
        (OSError("away"), {"only": OSError}, 3),
        (OSError("away"), {"only": (KeyError, OSError)}, 3),
        (OSError("away"), {"only": KeyError}, 1),
        (OSError("away"), {"only": lambda e: "away" in str(e)}, 3),
        (ToolError("x"), {}, 3),
        (ModelError("x"), {}, 3),
        (StateUpdateError("x", "y"), {}, 1),  # a mistake of the program
    ],
)
async def test_only_some_errors_are_worth_it(error: Exception, options: Any, tries: int) -> None:
    retry = patient([], **options)
    lab = Lab(lambda lab: single_node(lab, lab.flaky("a", 9, error), retry_policy=retry))
    with pytest.raises(type(error)):
        await lab.start()
    assert lab.ran["a"] == tries


async def test_g059_an_interrupt_is_never_retried() -> None:
    lab = Lab(lambda lab: single_node(lab, lab.ask("a", "q"), retry_policy=patient([])))
    assert values_of(await lab.start()) == ["q"]
    assert lab.ran["a"] == 1
    assert (await lab.run(resume="x")).values["a"] == "x"
    assert lab.ran["a"] == 2


async def test_g059_nor_is_one_that_comes_out_beside_an_error() -> None:
    async def asks() -> None:
        interrupt("q")

    async def fails() -> None:
        raise OSError("away")

    async def node(state: State) -> object:
        lab.ran["a"] += 1
        async with asyncio.TaskGroup() as group:
            group.create_task(asks())
            group.create_task(fails())
        return {}

    lab = Lab(lambda lab: single_node(lab, node, retry_policy=patient([])))
    with pytest.raises(ExceptionGroup):
        await lab.start()
    assert lab.ran["a"] == 1


async def test_a_swallowed_question_is_not_retried() -> None:
    async def node(state: State) -> object:
        lab.ran["a"] += 1
        try:
            node_interrupt("q")
        except InterruptSignal as signal:
            raise OSError("away") from signal
        return {}

    lab = Lab(lambda lab: single_node(lab, node, retry_policy=patient([])))
    with pytest.raises(OSError, match="away"):
        await lab.start()
    assert lab.ran["a"] == 1


async def test_answers_stay_with_a_node_that_is_retried() -> None:
    def node(state: State) -> object:
        first, second = node_interrupt("q1"), node_interrupt("q2")
        lab.ran["answered"] += 1
        if lab.ran["answered"] < 3:
            raise OSError("away")
        return {"a": [first, second]}

    lab = Lab(lambda lab: single_node(lab, node, retry_policy=patient([])))
    await lab.start()
    result = await lab.run(resume=MultipleAnswers(("x", "y")))
    assert result.values["a"] == ["x", "y"]
    assert lab.ran["answered"] == 3


async def test_once_is_done_once_over_all_attempts() -> None:
    async def work() -> int:
        lab.ran["work"] += 1
        return lab.ran["work"]

    async def node(state: State, context: NodeContext) -> object:
        number = await task("work", work)
        if context.attempt < 3:
            raise OSError("away")
        return {"n": number}

    lab = Lab(lambda lab: single_node(lab, node, retry_policy=patient([])))
    assert (await lab.start()).values["n"] == 1
    assert lab.ran["work"] == 1


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_sub_graph_goes_on_where_it_failed(depth: int) -> None:
    def build(lab: Lab) -> StateGraph:
        inner = fan(i1=lab.write("i1"), i2=lab.flaky("i2", 1), i3=lab.ask("i3", "q", key="a"))
        for _ in range(depth - 1):
            inner = single_node(lab, inner.compile())
        return single_node(lab, inner.compile(), retry_policy=patient([]))

    lab = Lab(build)
    [question] = (await lab.start()).interrupts
    assert lab.ran == {"i1": 1, "i2": 2, "i3": 1}
    result = await lab.run(resume_map={question.id: "x"})
    assert (sorted(result.values["log"]), result.values["a"]) == (["i1", "i2"], "x")
    assert (lab.ran["i1"], lab.ran["i2"]) == (1, 2)


async def test_hidden_nodes_have_no_breakpoints_unless_they_are_named() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(State).add_node("a", lab.write("a"), hidden=True)
        graph.add_node("b", lab.write("b"))
        return graph.add_edge("__start__", "a").add_edge("a", "b")

    assert values_of(await Lab(build, {"interrupt_before": "*"}).start()) == ["b"]
    assert values_of(await Lab(build, {"interrupt_before": ["a"]}).start()) == ["a"]


async def test_hidden_nodes_are_not_told_of_but_ask_like_others() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(State).add_node("a", lab.write("a"), hidden=True)
        graph.add_node("b", lab.ask("b", "q"), hidden=True).add_node("c", lab.write("c"))
        for name in "abc":
            graph.add_edge("__start__", name)
        return graph

    lab = Lab(build)
    parts = [part async for part in lab.graph.stream({}, thread_id="t")]
    assert [list(part) for part in parts] == [["c"], ["__interrupt__"]]  # type: ignore[call-overload]
    assert len(ids(await lab.state())) == 1
    parts = [part async for part in lab.graph.stream(thread_id="t", resume="x")]
    assert [next(iter(part)) for part in parts] == ["c"]  # type: ignore[call-overload]


@pytest.mark.parametrize("failures", [2, 3])
async def test_an_error_two_graphs_deep_is_retried_and_never_lost(failures: int) -> None:
    def build(lab: Lab) -> StateGraph:
        innermost = fan(i1=lab.write("i1"), i2=lab.flaky("i2", failures))
        between = single_node(lab, innermost.compile())
        return single_node(lab, between.compile(), retry_policy=patient([]))

    lab = Lab(build)
    if failures == 3:
        with pytest.raises(OSError, match="away"):
            await lab.start()
    else:
        assert sorted((await lab.start()).values["log"]) == ["i1", "i2"]
    assert lab.ran == {"i1": 1, "i2": 3}
