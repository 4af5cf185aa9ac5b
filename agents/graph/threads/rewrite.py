"""Manual changes of a thread: writing to its state, and forking a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from agents.core.address import Address
from agents.core.errors import AgentConfigError
from agents.core.pending import InterruptNode
from agents.graph.commands import END, START
from agents.graph.nodes.questions import Question
from agents.graph.state.place import (
    Break,
    GraphInfo,
    GraphState,
    Outcome,
    StepTask,
    bare_point,
    graph_point,
    graph_state,
)
from agents.graph.state.plan import Topology
from agents.runs.document import Phase, RunDocument


async def edited(
    topology: Topology, head: RunDocument, update: Mapping[str, object], as_node: str
) -> RunDocument:
    """Write to a thread's state; see `CompiledGraph.update_state`."""
    if as_node and as_node not in {START, END, *topology.nodes}:
        known = ", ".join((*topology.nodes, START, END))
        raise AgentConfigError(f"there is no node {as_node!r} to write as; there are: {known}")
    state, who = graph_state(head), f"update_state({as_node})"
    topology.channels.check(update, who)
    at = _unfinished(state, as_node)
    if at is not None:
        return await _finish_task(topology, head, at, dict(update))
    begun = topology.shown(state) if as_node else state.values
    values = topology.channels.merge(begun, [(who, update)])
    if not as_node and state.gate:
        changed = await topology.again(replace(state, gate=_ask_again(state)), values)
    elif not as_node:
        changed = replace(state, values=values, tasks=_reset(state.tasks), gate=_ask_again(state))
    elif as_node == END:
        kept = state.remembered
        changed = replace(state, values=values, tasks=(), gate=(), joins={}, memories=kept)
    else:
        ended = replace(state, joins={}, memories=state.remembered)
        changed = await topology.advance(ended, values, [(as_node, None)])
    return _stored(head, changed, ())


def _unfinished(state: GraphState, name: str) -> int | None:
    positions = [at for at, task in enumerate(state.tasks) if task.node == name]
    return next((at for at in positions if state.tasks[at].status != "done"), None)


async def _finish_task(
    topology: Topology, head: RunDocument, at: int, update: dict[str, object]
) -> RunDocument:
    """Finish a task of this step with an update; the other tasks stay as they are."""
    state, point = graph_state(head), graph_point(head)
    task = replace(state.tasks[at], status="done", outcome=Outcome(update=update), error="")
    address = task.address(point.address)
    gate = tuple(stop for stop in state.gate if (stop.kind, stop.node) != ("before", task.node))
    slots = {stop.slot for stop in gate}
    children = tuple(
        child
        for child in point.children
        if not address.is_prefix_of(child.address)
        and (child.address != point.address or child.slot in slots)
    )
    state = replace(state.with_task(at, task), gate=gate)
    if not state.unfinished and not gate:
        values = topology.channels.merge(state.values, state.updates)
        done = [
            (finished.node, finished.outcome.goto if finished.outcome else None)
            for finished in state.tasks
        ]
        ended = replace(state, step=state.step + 1, memories=state.remembered)
        state = await topology.advance(ended, values, done)
        children = ()
    return _stored(head, state, children)


def _reset(tasks: tuple[StepTask, ...]) -> tuple[StepTask, ...]:
    """Reset the unfinished tasks."""
    fresh = (replace(t, status="todo", answered=(), error="") for t in tasks)
    return tuple(
        old if old.status == "done" else new for old, new in zip(tasks, fresh, strict=True)
    )


def _ask_again(state: GraphState) -> tuple[Break, ...]:
    return tuple(replace(stop, id="", edit={}) for stop in state.gate)


def _stored(
    head: RunDocument, state: GraphState, children: tuple[InterruptNode, ...]
) -> RunDocument:
    phase: Phase = "paused" if state.tasks or state.gate else "finished"
    point = bare_point(graph_point(head), state)
    if children:
        point = replace(point, children=children, is_hidden=False)
    return replace(head, waiting=point, phase=phase, reason="", parent=head.number)


def forked(source: RunDocument, head: RunDocument, new_id: Callable[[], str]) -> RunDocument:
    """Return a head with an earlier checkpoint's state; see `CompiledGraph.fork`.

    Unfinished nodes get new numbers, so that no address is used twice in a thread. Interrupts of
    tools and agents are bound to their addresses, so their nodes begin again.
    """
    before, point = graph_state(source), graph_point(source)
    counts = dict(before.counts)
    for name, count in graph_state(head).counts.items():
        counts[name] = max(count, counts.get(name, 0))
    graph = point.address
    at_gate = [child for child in point.children if child.address == graph]
    children = [_renamed(child, graph, graph, new_id) for child in at_gate]
    tasks = []
    for task in before.tasks:
        if task.status == "done":
            tasks.append(task)
            continue
        old = task.address(graph)
        counts[task.node] += 1
        moved = replace(task, run=counts[task.node])
        inside = [child for child in point.children if old.is_prefix_of(child.address)]
        kept = [
            _renamed(child, old, moved.address(graph), new_id)
            for child in inside
            if _is_plain(child)
        ]
        children += kept
        is_lost = task.status == "waiting" and not kept
        tasks.append(replace(moved, status="todo") if is_lost else moved)
    origin = before.origin and replace(before.origin, counts=counts)
    state = replace(before, counts=counts, tasks=tuple(tasks), origin=origin)
    point = bare_point(replace(point, id=new_id()), state)
    point = replace(point, children=tuple(children), is_hidden=not children)
    phase: Phase = "paused" if source.phase == "running" else source.phase
    return replace(source, waiting=point, phase=phase, parent=source.number)


def _is_plain(point: InterruptNode) -> bool:
    """Whether all pending interrupts are of graphs, which are not bound to a thread."""
    return all(
        isinstance(node.info, Question | GraphInfo) for node in point.walk() if not node.children
    )


def _renamed(
    point: InterruptNode, old: Address, new: Address, new_id: Callable[[], str]
) -> InterruptNode:
    """Return the interrupt with another id and address."""
    address = Address((*new.segments, *point.address.segments[len(old) :]))
    children = tuple(_renamed(child, old, new, new_id) for child in point.children)
    return replace(point, id=new_id(), address=address, children=children)
