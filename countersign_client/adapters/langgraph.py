"""LangGraph: pending interrupts of a thread, also of LangChain's human-in-the-loop middleware.

Each becomes a request; all answers of a round resume the graph at once. Extra:
`countersign-client[langgraph]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from countersign_client.adapters.decisions import Asked, key_of, over
from countersign_client.adapters.frameworks import AdapterError, framework
from countersign_client.adapters.interrupts import Form, form_of
from countersign_client.asynchronous import AsyncCountersign
from countersign_client.requests import Request

_types: Any = framework("langgraph.types", "langgraph", "langgraph", "1.2.22", "2")
_STRICT = {"__pregel_strict_resume": True}
"""An id that is not pending, or was answered before, is an error and writes nothing."""

_Round = dict[str, tuple[Form, list[Asked]]]
"""By the id of an interrupt: its form, and what is asked for each position."""

_locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()


async def run(
    graph: Any,
    input: Any,  # noqa: A002 - LangGraph's word
    config: Mapping[str, Any],
    *,
    client: AsyncCountersign,
    tool: str | Callable[[Any], str] | None = None,
    wait: float | None = None,
    **request: Any,
) -> Any:
    """Run a graph, and ask people about each interrupt, until nothing is pending.

        config = {"configurable": {"thread_id": "t1"}}
        state = await run(app, {"messages": [("user", "Refund order 12")]}, config, client=client)

    One process at a time works on a thread. A program that died calls again with input None.

    Args:
        graph: A compiled graph with a checkpointer.
        input: What the graph begins with; None to go on where the thread stands.
        config: Has a `thread_id`, and no `checkpoint_id`.
        client: The client.
        tool: The tool that a plain interrupt with a mapping is about, or a function that tells it
            from the value: people decide on its arguments, and the interrupt gets those to run.
        wait: Seconds to wait for people in each round; None: until they have decided.
        request: Further arguments of `AsyncCountersign.create`, for each request.

    Returns:
        The last state.

    Raises:
        AdapterError: The thread waits for people and `input` is given, or an interrupt is of no
            known form. Nothing was resumed.
        StillPending: People have not decided within `wait`. Nothing was resumed.
        NotApproved: People did not answer a plain interrupt, or did not agree. Nothing was resumed.
    """
    thread = _Thread(graph, config, client, tool, request)
    async with thread.lock:
        state = await graph.aget_state(config)
        if input is not None and state.interrupts:
            raise AdapterError("The thread waits for people: call with input None to go on")
        if input is not None or (state.next and not state.interrupts):
            await graph.ainvoke(input, config)
    while asked := await thread.round():
        await thread.answer(asked, wait)
    return (await graph.aget_state(config)).values


async def pending(
    graph: Any,
    config: Mapping[str, Any],
    *,
    client: AsyncCountersign,
    tool: str | Callable[[Any], str] | None = None,
    **request: Any,
) -> list[Request]:
    """Ask about what is pending, and do not wait; for programs that are called back.

    Args:
        graph: As `run`.
        config: As `run`.
        client: As `run`.
        tool: As `run`.
        request: As `run`, such as `callback_url`.

    Returns:
        The requests of the round, as they stand; none if nothing is pending.
    """
    thread = _Thread(graph, config, client, tool, request)
    return await thread.create(await thread.round())


async def resume(
    graph: Any,
    config: Mapping[str, Any],
    *,
    client: AsyncCountersign,
    tool: str | Callable[[Any], str] | None = None,
    **request: Any,
) -> Any:
    """Resume once, if people have decided on all that is pending. A second call does nothing.

    Args:
        graph: As `run`.
        config: As `run`.
        client: As `run`.
        tool: As it was given to `pending`.
        request: As it was given to `pending`.

    Returns:
        The state.

    Raises:
        StillPending: Something of the round is not over. Nothing was resumed.
    """
    thread = _Thread(graph, config, client, tool, request)
    if asked := await thread.round():
        await thread.answer(asked, 0)
    return (await graph.aget_state(config)).values


class _Thread:
    """One thread of a graph, with the people who are asked."""

    def __init__(
        self,
        graph: Any,
        config: Mapping[str, Any],
        client: AsyncCountersign,
        tool: str | Callable[[Any], str] | None,
        request: Mapping[str, Any],
    ) -> None:
        given = config.get("configurable") or {}
        if not hasattr(graph.checkpointer, "aget_tuple"):
            raise AdapterError("Compile the graph with a checkpointer; nothing ran")
        if not given.get("thread_id") or given.get("checkpoint_id"):
            raise AdapterError("config: give a thread_id, and no checkpoint_id; nothing ran")
        self._names = (str(given["thread_id"]), str(given.get("checkpoint_ns", "")))
        self._graph, self._config, self._client = graph, config, client
        self._tool, self._request = tool, request
        self.lock = _locks.setdefault((id(graph.checkpointer), self._names[0]), asyncio.Lock())

    async def round(self) -> _Round:
        """Read all pending interrupts, each with what is asked."""
        state = await self._graph.aget_state(self._config)
        return {each.id: self._asked(each) for each in state.interrupts}

    async def create(self, asked: _Round) -> list[Request]:
        """Ask, in the order of the interrupts."""
        return [await each.create(self._client, self._request) for each in _actions(asked)]

    async def answer(self, asked: _Round, wait: float | None) -> None:
        """Wait for people, and resume all interrupts of the round at once, if they still wait."""
        done = iter(await over(self._client, await self.create(asked), wait))
        answers = {
            id_: form.answer([(action, next(done)) for action in actions])
            for id_, (form, actions) in asked.items()
        }
        async with self.lock:
            if _actions(await self.round()) != _actions(asked):
                return  # another run has resumed it
            given = {**(self._config.get("configurable") or {}), **_STRICT}
            await self._graph.ainvoke(
                _types.Command(resume=answers), {**self._config, "configurable": given}
            )

    def _asked(self, interrupt: Any) -> tuple[Form, list[Asked]]:
        form = form_of(interrupt.value, getattr(interrupt, "response_schema", None), self._tool)
        source = {
            "framework": "langgraph",
            "agent": str(getattr(self._graph, "name", "")),
            "run": self._names[0],
        }
        return form, [
            form.asked(key_of("lg", *self._names, interrupt.id, str(position)), position, source)
            for position in range(form.count)
        ]


def _actions(asked: _Round) -> list[Asked]:
    return [action for _, actions in asked.values() for action in actions]
