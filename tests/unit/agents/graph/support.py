"""Helpers for tests of graphs: counting nodes, and a place where many processes run one graph."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from operator import add
from typing import Annotated, Any, TypedDict

import pytest

from agents.core.asking.answers import InDoubtResult
from agents.core.asking.infos import InDoubtInfo
from agents.graph import CompiledGraph, GraphResult, StateGraph, StateSnapshot, node_interrupt
from agents.memory import MemoryCheckpointStore


class State(TypedDict, total=False):
    foo: str
    a: object
    b: object
    c: object
    n: int
    log: Annotated[list[str], add]


@dataclass
class Lab:
    """One store, and a graph that each call compiles anew: each call is another process."""

    build: Callable[[Lab], StateGraph]
    options: dict[str, Any] = field(default_factory=dict)
    store: Any = field(default_factory=MemoryCheckpointStore)
    ran: Counter[str] = field(default_factory=Counter)
    notes: list[object] = field(default_factory=list)
    flags: dict[str, Any] = field(default_factory=dict)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def graph(self) -> CompiledGraph:
        options = {"checkpoint_store": self.store, **self.options}
        return self.build(self).compile(**options)

    async def run(self, given: dict[str, object] | None = None, **more: Any) -> GraphResult:
        more.setdefault("thread_id", "t")
        return await self.graph.invoke(given, **more)

    async def start(self, **given: object) -> GraphResult:
        return await self.run(given)

    async def answer(self, answers: dict[str, object], **more: Any) -> GraphResult:
        """Answer by what was asked."""
        ids = {str(interrupt.value): interrupt.id for interrupt in (await self.state()).interrupts}
        return await self.run(resume_map={ids[ask]: v for ask, v in answers.items()}, **more)

    async def state(self, checkpoint: int | None = None) -> StateSnapshot:
        return await self.graph.get_state("t", checkpoint)

    async def pending(self) -> list[object]:
        return [interrupt.value for interrupt in (await self.state()).interrupts]

    def ask(self, name: str, *questions: str, key: str = "") -> Callable[[State], object]:
        """A node that asks, and writes the answers under its name."""

        def node(state: State) -> object:
            self.ran[name] += 1
            answers = [node_interrupt(question) for question in questions]
            self.ran[f"{name} done"] += 1
            return {key or name: answers[0] if len(answers) == 1 else answers}

        return node

    def write(self, name: str, **update: object) -> Callable[[State], object]:
        """A node that only writes."""

        def node(state: State) -> object:
            self.ran[name] += 1
            return update or {"log": [name]}

        return node

    def slow(self, name: str, question: str = "") -> Callable[[State], object]:
        """A node that asks, if told so; the first time, it sets `begun` and waits for `go_on`."""

        async def node(state: State) -> object:
            answer = node_interrupt(question) if question else 1
            self.ran[name] += 1
            if self.ran[name] == 1:
                self.begun.set()
                await self.go_on.wait()
            return {name: answer}

        return node

    def flaky(
        self, name: str, failures: int = 1, error: Exception | None = None
    ) -> Callable[[State], object]:
        """A node that fails so many times, and then writes."""

        def node(state: State) -> object:
            self.ran[name] += 1
            if self.ran[name] <= failures:
                raise error or OSError("away")
            return {"log": [name]}

        return node

    async def cut_off(self, call: Coroutine[Any, Any, object]) -> None:
        """Cancel a call when its slow node has begun."""
        task = asyncio.create_task(call)
        await self.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def settled(lab: Lab, result: GraphResult | StateSnapshot) -> GraphResult | StateSnapshot:
    """Let run once more whatever a dead process had begun with an answer."""
    while doubts := [
        interrupt for interrupt in result.interrupts if isinstance(interrupt.value, InDoubtInfo)
    ]:
        again = InDoubtResult(choice="again", by="U1")
        result = await lab.run(resume_map={doubt.id: again for doubt in doubts})
    return result


def ids(result: GraphResult | StateSnapshot) -> list[str]:
    return [interrupt.id for interrupt in result.interrupts]


def values_of(result: GraphResult | StateSnapshot) -> list[object]:
    return [interrupt.value for interrupt in result.interrupts]


def chain(lab: Lab, **nodes: Callable[..., object]) -> StateGraph:
    """A graph of nodes one after the other."""
    graph = StateGraph(State)
    before = "__start__"
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.add_edge(before, "__end__")


def fan(**nodes: Callable[..., object]) -> StateGraph:
    """A graph whose first step runs several nodes side by side."""
    graph = StateGraph(State)
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge("__start__", name)
    return graph
