"""Random graphs with random questions, answered bit by bit, in any order, by ever new processes.

Whatever the order, and whoever dies in between: the result is that of all answers given at once,
nodes that finished ran once, and nothing ran that was not answered.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from operator import add
from typing import Annotated, Any, TypedDict

from hypothesis import given, settings, strategies as st

from agents.core.asking.answers import InDoubtResult
from agents.core.asking.infos import InDoubtInfo
from agents.core.errors import CheckpointNotFoundError
from agents.graph import (
    END,
    START,
    CompiledGraph,
    GraphResult,
    Send,
    StateGraph,
    node_interrupt,
)
from agents.memory import MemoryCheckpointStore
from tests.unit.agents.support import Died, DyingStore


class State(TypedDict, total=False):
    log: Annotated[list[str], add]


@dataclass(frozen=True)
class Spec:
    """A node: how often it asks, where it breaks, and what it is made of."""

    questions: int
    before: bool
    after: bool
    sends: int
    below: tuple[tuple[Spec, ...], ...]


Layers = tuple[tuple[Spec, ...], ...]


def specs(below: st.SearchStrategy[Layers]) -> st.SearchStrategy[Layers]:
    node = st.builds(
        Spec,
        questions=st.integers(0, 2),
        before=st.booleans(),
        after=st.sampled_from([False, False, True]),
        sends=st.sampled_from([0, 0, 2]),
        below=st.one_of(st.just(()), st.just(()), below),
    )
    layer = st.lists(node, min_size=1, max_size=3).map(tuple)
    return st.lists(layer, min_size=1, max_size=3).map(tuple)


graphs = specs(specs(st.just(())))


@dataclass
class Trial:
    """One thread of a graph, and what ran in it."""

    layers: Layers
    store: Any = field(default_factory=MemoryCheckpointStore)
    finished: Counter[str] = field(default_factory=Counter)
    given: set[str] = field(default_factory=set)

    def graph(self) -> CompiledGraph:
        return self._build(self.layers, "g", checkpoint_store=self.store)

    def _build(self, layers: Layers, path: str, **options: Any) -> CompiledGraph:
        graph = StateGraph(State)
        names = [[f"n{i}_{j}" for j in range(len(layer))] for i, layer in enumerate(layers)]
        for layer, row in zip(layers, names, strict=True):
            for spec, name in zip(layer, row, strict=True):
                self._add(graph, spec, name, f"{path}.{name}")
        self._connect(graph, layers, names)
        flat = [
            pair for rows in zip(layers, names, strict=True) for pair in zip(*rows, strict=True)
        ]
        return graph.compile(
            interrupt_before=[name for spec, name in flat if spec.before],
            interrupt_after=[name for spec, name in flat if spec.after],
            **options,
        )

    def _add(self, graph: StateGraph, spec: Spec, name: str, path: str) -> None:
        if spec.below:
            graph.add_node(name, self._build(spec.below, path))
            return

        def node(state: dict[str, Any]) -> object:
            where = f"{path}{state.get('sent', '')}"
            answers = []
            for at in range(spec.questions):
                question = f"{where}?{at}"
                answers.append(str(node_interrupt(question)))
                assert question in self.given
            self.finished[where] += 1
            return {"log": [f"{where}={','.join(answers)}"]}

        graph.add_node(name, node)

    def _connect(self, graph: StateGraph, layers: Layers, names: list[list[str]]) -> None:
        """Each layer waits for the whole layer before it; some nodes are sent their own input."""
        for at, (layer, row) in enumerate(zip(layers, names, strict=True)):
            for spec, name in zip(layer, row, strict=True):
                if at:
                    graph.add_edge(names[at - 1], name)
                elif spec.sends and not spec.below:
                    sends = [Send(name, {"sent": f"#{n}"}) for n in range(spec.sends)]
                    graph.add_conditional_edges(START, partial(_sent, sends), [name])
                else:
                    graph.add_edge(START, name)
        for name in names[-1]:
            graph.add_edge(name, END)

    async def go_on(self) -> GraphResult:
        """Another process takes the thread up, wherever it stands."""
        graph = self.graph()
        try:
            phase = (await graph.get_state("t")).phase
        except CheckpointNotFoundError:
            return await graph.invoke({"log": ["start"]}, thread_id="t")
        if phase == "running":
            return await graph.recover("t")
        if phase == "finished":
            return GraphResult(values=(await graph.get_state("t")).values)
        return await graph.invoke(thread_id="t")

    async def answer(self, result: GraphResult, chosen: list[int]) -> GraphResult:
        answers = {}
        for at in chosen:
            interrupt = result.interrupts[at]
            self.given.add(str(interrupt.value))
            answers[interrupt.id] = (
                f"A({interrupt.value})" if interrupt.kind == "node" else _go(interrupt.value)
            )
        return await self.graph().invoke(thread_id="t", resume_map=answers)


def _go(asked: object) -> object:
    """Let it go on; also a node behind a breakpoint whose process died while it ran."""
    return InDoubtResult(choice="again") if isinstance(asked, InDoubtInfo) else True


async def all_at_once(layers: Layers) -> Trial:
    trial = Trial(layers)
    result = await trial.go_on()
    while result.interrupts:
        result = await trial.answer(result, list(range(len(result.interrupts))))
    return trial


async def bit_by_bit(trial: Trial, draw: Any) -> list[str]:
    result = await trial.go_on()
    while result.interrupts:
        count = len(result.interrupts)
        chosen = draw(st.lists(st.integers(0, count - 1), min_size=1, unique=True))
        kept = {interrupt.id for at, interrupt in enumerate(result.interrupts) if at not in chosen}
        result = await trial.answer(result, chosen)
        assert kept <= {interrupt.id for interrupt in result.interrupts}
    return list(result.values["log"])


@settings(deadline=None)
@given(layers=graphs, data=st.data())
def test_the_order_of_answers_does_not_matter(layers: Layers, data: st.DataObject) -> None:
    async def check() -> None:
        expected = await all_at_once(layers)
        trial = Trial(layers)
        log = await bit_by_bit(trial, data.draw)
        assert log == (await expected.graph().get_state("t")).values["log"]
        assert trial.finished == expected.finished
        assert set(trial.finished.values()) <= {1}

    asyncio.run(check())


@settings(deadline=None)
@given(layers=graphs, at=st.integers(1, 25), before=st.booleans(), data=st.data())
def test_deaths_do_not_matter_either(
    layers: Layers, at: int, before: bool, data: st.DataObject
) -> None:
    async def check() -> None:
        expected = await all_at_once(layers)
        inner = MemoryCheckpointStore()
        trial = Trial(layers, store=DyingStore(inner, at=at, before=before))
        try:
            log = await bit_by_bit(trial, data.draw)
        except Died:
            finished = Counter(trial.finished)
            trial.store = inner
            log = await bit_by_bit(trial, data.draw)
            # Whoever was finished when it died, and whose note was not written, is in one step.
            again = [name for name in finished if trial.finished[name] > 1]
            assert all(trial.finished[name] == 2 for name in again)
            assert len({_step(name) for name in again}) <= 1
        assert log == (await expected.graph().get_state("t")).values["log"]
        assert set(trial.finished) == set(expected.finished)

    asyncio.run(check())


def _sent(sends: list[Send], _: object) -> list[Send]:
    return sends


def _step(name: str) -> str:
    """The layer of the outermost node."""
    return name.split(".")[1].split("_", maxsplit=1)[0]
