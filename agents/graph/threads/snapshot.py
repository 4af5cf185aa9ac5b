"""Views of a thread: pending questions, node status, and next nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.core.address import Address, Segment
from agents.core.cancel import CancelInfo
from agents.core.pending import InterruptContext, InterruptNode
from agents.graph.commands import Send
from agents.graph.nodes.questions import Question
from agents.graph.state.channels import Values
from agents.graph.state.place import GraphState, TaskStatus
from agents.graph.state.plan import Topology
from agents.runs.document import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """A question that waits for people.

    Attributes:
        id: Key of the answer; unique per occurrence and stable while pending.
        value: What is asked; for a breakpoint, the node's name.
        kind: "node", "before" or "after"; "interrupt" for an interrupt inside of a node, for
            example of a tool; "stop" if the graph was stopped from outside.
        node: Name of the node.
        address: Address of the interrupt.
        state: The graph's state at a breakpoint; otherwise None.
        schema: JSON schema of its answers; None accepts any answer.
        context: The whole interrupt, with its parents.
        sends: At a breakpoint: the nodes that will run with arguments of their own.
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
class Task:
    """One node of the current step.

    Attributes:
        name: Name of the node.
        status: Progress of the node.
        interrupts: Its pending questions.
        result: Its update of the state; None before it has finished.
        error: The failure, or None.
    """

    name: str
    status: TaskStatus
    interrupts: tuple[Interrupt, ...] = ()
    result: Mapping[str, object] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSnapshot:
    """The state of a thread, now or at an earlier checkpoint.

    Attributes:
        thread_id: Id of the thread.
        checkpoint: Number of this checkpoint in the thread, from 1.
        parent: Number of the previous checkpoint; None for the first.
        phase: Phase of the thread.
        reason: Why the thread failed or was cancelled; else empty.
        step: Number of finished steps of the turn.
        values: The state, with the updates of finished nodes of the step.
        next: Unfinished nodes of the step, and nodes that a command added to the step after it.
        tasks: All nodes of the step; empty at the end.
        interrupts: Pending questions, in order.
    """

    thread_id: str
    checkpoint: int
    parent: int | None
    phase: Phase
    reason: str
    step: int
    values: Values
    next: tuple[str, ...]
    tasks: tuple[Task, ...]
    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphResult:
    """The result of `CompiledGraph.invoke`.

    Attributes:
        values: The final or current state.
        interrupts: Pending questions; empty at the end.
        next: Unfinished nodes, as in `StateSnapshot`; empty at the end.
        thread_id: Id of the thread; empty if nothing is stored.
        checkpoint: Number of the checkpoint; 0 if nothing is stored.
    """

    values: Values
    interrupts: tuple[Interrupt, ...] = ()
    next: tuple[str, ...] = ()
    thread_id: str = ""
    checkpoint: int = 0


def pending_of(point: InterruptNode | None) -> tuple[Interrupt, ...]:
    """Return the pending questions in a tree, in order."""
    if point is None or not point.children:
        return ()
    return tuple(map(_pending, point.contexts()))


def _pending(context: InterruptContext) -> Interrupt:
    info, address = context.info, str(context.address)
    if isinstance(info, Question):
        return Interrupt(
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
    return Interrupt(
        id=context.id, value=info, kind=kind, node=node, address=address, context=context
    )


def task_views(
    state: GraphState, graph: Address, waiting: tuple[Interrupt, ...]
) -> tuple[Task, ...]:
    """Return all nodes of the step with their pending questions."""
    views = []
    for task in state.tasks:
        address = task.address(graph)
        inside = tuple(
            interrupt for interrupt in waiting if address.is_prefix_of(interrupt.context.address)
        )
        at_gate = tuple(
            interrupt
            for interrupt in waiting
            if interrupt.context.address == graph
            and (interrupt.kind, interrupt.node) == ("before", task.node)
        )
        views.append(
            Task(
                name=task.node,
                status="waiting" if at_gate else task.status,
                interrupts=(*at_gate, *inside),
                result=task.outcome.update if task.outcome else None,
                error=task.error or None,
            )
        )
    return tuple(views)


def graph_address(name: str) -> Address:
    """Return the address of a top-level graph."""
    return Address((Segment("runnable", name),))


def result_of(
    topology: Topology, state: GraphState, point: InterruptNode, *, thread_id: str, checkpoint: int
) -> GraphResult:
    """Build the result of an `invoke`."""
    return GraphResult(
        values=topology.shown(state),
        interrupts=pending_of(point),
        next=state.next,
        thread_id=thread_id,
        checkpoint=checkpoint,
    )
