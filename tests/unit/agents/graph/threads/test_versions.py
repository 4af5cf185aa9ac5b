"""A later version of a program answers what an earlier one asked: it fits, or it is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from agents.core.cancel import CancelToken
from agents.core.errors import AgentChangedError
from agents.graph import (
    START,
    GraphMismatchError,
    StateGraph,
    ThreadBusyError,
    node_interrupt,
)
from agents.memory import MemoryCheckpointStore
from tests.unit.agents.graph.support import Lab, State, chain, fan, ids, values_of

Build = Callable[[Lab], StateGraph]


SHIP = (("legal", "sales"), "ship")
PUBLISH = (("qa", "sales"), "publish")


async def test_an_edge_that_waits_is_known_by_its_nodes_and_not_by_its_position() -> None:
    def loop(*joins: tuple[tuple[str, ...], str]) -> Build:
        def build(lab: Lab) -> StateGraph:
            graph = StateGraph(State)
            graph.add_node("legal", lab.write("legal")).add_edge(START, "legal")
            graph.add_node("sales", lab.ask("sales", "sales?", key="a")).add_edge("legal", "sales")
            graph.add_node("qa", lab.ask("qa", "qa?", key="b")).add_edge("sales", "qa")
            for name in ("ship", "publish"):
                graph.add_node(name, lab.write(name))
            for sources, target in joins:
                graph.add_edge(sources, target)
            return graph

        return build

    lab = Lab(loop(SHIP, PUBLISH))
    await lab.start()
    lab.build = loop(PUBLISH, SHIP)
    result = await lab.run(resume="yes")
    assert (result.values["log"], values_of(result)) == (["legal", "ship"], ["qa?"])
    assert (lab.ran["ship"], lab.ran["publish"]) == (1, 0)
    lab.build = loop((("sales", "qa"), "publish"), (("sales", "legal"), "ship"))
    await lab.run(resume="yes")
    assert (lab.ran["ship"], lab.ran["publish"]) == (1, 1)


async def test_an_edge_that_is_gone_is_told_before_anything_runs() -> None:
    lab = Lab(lambda lab: two_steps(lab, "legal", "sales"))
    await lab.start()
    lab.build = lambda lab: two_steps(lab, "start", "sales")
    with pytest.raises(AgentChangedError, match=r"legal.*ship"):
        await lab.run(resume="yes")
    lab.build = lambda lab: two_steps(lab, "legal", "sales")
    assert (await lab.run(resume="yes")).values["log"] == ["start", "legal", "ship"]


def two_steps(lab: Lab, *sources: str) -> StateGraph:
    """A graph whose last node waits for nodes of two steps."""
    graph = chain(
        lab,
        start=lab.write("start"),
        legal=lab.write("legal"),
        sales=lab.ask("sales", "q", key="a"),
    )
    return graph.add_node("ship", lab.write("ship")).add_edge(sources, "ship")


async def test_the_same_edge_twice_is_one_edge() -> None:
    lab = Lab(lambda lab: two_steps(lab, "legal", "sales").add_edge(["sales", "legal"], "ship"))
    await lab.start()
    await lab.run(resume="yes")
    assert lab.ran["ship"] == 1


async def test_a_node_that_became_a_sub_graph_refuses_what_waits_in_it() -> None:
    inner: Build = lambda lab: chain(lab, s=lab.ask("s", "inner?", key="a"))  # noqa: E731
    lab = Lab(lambda lab: chain(lab, a=lab.ask("a", "q")))
    await lab.start()
    plain = lab.build
    lab.build = lambda lab: chain(lab, a=inner(lab).compile())  # type: ignore[arg-type]
    with pytest.raises(AgentChangedError, match=r"a function.*a sub-graph"):
        await lab.run(resume="yes")
    with pytest.raises(AgentChangedError):
        await lab.run()
    assert lab.ran == {"a": 1}
    lab.build = plain
    assert (await lab.run(resume="yes")).values["a"] == "yes"


async def test_a_sub_graph_that_became_a_function_refuses_what_waits_in_it() -> None:
    lab = Lab(
        lambda lab: chain(lab, a=chain(lab, s=lab.ask("s", "inner?", key="a")).compile())  # type: ignore[arg-type]
    )
    [question] = ids(await lab.start())
    lab.build = lambda lab: chain(lab, a=lab.ask("a", "inner?"))
    with pytest.raises(AgentChangedError, match=r"a sub-graph.*a function"):
        await lab.run(resume="yes")
    assert (ids(await lab.state()), lab.ran) == ([question], {"s": 1})


async def test_a_node_that_is_gone_from_a_sub_graph_is_told_before_anything_runs() -> None:
    def build(name: str) -> Build:
        return lambda lab: fan(
            a=chain(lab, **{name: lab.ask(name, "inner?", key="a")}).compile(),  # type: ignore[arg-type]
            b=lab.ask("b", "b?"),
        )

    lab = Lab(build("old"))
    await lab.start()
    lab.build = build("new")
    with pytest.raises(AgentChangedError, match="'old'"):
        await lab.answer({"b?": 1})
    assert lab.ran == {"old": 1, "b": 1}


async def test_a_thread_of_a_renamed_graph_can_be_cancelled() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.ask("a", "q")))
    await lab.start()
    lab.options = {"name": "renamed"}
    with pytest.raises(GraphMismatchError, match="`cancel`"):
        await lab.run(resume="yes")
    assert (await lab.graph.cancel("t", "renamed")).phase == "cancelled"
    lab.options = {}
    assert (await lab.state()).interrupts == ()


async def test_a_thread_that_is_left_running_says_how_to_end_it() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.slow("a")))
    await lab.cut_off(lab.start())
    for call in (lab.graph.cancel("t", "x"), lab.graph.fork("t"), lab.start(), lab.run(resume=1)):
        with pytest.raises(ThreadBusyError, match="recover"):
            await call
    token = CancelToken()
    token.cancel()
    result = await lab.graph.recover("t", cancel=token)
    assert ([interrupt.kind for interrupt in result.interrupts], lab.ran["a"]) == (["stop"], 1)
    assert (await lab.graph.cancel("t", "x")).phase == "cancelled"


async def test_a_recovery_that_is_stopped_loses_neither_answers_nor_what_is_finished() -> None:
    finished = asyncio.Event()

    class Noticing(MemoryCheckpointStore):
        async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
            await super().append(checkpoint_id, entry, base=base, index=index)
            if lab.ran["a done"]:
                finished.set()

    async def slow(state: State) -> object:
        answer = node_interrupt("b?")
        if not lab.flags:
            await finished.wait()
            lab.begun.set()
            await lab.go_on.wait()
        return {"b": answer}

    lab = Lab(
        lambda lab: (
            fan(a=lab.ask("a", "a?"))
            .add_node("b", slow, idempotent=True)
            .add_edge("__start__", "b")
            .add_node("c", lab.write("c"))
            .add_edge(["a", "b"], "c")
        ),
        store=Noticing(),
    )
    first, second = ids(await lab.start())
    await lab.cut_off(lab.run(resume_map={first: 1, second: 2}))
    lab.flags["alive"] = True
    token = CancelToken()
    token.cancel()
    result = await lab.graph.recover("t", cancel=token)
    assert (result.values["a"], result.values["b"], result.next) == (1, 2, ("c",))
    assert lab.ran["a done"] == 1
    assert (await lab.run()).values["log"] == ["c"]
