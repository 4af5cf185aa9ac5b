"""The stored place of a graph: its state, its step and its tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from agents.core.address import Address, Segment
from agents.core.codec import decode, encode, register
from agents.core.errors import CheckpointDecodeError, ResumeDataError
from agents.core.pending import InterruptNode
from agents.graph.commands import END, Send, StateUpdate
from agents.runs.document import Phase, RunDocument

TaskStatus = Literal["todo", "waiting", "failed", "done"]
BreakKind = Literal["before", "after"]


@register("countersign.graph_answered/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answered question of a node. Stored: version 1, must stay readable.

    Attributes:
        index: Number of the question in its node, from 0.
        id: Interrupt id.
        fingerprint: Digest of what people saw.
        value: People's answer.
    """

    index: int
    id: str
    fingerprint: str
    value: object


@register("countersign.graph_memory/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A sub-graph's memory until its next run. Stored: version 1, must stay readable.

    Attributes:
        values: Its keys that the parent graph does not have.
        below: Memory of nested sub-graphs, by node.
    """

    values: dict[str, object]
    below: dict[str, Memory] = field(default_factory=dict)


@register("countersign.graph_outcome/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a node. Stored: version 1, must stay readable.

    Attributes:
        update: The node's update of the state.
        goto: Next targets; None follows the edges.
        is_for_parent: Whether update and goto apply to the parent graph. The sub-graph then ends.
        memory: Memory of a stateful sub-graph.
    """

    update: dict[str, object]
    goto: tuple[str | Send, ...] | None = None
    is_for_parent: bool = False
    memory: Memory | None = None


@register("countersign.graph_task/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class StepTask:
    """One run of a node in a step. Stored: version 1, must stay readable.

    Attributes:
        node: Name of the node.
        run: Number of this run of the node in its thread, from 1: part of its address.
        sent: The node's own input in a list of one; None means the graph's state.
        status: Progress of the task.
        answered: Answers for the next run.
        kept: Finished work inside the node, which a rerun does not repeat; by key.
        outcome: The node's outcome; set when the task is done.
        error: The failure; set when the task failed.
        is_guarded: Whether people approved the step at a breakpoint.
    """

    node: str
    run: int
    sent: tuple[object] | None = None
    status: TaskStatus = "todo"
    answered: tuple[Answered, ...] = ()
    kept: dict[str, object] = field(default_factory=dict)
    outcome: Outcome | None = None
    error: str = ""
    is_guarded: bool = False

    def address(self, graph: Address) -> Address:
        """Return its address, below its graph."""
        number = str(self.run) if self.run > 1 else ""
        return graph.child(Segment("node", self.node, number))


@register("countersign.graph_break/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A breakpoint between two steps. Stored: version 1, must stay readable.

    Attributes:
        kind: Before or after the node.
        node: Name of the node.
        id: Its interrupt id, once it is passed.
        edit: New values of the state.
    """

    kind: BreakKind
    node: str
    id: str = ""
    edit: dict[str, object] = field(default_factory=dict)

    @property
    def slot(self) -> str:
        """State slot of its interrupt, at the graph's address."""
        return f"{self.kind}:{self.node}"


@register("countersign.graph_origin/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class StepOrigin:
    """The origin of a step, stored while people may change the state before the step.

    Stored: version 1, must stay readable.

    Attributes:
        done: Finished nodes, each with its own targets; None followed its edges.
        joins: `GraphState.joins` before the step was determined.
        counts: `GraphState.counts` before the step was determined.
        queued: `GraphState.queued` before the step was determined.
    """

    done: tuple[tuple[str, tuple[str | Send, ...] | None], ...]
    joins: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    queued: tuple[str | Send, ...] = ()


@register("countersign.graph_state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphState:
    """A graph between or within steps. Stored: version 1, must stay readable.

    Attributes:
        graph: Name of the graph.
        values: The state after all finished steps.
        step: Number of finished steps of this turn.
        tasks: The nodes of the current step; empty at the end.
        gate: Breakpoints to pass before the step begins.
        joins: Nodes that have reached an edge that waits for several, by `join_key`.
        counts: Number of runs by node.
        queued: Targets of a command that came with a resume and wait for the next step.
        leaving: A node's command to the parent graph, with which this graph ends.
        memories: Memories of sub-graphs, by node.
        origin: The data that the step was determined from; None without a breakpoint.
    """

    graph: str
    values: dict[str, object]
    step: int = 0
    tasks: tuple[StepTask, ...] = ()
    gate: tuple[Break, ...] = ()
    joins: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    queued: tuple[str | Send, ...] = ()
    leaving: Outcome | None = None
    memories: dict[str, Memory] = field(default_factory=dict)
    origin: StepOrigin | None = None

    @property
    def next(self) -> tuple[str, ...]:
        """Names of the unfinished nodes of this step, and of nodes that a command added."""
        added = (target.node if isinstance(target, Send) else target for target in self.queued)
        return (*self.unfinished, *(name for name in added if name != END))

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Names of the unfinished nodes of this step."""
        return tuple(task.node for task in self.tasks if task.status != "done")

    @property
    def updates(self) -> list[tuple[str, dict[str, object]]]:
        """The updates of the finished nodes of this step, each with its writer."""
        outcomes = [(f"node {task.node!r}", task.outcome) for task in self.tasks if task.outcome]
        return [(who, outcome.update) for who, outcome in outcomes if not outcome.is_for_parent]

    @property
    def remembered(self) -> dict[str, Memory]:
        """The memories, including the memories of this step's finished nodes."""
        outcomes = [(task.node, task.outcome) for task in self.tasks if task.outcome]
        return {
            **self.memories,
            **{node: outcome.memory for node, outcome in outcomes if outcome.memory},
        }

    @property
    def answered_ids(self) -> set[str]:
        """Ids of the answered questions of this step."""
        ids = {answer.id for task in self.tasks for answer in task.answered}
        return ids | {stop.id for stop in self.gate if stop.id}

    def with_task(self, at: int, task: StepTask) -> GraphState:
        """Return the state with one task changed."""
        return replace(self, tasks=(*self.tasks[:at], task, *self.tasks[at + 1 :]))


@register("countersign.graph_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphInfo:
    """Info of a graph with interrupts inside. Stored: version 1, must stay readable.

    Attributes:
        graph: Name of the graph.
    """

    graph: str

    def __str__(self) -> str:
        return f"graph {self.graph}"

    def check_answer(self, answer: object) -> None:
        """Refuse all answers but an edit of the graph's state.

        Raises:
            ResumeDataError: The answer is not a `StateUpdate`.
        """
        if not isinstance(answer, StateUpdate):
            raise ResumeDataError(
                f"the graph {self.graph!r} itself asked nothing: answer the questions in it, or "
                f"give a StateUpdate; got a {type(answer).__name__}"
            )


def graph_point(document: RunDocument) -> InterruptNode:
    """Return the graph's own interrupt, with its state and the pending interrupts."""
    if document.waiting is None:
        raise CheckpointDecodeError("the state of the graph is lost")
    return document.waiting


def graph_state(document: RunDocument) -> GraphState:
    """Return the state of the graph."""
    state = decode(graph_point(document).state)
    if not isinstance(state, GraphState):
        raise CheckpointDecodeError("the state of the graph is lost")
    return state


def with_state(
    document: RunDocument, state: GraphState, *, phase: Phase, reason: str = ""
) -> RunDocument:
    """Return the document with another state and without pending interrupts."""
    point = bare_point(graph_point(document), state)
    return replace(document, waiting=point, phase=phase, reason=reason)


def bare_point(before: InterruptNode, state: GraphState) -> InterruptNode:
    """Return a graph's interrupt that only stores its state; nothing is pending in it."""
    return InterruptNode(
        id=before.id,
        address=before.address,
        slot=before.slot,
        info=GraphInfo(graph=state.graph),
        state=encode(state),
        is_hidden=True,
    )
