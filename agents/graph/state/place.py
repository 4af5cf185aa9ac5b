"""The stored place of a graph: its state, its step and its tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from agents.core.address import Address, Segment
from agents.core.codec import register
from agents.core.errors import ResumeDataError
from agents.graph.commands import Send, StateUpdate

Phase = Literal["running", "paused", "failed", "finished", "cancelled"]
TaskStatus = Literal["todo", "waiting", "failed", "done"]
BreakKind = Literal["before", "after"]


@register("countersign.graph_answered/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A question of a node that people answered. Stored: version 1, must stay readable.

    Attributes:
        index: Which of the node's questions, from 0.
        id: Its interrupt id.
        fingerprint: Of what people were shown.
        value: Their answer.
    """

    index: int
    id: str
    fingerprint: str
    value: object


@register("countersign.graph_memory/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A sub-graph's memory until it runs again. Stored: version 1, must stay readable.

    Attributes:
        values: Its keys that the graph around it does not have.
        below: The same of sub-graphs in it, by node.
    """

    values: dict[str, object]
    below: dict[str, Memory] = field(default_factory=dict)


@register("countersign.graph_outcome/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a node. Stored: version 1, must stay readable.

    Attributes:
        update: What it writes.
        goto: Where it leads; None follows the edges.
        is_for_parent: Whether both are for the graph around: then this one ends.
        memory: What the node keeps, if it is a sub-graph that does.
    """

    update: dict[str, object]
    goto: tuple[str | Send, ...] | None = None
    is_for_parent: bool = False
    memory: Memory | None = None


@register("countersign.graph_task/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run of a node in a step. Stored: version 1, must stay readable.

    Attributes:
        node: Its name.
        run: Which run of that node in this thread, from 1: part of its address.
        sent: What it gets in place of the state, in a list of one; None gives it the state.
        status: How far it is.
        answered: Answers that it gets when it runs again.
        kept: What is finished inside it, and must not run again with it; by key.
        outcome: What it returned; set when it is done.
        error: Why it failed; set when it did.
        is_guarded: Whether people let this step begin, at a breakpoint.
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
        node: Which.
        id: Its interrupt id, once it is passed.
        edit: What shall replace keys of the state.
    """

    kind: BreakKind
    node: str
    id: str = ""
    edit: dict[str, object] = field(default_factory=dict)

    @property
    def slot(self) -> str:
        """The state slot of its question, at the graph's address."""
        return f"{self.kind}:{self.node}"


@register("countersign.graph_origin/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class StepOrigin:
    """The origin of a step, kept as long as people may change the state before it begins.

    Stored: version 1, must stay readable.

    Attributes:
        done: Who was finished, and where it led by itself; None followed its edges.
        joins: See `GraphState`, before that.
        counts: See `GraphState`, before that.
        queued: See `GraphState`, before that.
    """

    done: tuple[tuple[str, tuple[str | Send, ...] | None], ...]
    joins: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    queued: tuple[str | Send, ...] = ()


@register("countersign.graph_state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphState:
    """A graph between, or in the middle of, two steps. Stored: version 1, must stay readable.

    Attributes:
        graph: Its name.
        values: What all finished steps have written.
        step: How many steps of this turn are finished.
        tasks: The nodes of the step that goes on; empty at the end.
        gate: Breakpoints that must be passed before the step begins.
        joins: The nodes that have arrived at an edge that waits for several, by `join_key`.
        counts: How often each node was to run.
        queued: Where a command leads that was given with a resume; part of the next step.
        leaving: What a node told the graph around: this one ends with it.
        memories: What sub-graphs keep, by node.
        origin: What the step was worked out of; None when no breakpoint is before it.
    """

    graph: str
    values: dict[str, object]
    step: int = 0
    tasks: tuple[Task, ...] = ()
    gate: tuple[Break, ...] = ()
    joins: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    queued: tuple[str | Send, ...] = ()
    leaving: Outcome | None = None
    memories: dict[str, Memory] = field(default_factory=dict)
    origin: StepOrigin | None = None

    @property
    def next(self) -> tuple[str, ...]:
        """Names of the nodes that still have to finish in this step."""
        return tuple(task.node for task in self.tasks if task.status != "done")

    @property
    def updates(self) -> list[tuple[str, dict[str, object]]]:
        """The updates that the finished nodes of this step write here, each with its writer."""
        outcomes = [(f"node {task.node!r}", task.outcome) for task in self.tasks if task.outcome]
        return [(who, one.update) for who, one in outcomes if not one.is_for_parent]

    @property
    def remembered(self) -> dict[str, Memory]:
        """The memories, with those of the finished nodes of this step."""
        outcomes = [(task.node, task.outcome) for task in self.tasks if task.outcome]
        return {**self.memories, **{node: one.memory for node, one in outcomes if one.memory}}

    @property
    def answered_ids(self) -> set[str]:
        """Questions of this step that are answered."""
        found = {answer.id for task in self.tasks for answer in task.answered}
        return found | {one.id for one in self.gate if one.id}

    def with_task(self, at: int, task: Task) -> GraphState:
        """The state with one task changed."""
        return replace(self, tasks=(*self.tasks[:at], task, *self.tasks[at + 1 :]))


@register("countersign.graph_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphInfo:
    """Stands for a graph above what waits in it. Stored: version 1, must stay readable.

    Attributes:
        graph: Its name.
    """

    graph: str

    def __str__(self) -> str:
        return f"graph {self.graph}"

    def check_answer(self, answer: object) -> None:
        """Refuse all but an edit of the graph's state.

        Raises:
            ResumeDataError: It is something else.
        """
        if not isinstance(answer, StateUpdate):
            raise ResumeDataError(
                f"the graph {self.graph!r} itself asked nothing: answer the questions in it, or "
                f"give a StateUpdate; got a {type(answer).__name__}"
            )
