"""Several nodes in one step: scenarios 22 to 40 of the graphs' reference."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.core.errors import UnknownInterruptError
from agents.graph import (
    AlreadyAnsweredError,
    Send,
    SeveralPendingError,
    StateGraph,
    StateUpdateError,
    node_interrupt,
)
from tests.unit.agents.graph.support import Lab, State, fan, ids, values_of


def pair(lab: Lab) -> StateGraph:
    """a and b ask side by side; j joins what they wrote."""

    def join(state: State) -> object:
        lab.ran["j"] += 1
        return {"c": f"{state.get('a')}+{state.get('b')}"}

    graph = fan(a=lab.ask("a", "a?"), b=lab.ask("b", "b?"))
    graph.add_node("j", join)
    return graph.add_edge("a", "j").add_edge("b", "j")


async def test_g022_parallel_questions() -> None:
    lab = Lab(pair)
    result = await lab.start(foo="x")
    assert values_of(result) == ["a?", "b?"]
    assert result.next == ("a", "b")
    assert lab.ran == {"a": 1, "b": 1}
    assert result.values == {"foo": "x", "log": []}


async def test_g023_one_value_for_two_is_refused() -> None:
    lab = Lab(pair)
    await lab.start()
    before = await lab.state()
    with pytest.raises(SeveralPendingError, match="resume_map"):
        await lab.run(resume="x")
    assert await lab.state() == before
    assert lab.ran == {"a": 1, "b": 1}


async def test_g025_g026_an_unknown_id_alone_or_beside_a_known_one() -> None:
    lab = Lab(pair)
    result = await lab.start()
    for answers in ({"nobody": 1}, {ids(result)[0]: 1, "nobody": 1}):
        with pytest.raises(UnknownInterruptError) as caught:
            await lab.run(resume_map=answers)
        assert caught.value.pending == tuple(ids(result))
    assert len(await lab.graph.history("t")) == 1
    assert (ids(await lab.state()), lab.ran) == (ids(result), {"a": 1, "b": 1})


async def test_g028_one_of_two() -> None:
    lab = Lab(pair)
    first = await lab.start()
    result = await lab.answer({"a?": "A"})
    assert values_of(result) == ["b?"]
    assert ids(result) == ids(first)[1:]
    assert (result.next, result.values["a"]) == (("b",), "A")
    assert lab.ran == {"a": 2, "a done": 1, "b": 1}
    assert (await lab.answer({"b?": "B"})).values["c"] == "A+B"
    assert lab.ran == {"a": 2, "a done": 1, "b": 2, "b done": 1, "j": 1}


async def test_g029_an_answered_sibling() -> None:
    lab = Lab(pair)
    first = await lab.start()
    await lab.answer({"a?": "A"})
    with pytest.raises(AlreadyAnsweredError) as caught:
        await lab.run(resume_map={ids(first)[0]: "again"})
    assert caught.value.pending == (ids(first)[1],)


async def test_g031_the_record_of_the_pause() -> None:
    lab = Lab(pair)
    first = await lab.start()
    await lab.answer({"a?": "A"})
    record = await lab.state(first.checkpoint)
    assert (record.next, values_of(record)) == (("a", "b"), ["a?", "b?"])
    assert "a" not in record.values


async def test_g032_successors_of_a_finished_sibling_wait() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = fan(a=lab.write("a", a=1), b=lab.ask("b", "b?"))
        graph.add_node("c", lab.write("c", c=1))
        return graph.add_edge("a", "c")

    lab = Lab(build)
    result = await lab.start()
    assert (result.values["a"], result.next, lab.ran["c"]) == (1, ("b",), 0)
    await lab.answer({"b?": "B"})
    assert lab.ran == {"a": 1, "b": 2, "b done": 1, "c": 1}


async def test_g034_a_slow_sibling_is_not_cancelled() -> None:
    async def slow(state: State) -> object:
        lab.ran["a"] += 1
        await asyncio.wait_for(lab.flags["asked"].wait(), 60)
        return {"a": 1}

    def ask(state: State) -> object:
        lab.flags["loop"].call_soon_threadsafe(lab.flags["asked"].set)
        return {"b": node_interrupt("b?")}

    lab = Lab(lambda lab: fan(a=slow, b=ask))
    lab.flags = {"asked": asyncio.Event(), "loop": asyncio.get_running_loop()}
    assert (await lab.start()).values["a"] == 1
    await lab.answer({"b?": "B"})
    assert lab.ran["a"] == 1


async def test_g035_e134_a_failed_sibling_runs_again() -> None:
    lab = Lab(lambda lab: fan(a=lab.flaky("a"), b=lab.ask("b", "b?"), c=lab.write("c")))
    with pytest.raises(OSError, match="away"):
        await lab.start()
    state = await lab.state()
    assert (state.phase, state.next, values_of(state)) == ("failed", ("a", "b"), ["b?"])
    assert [(task.status, task.error) for task in state.tasks] == [
        ("failed", "OSError: away"),
        ("waiting", None),
        ("done", None),
    ]
    result = await lab.answer({"b?": "B"})
    assert (sorted(result.values["log"]), result.values["b"]) == (["a", "c"], "B")
    assert lab.ran == {"a": 2, "b": 2, "b done": 1, "c": 1}


async def test_g035_going_on_without_an_answer_runs_only_who_failed() -> None:
    lab = Lab(lambda lab: fan(a=lab.flaky("a"), b=lab.ask("b", "b?")))
    with pytest.raises(OSError, match="away"):
        await lab.start()
    asked = ids(await lab.state())
    result = await lab.run()
    assert ids(result) == asked
    assert lab.ran == {"a": 2, "b": 1}


async def test_several_errors_are_told_together() -> None:
    def fail(state: State) -> object:
        raise ValueError("boom")

    lab = Lab(lambda lab: fan(a=fail, b=fail))
    with pytest.raises(ValueError, match="boom") as caught:
        await lab.start()
    assert "beside it: ValueError: boom" in caught.value.__notes__


async def test_g037_an_edge_that_waits_for_all() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = fan(a=lab.write("a", a="1"), b=lab.ask("b", "b?"))
        graph.add_node("j", lambda state: {"log": [f"{state['a']}{state['b']}"]})
        return graph.add_edge(["a", "b"], "j")

    lab = Lab(build)
    await lab.start()
    assert (await lab.answer({"b?": "x"})).values["log"] == ["1x"]


async def test_g037_an_edge_that_waits_across_steps() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = fan(a=lab.write("a", a="1"), b=lab.write("b", b="2"))
        graph.add_node("slow", lab.ask("slow", "q", key="c")).add_edge("b", "slow")
        graph.add_node("j", lab.write("j"))
        return graph.add_edge(["a", "slow"], "j")

    lab = Lab(build)
    assert (await lab.start()).next == ("slow",)
    result = await lab.run(resume="x")
    assert (result.values["log"], lab.ran["j"]) == (["j"], 1)


async def test_g038_send_keeps_each_its_own_input() -> None:
    def work(state: dict[str, Any]) -> object:
        return {"log": [f"{state['x']}={node_interrupt('ok ' + state['x'] + '?')}"]}

    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(State).add_node("w", work)
        return graph.add_conditional_edges(
            "__start__", lambda state: [Send("w", {"x": "x"}), Send("w", {"x": "y"})], ["w"]
        )

    lab = Lab(build)
    result = await lab.start()
    assert values_of(result) == ["ok x?", "ok y?"]
    assert [interrupt.address for interrupt in result.interrupts] == [
        "runnable:graph;node:w",
        "runnable:graph;node:w:2",
    ]
    await lab.answer({"ok y?": 2})
    assert (await lab.answer({"ok x?": 1})).values["log"] == ["x=1", "y=2"]


async def test_g040_e121_two_questions_beside_one() -> None:
    lab = Lab(lambda lab: fan(a=lab.ask("a", "A1", "A2"), b=lab.ask("b", "B")))
    first = await lab.start()
    result = await lab.answer({"A1": 1})
    assert values_of(result) == ["A2", "B"]
    assert result.next == ("a", "b")
    assert ids(result)[1] == ids(first)[1]
    with pytest.raises(SeveralPendingError):
        await lab.run(resume="x")
    result = await lab.answer({"A2": 2, "B": 3})
    assert (result.values["a"], result.values["b"]) == ([1, 2], 3)
    assert lab.ran == {"a": 3, "a done": 1, "b": 2, "b done": 1}


async def test_two_writers_of_a_plain_key() -> None:
    lab = Lab(lambda lab: fan(a=lab.write("a", c=1), b=lab.write("b", c=2)))
    with pytest.raises(StateUpdateError, match="same step"):
        await lab.start()
    state = await lab.state()
    assert (state.phase, state.next, state.values) == ("failed", (), {"log": []})
    assert (await lab.graph.update_state("t", {"c": 3}, as_node="b")).values["c"] == 3


async def test_g059_a_retry_around_a_node_does_not_catch_a_question() -> None:
    def retried(node: Any) -> Any:
        def run(state: State) -> object:
            for _ in range(3):
                try:
                    return node(state)
                except Exception:  # noqa: BLE001, S112 - a careless wrapper
                    continue
            return None

        return run

    lab = Lab(lambda lab: fan(a=retried(lab.ask("a", "q"))))
    await lab.start()
    assert lab.ran["a"] == 1
    assert (await lab.run(resume="x")).values["a"] == "x"


async def test_stop_iteration_does_not_hang() -> None:
    lab = Lab(lambda lab: fan(a=lambda state: next(iter([]))))
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(lab.start(), 60)


async def test_e134_without_a_store_nothing_is_kept() -> None:
    def fails(state: State) -> object:
        raise ValueError("plain")

    lab = Lab(lambda lab: fan(a=fails, b=lab.ask("b", "q")))
    graph = lab.build(lab).compile()
    with pytest.raises(ValueError, match="plain"):
        await graph.invoke({})
