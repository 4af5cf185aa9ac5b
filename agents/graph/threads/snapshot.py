"""Views of a thread: what waits, what is done, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.core.address import Address, Segment
from agents.core.cancel import CancelInfo
from agents.core.pending import InterruptContext, InterruptNode
from agents.graph.commands import Send
from agents.graph.nodes.questions import Question
from agents.graph.state.channels import Values
from agents.graph.state.place import GraphState, Phase, TaskStatus
from agents.graph.state.plan import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A question that waits for people.

    Attributes:
        id: Key of the answer; unique per occurrence, the same as long as it waits.
        value: What it asks; of a breakpoint, the node's name.
        kind: "node", "before" or "after"; "interrupt" when something inside a node asks, as a
            tool does; "stop" where the graph was stopped from outside.
        node: Which node.
        address: Where it waits.
        state: The graph's state, which a breakpoint shows; others have None.
        schema: JSON schema of its answers; None takes any.
        context: The whole interrupt, with what stands around it.
        sends: At a breakpoint: what runs with arguments of its own when it is passed.
    """

    id: str
    value: object
    kind: str
    node: str
    address: str
    state: Mapping[str, object] | None = None
    schema: Mapping[str, object] | None = None
    context: InterruptContext
    sends: tuple[Send, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """One node of the step that goes on.

    Attributes:
        name: The node.
        status: How far it is.
        interrupts: What waits in it.
        result: What it writes; None before it is done.
        error: Why it failed; None when it did not.
    """

    name: str
    status: TaskStatus
    interrupts: tuple[Pending, ...] = ()
    result: Mapping[str, object] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSnapshot:
    """The state of a thread, now or at an earlier checkpoint.

    Attributes:
        thread_id: Which thread.
        checkpoint: Number of this checkpoint in the thread, from 1.
        parent: Number of the one that it came from; None for the first.
        phase: What the thread was doing.
        reason: Why it failed or was cancelled; else empty.
        step: How many steps of the turn were finished.
        values: The state, with what finished nodes of the step have written.
        next: Nodes that still have to finish in the step.
        tasks: All nodes of the step; empty at the end.
        interrupts: What waits for people, in order.
    """

    thread_id: str
    checkpoint: int
    parent: int | None
    phase: Phase
    reason: str
    step: int
    values: Values
    next: tuple[str, ...]
    tasks: tuple[TaskView, ...]
    interrupts: tuple[Pending, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphResult:
    """The result of an invoke.

    Attributes:
        values: The state: at the end, or where it stands.
        interrupts: What waits for people; empty at the end.
        next: Nodes that still have to finish; empty at the end.
        thread_id: Which thread; empty when nothing is kept.
        checkpoint: Number of the checkpoint; 0 when nothing is kept.
    """

    values: Values
    interrupts: tuple[Pending, ...] = ()
    next: tuple[str, ...] = ()
    thread_id: str = ""
    checkpoint: int = 0


def pending_of(point: InterruptNode | None) -> tuple[Pending, ...]:
    """Return the questions that wait in a tree, in order."""
    if point is None or not point.children:
        return ()
    return tuple(map(_pending, point.contexts()))


def _pending(context: InterruptContext) -> Pending:
    info, address = context.info, str(context.address)
    if isinstance(info, Question):
        return Pending(
            id=context.id,
            value=info.value,
            kind=info.kind,
            node=info.node,
            address=address,
            state=info.state,
            schema=info.schema,
            context=context,
            sends=info.sends,
        )
    nodes = [part.id for part in context.address.segments if part.type == "node"]
    kind = "stop" if isinstance(info, CancelInfo) else "interrupt"
    node = nodes[-1] if nodes else ""
    return Pending(
        id=context.id, value=info, kind=kind, node=node, address=address, context=context
    )


def task_views(
    state: GraphState, graph: Address, waiting: tuple[Pending, ...]
) -> tuple[TaskView, ...]:
    """All nodes of the step, with what waits in each."""
    views = []
    for task in state.tasks:
        address = task.address(graph)
        inside = tuple(one for one in waiting if address.is_prefix_of(one.context.address))
        at_gate = tuple(
            one
            for one in waiting
            if one.context.address == graph and (one.kind, one.node) == ("before", task.node)
        )
        views.append(
            TaskView(
                name=task.node,
                status="waiting" if at_gate else task.status,
                interrupts=(*at_gate, *inside),
                result=task.outcome.update if task.outcome else None,
                error=task.error or None,
            )
        )
    return tuple(views)


def graph_address(name: str) -> Address:
    """Return the address of a graph that nothing is around."""
    return Address((Segment("runnable", name),))


def result_of(
    topology: Topology, state: GraphState, point: InterruptNode, *, thread_id: str, checkpoint: int
) -> GraphResult:
    """Tell what came of an invoke."""
    return GraphResult(
        values=topology.shown(state),
        interrupts=pending_of(point),
        next=state.next,
        thread_id=thread_id,
        checkpoint=checkpoint,
    )
