"""Runs one node's function and reads its result; `task()` runs a part of a node once."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from agents.core.codec import decode, encode
from agents.core.component.exits import contained, in_thread
from agents.core.journal import TASK
from agents.core.scope import Scope, current_scope
from agents.graph.commands import END, Command
from agents.graph.errors import GotoError, OutsideNodeError, StateUpdateError
from agents.graph.nodes.questions import node_here
from agents.graph.options import is_async
from agents.graph.state.channels import Channels, Values
from agents.graph.state.place import Outcome
from agents.graph.state.plan import Node, OuterGraph, Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """Information about a node's run, for nodes that take a second argument.

    Attributes:
        node: Name of the node.
        run: Number of this run of the node in its thread, from 1.
        step: Number of finished steps of this turn.
        thread_id: Id of the thread, or of the enclosing agent's run; empty if nothing is stored.
        attempt: Number of the attempt by its retry policy in this process, from 1.
    """

    node: str
    run: int
    step: int
    thread_id: str
    attempt: int = 1


async def call_function(node: Node, state: object, context: NodeContext) -> object:
    """Call a node's function; a plain function runs in a thread of its own."""
    function = cast("Callable[..., object]", node.function)
    arguments = (state, context) if node.takes_context else (state,)
    with contained():
        if is_async(function):
            return await cast("Awaitable[object]", function(*arguments))
        result = await in_thread(function, *arguments)
        return await result if inspect.isawaitable(result) else result


def read_outcome(here: OuterGraph, result: object, around: OuterGraph | None = None) -> Outcome:
    """Check and convert the result of a node."""
    topology, who = here.topology, f"node {here.node.name!r}"
    if isinstance(result, Command):
        if not result.graph:
            return _commanded(here, who, result)
        if around is None or result.graph != Command.PARENT:
            raise GotoError(who, result.graph, (*topology.nodes, END))
        return replace(_commanded(around, who, result), is_for_parent=True)
    if result is None:
        return Outcome(update={})
    if not isinstance(result, Mapping):
        fault = f"a node returns a dict, a Command or None, not a {type(result).__name__}"
        raise StateUpdateError(who, fault)
    return Outcome(update=deepcopy(topology.channels.check(result, who)))


def _commanded(there: OuterGraph, who: str, command: Command) -> Outcome:
    """Convert a command to the outcome of a node."""
    topology, named = there.topology, there.node.destinations
    update = topology.channels.check(command.update, who)
    allowed = None if named is None else (*named, END)
    targets = tuple(topology.check_target(who, target, allowed) for target in command.targets)
    return Outcome(update=deepcopy(update), goto=targets or None)


def graph_input(node: Node, state: object, shown: object) -> object:
    """Return the input of a sub-graph.

    `state` is the parent's state, or the argument of a `Send`; `shown` is the form of it that nodes
    receive.
    """
    if not isinstance(state, Mapping):
        fault = f"a sub-graph begins with a dict, not with a {type(state).__name__}"
        raise StateUpdateError(f"node {node.name!r}", fault)
    if node.to_input is not None:
        return node.to_input(cast("Values", shown))
    names = cast("Topology", node.graph).channels.names
    return {key: value for key, value in state.items() if key in names}


def graph_update(node: Node, channels: Channels, before: Values, after: Values) -> Values:
    """Return a sub-graph's changes as an update of the parent's state.

    For a shared key with a reducer, only the added part counts, because the sub-graph began with
    the value that the parent's reducer will merge into.
    """
    if node.to_update is not None:
        inner = cast("Topology", node.graph).channels
        return dict(node.to_update(inner.view(deepcopy(after))))
    update = {}
    for key, value in after.items():
        if key not in channels.names or (key in before and before[key] == value):
            continue
        has_part = channels.has_reducer(key) and key in before
        update[key] = _added(before[key], value) if has_part else value
    return update


def _added(before: object, after: object) -> object:
    for kind in (list, tuple, str):
        if isinstance(before, kind) and isinstance(after, kind):
            size = len(before)
            return after[size:] if after[:size] == before else after
    return after


_numbers: ContextVar[tuple[object, dict[str, int]] | None] = ContextVar(
    "agents_graph_numbers", default=None
)


@contextmanager
def numbering(scope: Scope) -> Iterator[None]:
    """Restart the count of graphs in a component each time the component is entered."""
    token = _numbers.set((scope.watch, {}))
    try:
        yield
    finally:
        _numbers.reset(token)


def graph_number(scope: Scope, name: str) -> str:
    """Return the number of this graph in its component; empty for the first.

    A component that runs again counts from the start, and so finds each graph's state again.
    """
    counted = _numbers.get()
    if counted is None or counted[0] is not scope.watch:
        counted = (scope.watch, {})
        _numbers.set(counted)
    key = f"{scope.address};{name}"
    counted[1][key] = counted[1].get(key, 0) + 1
    return str(counted[1][key]) if counted[1][key] > 1 else ""


T = TypeVar("T")


async def task(key: str, work: Callable[[], Awaitable[T]]) -> T:
    """Run a part of a node's work once, even if the node runs again after an answer.

    Use it for work before an interrupt that has effects or is expensive: sending a message, running
    an agent. The result is stored when the node stops, and with durability "step" at once. The work
    may interrupt; a resume then continues here.

    Args:
        key: Unique in the node, and the same in each run.
        work: Does the work; its result must be storable.

    Raises:
        OutsideNodeError: There is no current node.
        UnstorableValueError: The result cannot be stored.
    """
    if node_here() is None:
        raise OutsideNodeError("task()")
    return await kept(f"task {current_scope('task()').address} {key}", work)


async def kept(key: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do what `task` does; outside of a node, run the work. For the runtime."""
    node = node_here()
    if node is None:
        return await work()
    journal = node.run.journal
    before = journal.find(TASK, key)
    if before is not None:
        node.kept[key] = decode(before["result"])
    if key not in node.kept:
        result = await work()
        data = encode(result)
        if journal.every_step:
            await journal.append(TASK, key, {"result": data})
        # Decode the stored form, so that the first run sees the same value as a rerun.
        node.kept[key] = decode(data)
    return cast("T", deepcopy(node.kept[key]))
