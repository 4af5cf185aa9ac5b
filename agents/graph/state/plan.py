"""The structure of a graph, its retry policies, and the computation of the next step."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from pydantic import BaseModel

from agents.backoff import RetryPlan
from agents.core.codec import encode
from agents.core.errors import AgentError, ModelError, ModelRefusedError, ToolError
from agents.core.pending import InterruptSignal
from agents.graph.commands import END, START, Send, Target
from agents.graph.errors import (
    GotoError,
    GraphBuildError,
    NodeFailedError,
    NodeRefusedError,
    StateUpdateError,
)
from agents.graph.state.channels import Channels, Values
from agents.graph.state.place import Break, GraphState, Memory, Outcome, StepOrigin, StepTask


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy(RetryPlan):
    """Retries a node when it raises an error, and raises the last error.

    Interrupts, refusals, and programming errors such as an invalid update are never retried.
    Answers of the node and results of `task` are kept, and parallel nodes are not affected. A node
    that people approved at a breakpoint is also retried: with the policy, its author says that this
    is safe. The policy of a sub-graph does not retry its approved or answered nodes.

    Attributes:
        attempts: Maximum number of runs without an answer in between.
        only: Errors to retry.
        backoff: Delay after the first, second, … failure.
        sleep: Waits for a number of seconds.

    Raises:
        GraphBuildError: `attempts` is less than 1.
    """

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise GraphBuildError(f"a retry policy needs at least 1 attempt, got {self.attempts}")

    def wants(self, error: Exception, failures: int) -> bool:
        """See `RetryPlan.wants`. Refusals and programming errors are never retried."""
        if isinstance(error, NodeRefusedError | NodeFailedError | ModelRefusedError):
            return False
        if isinstance(error, AgentError) and not isinstance(error, ToolError | ModelError):
            return False
        # Not `super()`: a dataclass with slots is another class than the one that is written here.
        return RetryPlan.wants(self, error, failures)


NodeFunction: TypeAlias = Callable[..., object]
Router: TypeAlias = Callable[..., object]
Arrivals: TypeAlias = Sequence[tuple[str, tuple[Target, ...] | None]]
"""Finished nodes, each with the targets that it chose; None follows its edges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of a graph.

    Attributes:
        name: Unique in its graph.
        function: The node's function; None for a sub-graph.
        graph: The sub-graph; None for a function.
        takes_context: Whether the function takes a `NodeContext` as well.
        destinations: Possible targets of its commands; None allows every node.
        to_input: Creates the sub-graph's input; None passes the shared keys.
        to_update: Creates the node's update from the sub-graph's state; None writes its changes.
        retry_policy: Retries the node when it fails; None never does.
        is_idempotent: Whether a second run has no further effect.
        is_stateful: Whether a sub-graph's private keys are kept between runs.
        is_hidden: Whether "*" and streams of updates skip the node.
    """

    name: str
    function: NodeFunction | None = None
    graph: Topology | None = None
    takes_context: bool = False
    destinations: tuple[str, ...] | None = None
    to_input: Callable[[Any], Mapping[str, object] | BaseModel] | None = None
    to_update: Callable[[Any], Mapping[str, object]] | None = None
    retry_policy: RetryPolicy | None = None
    is_idempotent: bool = False
    is_stateful: bool = False
    is_hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterGraph:
    """The parent graph of a sub-graph."""

    topology: Topology
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A conditional edge.

    Attributes:
        source: Source node.
        router: Selects the targets.
        destinations: Targets by the router's result; None accepts any node name.
    """

    source: str
    router: Router
    destinations: Mapping[Hashable, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The structure of a graph: its nodes, edges and breakpoints.

    Attributes:
        name: Part of addresses: never change it while threads are pending.
        channels: The keys of its state.
        nodes: By name.
        edges: Successors by node.
        joins: Edges that wait for several nodes: the nodes, and the target.
        branches: Conditional edges.
        before: Nodes with a breakpoint before them.
        after: Nodes with a breakpoint after them.
        step_limit: Maximum number of steps of one call.
        line: Its nodes in order, if they certainly run one after the other; else empty.
    """

    name: str
    channels: Channels
    nodes: Mapping[str, Node]
    edges: Mapping[str, tuple[str, ...]]
    joins: tuple[tuple[tuple[str, ...], str], ...] = ()
    branches: tuple[Branch, ...] = ()
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    step_limit: int = 100
    line: tuple[str, ...] = ()

    def shown(self, state: GraphState) -> Values:
        """Return the state for people: with the updates of finished nodes of this step."""
        try:
            return self.channels.merge(state.values, state.updates)
        except StateUpdateError:  # two writers of one key: the step will fail with this error
            return state.values

    def held(self) -> Iterable[object]:
        """The functions and graphs of the nodes; see `agents.runs.topology.Holder`."""
        return [node.graph or node.function for node in self.nodes.values()]

    async def begin(
        self,
        values: Values,
        counts: Mapping[str, int] | None = None,
        memories: Mapping[str, Memory] | None = None,
    ) -> GraphState:
        """Return the state at the beginning of a turn."""
        state = GraphState(
            graph=self.name, values=values, counts=dict(counts or {}), memories=dict(memories or {})
        )
        return await self.advance(state, values, [(START, None)])

    async def advance(self, state: GraphState, values: Values, done: Arrivals) -> GraphState:
        """Return the state after a step."""
        joins = {key: list(names) for key, names in state.joins.items()}
        targets: list[Target] = []
        for name, own in done:
            targets += own if own is not None else await self._follow(name, values, joins)
        # A command that came with a resume added these nodes.
        targets += state.queued
        counts = dict(state.counts)
        after = [name for name, _ in done if name in self.after]
        tasks = tuple(make_tasks(targets, counts))
        gate = tuple(self._gate(after, tasks))
        return replace(
            state,
            values=values,
            tasks=tasks,
            joins=joins,
            counts=counts,
            gate=gate,
            queued=(),
            origin=_origin(state, done) if gate else None,
        )

    async def again(self, state: GraphState, values: Values) -> GraphState:
        """Determine the step again after people changed the state before it began."""
        origin = state.origin
        if origin is None:
            return replace(state, values=values)
        before = replace(
            state, joins=origin.joins, counts=origin.counts, queued=origin.queued, tasks=()
        )
        return replace(await self.advance(before, values, origin.done), queued=state.queued)

    def joined(self, state: GraphState, targets: Iterable[Target]) -> GraphState:
        """Add the targets of a command to a step that has begun.

        A node that is part of the step already, or has a breakpoint before it, waits for the next
        step.
        """
        busy = {*self.before, *(task.node for task in state.tasks)}
        now, later, counts = list[Target](), list[Target](), dict(state.counts)
        for target in targets:
            is_late = target.node in self.before if isinstance(target, Send) else target in busy
            (later if is_late else now).append(target)
        return replace(
            state,
            tasks=(*state.tasks, *make_tasks(now, counts)),
            counts=counts,
            queued=(*state.queued, *later),
        )

    def lost_join(self, state: GraphState) -> str:
        """Return an edge that nodes have reached and that is gone, else an empty text."""
        known = {join_key(*join) for join in self.joins}
        lost = [key for key in state.joins if key not in known]
        return lost[0] if lost else ""

    def leave(self, state: GraphState, values: Values, outcome: Outcome) -> GraphState:
        """Return the final state of a sub-graph that ends with a command to its parent."""
        after = [task.node for task in state.tasks if task.node in self.after]
        return replace(
            state,
            values=values,
            tasks=(),
            gate=tuple(self._gate(after, ())),
            joins={},
            leaving=outcome,
        )

    def check_target(
        self, who: str, target: object, allowed: Iterable[str] | None = None
    ) -> Target:
        """Check that a target exists."""
        known = tuple(allowed) if allowed is not None else (*self.nodes, END)
        is_send = isinstance(target, Send)
        name: object = target.node if isinstance(target, Send) else target
        if not isinstance(name, str) or name not in known or (is_send and name == END):
            raise GotoError(who, name, known)
        return cast("Target", target)

    async def _follow(self, name: str, values: Values, joins: dict[str, list[str]]) -> list[Target]:
        """Return the targets that the edges of a node lead to."""
        targets: list[Target] = list(self.edges.get(name, ()))
        for sources, target in self.joins:
            if name not in sources:
                continue
            key = join_key(sources, target)
            arrived = joins.setdefault(key, [])
            arrived += [] if name in arrived else [name]
            # The last node to arrive follows the edge; the next round of the edge begins empty.
            if len(arrived) == len(sources):
                del joins[key]
                targets.append(target)
        for branch in self.branches:
            if branch.source == name:
                targets += await self._route(branch, values)
        return targets

    async def _route(self, branch: Branch, values: Values) -> list[Target]:
        who = f"the router of {branch.source!r}"
        try:
            result = branch.router(self.channels.view(deepcopy(values)))
            if inspect.isawaitable(result):
                result = await cast("Awaitable[object]", result)
        # A router has no state of its own in the checkpoint, so it could not be resumed.
        except InterruptSignal:
            raise GraphBuildError(
                f"{who} asked people; a router may not: ask in a node before it"
            ) from None
        choices = result if isinstance(result, list | tuple) else [result]
        return [self._chosen(branch, choice, who) for choice in choices]

    def _chosen(self, branch: Branch, choice: object, who: str) -> Target:
        known = branch.destinations
        if known is None:
            return self.check_target(who, choice)
        if isinstance(choice, Send):
            return self.check_target(who, choice, known.values())
        try:
            return known[choice]
        except (KeyError, TypeError):
            raise GotoError(who, choice, tuple(map(str, known))) from None

    def _gate(self, after: Iterable[str], tasks: Iterable[StepTask]) -> list[Break]:
        """Return the breakpoints after the last step and before the next, each node once."""
        before = [task.node for task in tasks if task.node in self.before]
        return [
            *(Break(kind="after", node=name) for name in dict.fromkeys(after)),
            *(Break(kind="before", node=name) for name in dict.fromkeys(before)),
        ]


def _origin(state: GraphState, done: Arrivals) -> StepOrigin:
    return StepOrigin(
        done=tuple((name, None if own is None else tuple(own)) for name, own in done),
        joins=state.joins,
        counts=state.counts,
        queued=state.queued,
    )


def join_key(sources: Sequence[str], target: str) -> str:
    """Return the storage key of an edge that waits for several nodes.

    The key consists of the nodes, not of the edge's position.
    """
    return json.dumps([*sorted(sources), target], ensure_ascii=False)


def make_tasks(targets: Iterable[Target], counts: dict[str, int]) -> list[StepTask]:
    """Create the tasks of a step: each node once, plus one task for each `Send`.

    Each task increments its node's count.
    """
    tasks, seen = [], set[str]()
    for target in targets:
        name = target.node if isinstance(target, Send) else target
        # Several edges to one node run it once; each `Send` has its own input and runs.
        if name == END or (isinstance(target, str) and name in seen):
            continue
        if isinstance(target, str):
            seen.add(name)
        counts[name] = counts.get(name, 0) + 1
        sent = _copied(target) if isinstance(target, Send) else None
        tasks.append(StepTask(node=name, run=counts[name], sent=sent))
    return tasks


def _copied(send: Send) -> tuple[object]:
    encode(send.arg)  # raises before a task with an unstorable argument begins
    return (deepcopy(send.arg),)


@dataclass(slots=True, kw_only=True)
class Draft:
    """A graph under construction. Its attributes are described at `Topology`."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[str, list[str]] = field(default_factory=dict)
    joins: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)

    def reachable(self) -> set[str]:
        """Names of the nodes that a run can reach."""
        reached: set[str] = set()
        open_ends = [START]
        while open_ends:
            for name in self._from(open_ends.pop()):
                if name not in reached and name != END:
                    reached.add(name)
                    open_ends.append(name)
        return reached

    def _from(self, name: str) -> list[str]:
        targets = list(self.edges.get(name, ()))
        targets += [target for sources, target in self.joins if name in sources]
        for branch in self.branches:
            if branch.source == name:
                destinations = branch.destinations
                targets += list(self.nodes) if destinations is None else list(destinations.values())
        node = self.nodes.get(name)
        return targets + list((node.destinations or ()) if node else ())
