"""Runs one node in a step and interprets its result, interrupt or error."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, cast

from agents.core.address import Address
from agents.core.asking.answers import is_unanswered
from agents.core.codec import decode, encode
from agents.core.component.doubts import acts_on_answer
from agents.core.component.exits import contained
from agents.core.component.legacy import old_interrupts
from agents.core.errors import SwallowedInterruptError
from agents.core.events import passing_on
from agents.core.interrupt import InterruptSignal, merge_unanswered, unpack_group
from agents.core.journal import NODE, NODE_FAILED
from agents.core.pending import InterruptNode
from agents.core.scope import Beginning, RunContext, Scope, Watch, entered
from agents.graph.nodes.function import (
    NodeContext,
    call_function,
    graph_input,
    graph_update,
    numbering,
    read_outcome,
)
from agents.graph.nodes.gated import DOUBT, begin_gated, note_failure, refuse_failed
from agents.graph.nodes.questions import NodeRun, running
from agents.graph.state.channels import Values
from agents.graph.state.place import Answered, GraphState, Memory, Outcome, StepTask
from agents.graph.state.plan import OuterGraph, Topology


class SubGraph(Protocol):
    """A sub-graph that runs in a node; implemented by `GraphRun`."""

    state: GraphState

    async def run(
        self, make_input: Callable[[], Mapping[str, object]], memory: Memory | None = None
    ) -> Values:
        """Run the sub-graph. After an error, a second call continues at the failed node."""
        ...

    def kept_point(self) -> InterruptNode:
        """The interrupt with the state that a later resume needs."""
        ...


MakeChild: TypeAlias = Callable[[OuterGraph, bool], SubGraph]
"""Creates the run of a sub-graph from its node and whether the node was approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEnding:
    """A node's task after its run, with a pending signal or an error, if any."""

    task: StepTask
    signal: InterruptSignal | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlace:
    """The environment in which the nodes of a graph run.

    Attributes:
        topology: The nodes' graph.
        scope: The graph's scope.
        around: The parent graph, if this is a sub-graph.
        is_gated: Whether people approved the graph as a whole.
        make_child: Creates the runs of sub-graphs.
        children: Created runs; a retry continues them at the failed node.
    """

    topology: Topology
    scope: Scope
    around: OuterGraph | None
    is_gated: bool
    make_child: MakeChild
    children: dict[Address, SubGraph] = field(default_factory=dict)

    async def run(self, task: StepTask, state: GraphState) -> NodeEnding:
        """Run a node at its address."""
        run, address = self.scope.run, task.address(self.scope.address)
        node_run = _node_run(run, task, address, self.topology.line)
        scope = replace(
            self.scope,
            address=address,
            slot="",
            point=run.claim(address, ""),
            watch=Watch(),
            granted=None,
            why="",
        )
        with entered(scope), running(node_run), passing_on(), contained():
            begun = self._begun(task, node_run, state, scope)
            try:
                return await begun.end()
            except BaseExceptionGroup as group:
                return await begun.ungrouped(group)

    def _begun(self, task: StepTask, node_run: NodeRun, state: GraphState, scope: Scope) -> _Begun:
        node = self.topology.nodes[task.node]
        is_gated = (task.is_guarded or self.is_gated) and not node.is_idempotent
        here = OuterGraph(topology=self.topology, node=node)
        return _Begun(
            here=here,
            around=self.around,
            task=task,
            state=state,
            node_run=node_run,
            scope=scope,
            is_gated=is_gated,
            child=self._child(here, scope.address, is_gated) if node.graph is not None else None,
        )

    def _child(self, here: OuterGraph, address: Address, is_gated: bool) -> SubGraph:  # noqa: FBT001 - see `MakeChild`
        if address not in self.children:
            self.children[address] = self.make_child(here, is_gated)
        return self.children[address]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """A running node, within its scope."""

    here: OuterGraph
    around: OuterGraph | None
    task: StepTask
    state: GraphState
    node_run: NodeRun
    scope: Scope
    is_gated: bool
    child: SubGraph | None

    async def end(self) -> NodeEnding:
        """Run the node, with retries as its policy says."""
        try:
            outcome = await self._settled()
            if outcome is None:
                # On a rerun after doubt, restored answers are in the point.
                point = self.scope.point or self.scope.run.claim(self.scope.address, "")
                with entered(replace(self.scope, point=point)):
                    outcome = await self._outcome()
        except InterruptSignal as signal:
            return _waiting(self.task, self.node_run, signal)
        except Exception as error:  # noqa: BLE001 - kept with the task, and raised after the step
            return await self._failed(merge_unanswered(error))
        answered = _answers(self.node_run)
        done = replace(
            self.task, status="done", outcome=outcome, answered=answered, kept={}, error=""
        )
        return NodeEnding(task=done)

    async def ungrouped(self, group: BaseExceptionGroup[BaseException]) -> NodeEnding:
        """End the node with the one exception of its own task group."""
        try:
            error = unpack_group(group)
        except InterruptSignal as signal:
            return _waiting(self.task, self.node_run, signal)
        return await self._failed(error)

    async def _settled(self) -> Outcome | None:
        """Return the outcome that is known from the journal or from people."""
        # A finished node never runs again: read the journal first, ask people last.
        run = self.scope.run
        before = run.journaled(NODE, str(self.scope.address))
        if before is not None:
            return cast("Outcome", decode(before["outcome"]))
        kept = run.journal.kept(NODE, str(self.scope.address))
        if isinstance(kept, Outcome):  # a retry around the graph runs a finished node once more
            return kept
        if self.child is not None:
            return None  # the sub-graph journals its own nodes
        # Check before asking people: a recorded failure is not in doubt.
        refuse_failed(self.here)
        if not self._starts_once and not run.waits_at(self.scope.address, DOUBT):
            return None
        return await begin_gated(self.here, self.node_run)

    @property
    def _starts_once(self) -> bool:
        """Whether the node must start at most once: it is approved or has an answer."""
        if self.is_gated:
            return True
        if self.child is not None or self.here.node.is_idempotent:
            return False
        answers = (answer.value for answer in self.node_run.answered.values())
        has_answer = not all(map(is_unanswered, answers))
        return has_answer or acts_on_answer(self.scope.run, self.scope.address)

    async def _outcome(self) -> Outcome:
        run, address = self.scope.run, self.scope.address
        has_answer, journal = self._starts_once or run.is_answered(address), run.journal
        outcome = await self._tried()
        # Journal a node that acted on an answer, so that it never receives an answer again.
        if journal.every_step or self.is_gated or has_answer:
            await run.journal_result(NODE, str(address), {"outcome": encode(outcome)})
        if self.is_gated:
            journal.keep(NODE, str(address), outcome)
        return outcome

    async def _tried(self) -> Outcome:
        policy, begin, attempt = self.here.node.retry_policy, Beginning.of(self.scope), 1
        while True:
            try:
                return await self._once(attempt)
            except Exception as error:
                if policy is None or not self._may_repeat() or not policy.wants(error, attempt):
                    raise
            await policy.wait(attempt)
            attempt += 1
            # The node asks from its first question again, and finds the answers that it has.
            self.node_run.asked = 0
            begin.restore(self.scope.run)
            if self.is_gated:  # an approved sub-graph may fail more than once
                self.scope.run.journal.forget_below(NODE_FAILED, str(self.scope.address))

    def _may_repeat(self) -> bool:
        """Whether a retry is safe: no interrupt was caught, and the journal is writable."""
        return not (self.scope.watch.raised or self.scope.run.journal.has_failed)

    async def _once(self, attempt: int) -> Outcome:
        # A copy, so that a node that changes its input in place affects neither a retry nor others.
        state = deepcopy(self.task.sent[0] if self.task.sent else self.state.values)
        if self.child is not None:
            return await self._run_child(self.child, state)
        if not self.task.sent:
            state = self.here.topology.channels.view(cast("Values", state))
        with numbering(self.scope), old_interrupts():
            result = await call_function(self.here.node, state, self._context(attempt))
        # A node that caught its own interrupt has continued without an answer.
        if self.scope.watch.raised:
            raise SwallowedInterruptError(str(self.scope.address))
        self.node_run.check_finished()
        return read_outcome(self.here, result, self.around)

    async def _run_child(self, child: SubGraph, state: object) -> Outcome:
        node = self.here.node
        channels = self.here.topology.channels
        shown = state if self.task.sent else channels.view(cast("Values", deepcopy(state)))
        inner = cast("Topology", node.graph).channels
        given = inner.given(graph_input(node, state, shown), f"node {node.name!r}")
        names = channels.names
        before_that = self.state.memories.get(node.name) if node.is_stateful else None
        after = await child.run(lambda: given, before_that)
        memory = _memory_of(child.state, names) if node.is_stateful else None
        if child.state.leaving is not None:
            return replace(child.state.leaving, is_for_parent=False, memory=memory)
        before = state if isinstance(state, dict) else {}
        update = graph_update(node, channels, before, after)
        return replace(read_outcome(self.here, update), memory=memory)

    async def _failed(self, error: Exception) -> NodeEnding:
        """Store the finished and pending nodes of a failed sub-graph."""
        child, node_run = self.child, self.node_run
        if child is None and self._starts_once:
            await note_failure(node_run, error, is_gated=self.is_gated)
        error.add_note(f"in node {self.task.node!r} of graph {self.here.topology.name!r}")
        failure = f"{type(error).__name__}: {error}".rstrip(": ")
        failed = replace(
            self.task,
            status="failed",
            error=failure,
            answered=_answers(node_run),
            kept=node_run.kept,
        )
        # Without tasks the sub-graph failed before its first step, so there is nothing to resume.
        has_begun = child is not None and bool(child.state.tasks)
        signal = InterruptSignal(child.kept_point()) if child is not None and has_begun else None
        return NodeEnding(task=failed, signal=signal, error=error)

    def _context(self, attempt: int) -> NodeContext:
        return NodeContext(
            node=self.task.node,
            run=self.task.run,
            step=self.state.step,
            thread_id=self.scope.run.checkpoint_id,
            attempt=attempt,
        )


def _memory_of(state: GraphState, known_around: Collection[str]) -> Memory:
    """Return the part of a sub-graph's state that its parent does not store."""
    own = {key: value for key, value in state.values.items() if key not in known_around}
    return Memory(values=deepcopy(own), below=state.memories)


def _node_run(run: RunContext, task: StepTask, address: Address, line: tuple[str, ...]) -> NodeRun:
    known = {answer.index: answer for answer in task.answered}
    node_run = NodeRun(
        run=run,
        address=address,
        node=task.node,
        answered=known,
        kept=dict(task.kept),
        line=line,
    )
    node_run.take_answers()
    return node_run


def _answers(node_run: NodeRun) -> tuple[Answered, ...]:
    return tuple(node_run.answered[index] for index in sorted(node_run.answered))


def _waiting(task: StepTask, node_run: NodeRun, signal: InterruptSignal) -> NodeEnding:
    """Return a pending ending. A question that changed since its answer stays pending."""
    if node_run.refusals:
        return NodeEnding(task=replace(task, status="waiting", kept=node_run.kept), signal=signal)
    answered = _answers(node_run)
    waiting = replace(task, status="waiting", answered=answered, kept=node_run.kept, error="")
    return NodeEnding(task=waiting, signal=signal)
