"""The run of a graph, step by step.

A step runs its nodes in parallel and waits for all of them. Their updates are written when all
nodes are finished. If a node interrupts or fails, the step stays open: finished nodes never run
again, unanswered nodes are not entered, failed or answered nodes run again.

A graph stores its place in the state of its own interrupt, like any other component. It therefore
works the same alone, in a node, in a tool and in an agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import NoReturn, cast

from agents.core.cancel import stop
from agents.core.codec import decode, encode
from agents.core.errors import AgentChangedError, CheckpointDecodeError
from agents.core.interrupt import InterruptSignal, composite_interrupt
from agents.core.pending import InterruptNode
from agents.core.scope import RunContext, Scope, current_scope, entered
from agents.graph.errors import GraphStepLimitError, StateChangedError, StateUpdateError
from agents.graph.nodes.breakpoints import Gatekeeper, apply_edit, stop_signal
from agents.graph.nodes.node import NodeEnding, NodePlace
from agents.graph.state.channels import Values
from agents.graph.state.place import GraphInfo, GraphState, Memory, Outcome, StepTask
from agents.graph.state.plan import OuterGraph, Topology


async def _keep_nothing(_: GraphState) -> None:
    return


def _tell_nobody(_: str, __: object) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Functions that the graph calls while it runs.

    Attributes:
        keep: Stores the state between two steps, before the next begins.
        tell: Receives the mode and the part for `stream`.
    """

    keep: Callable[[GraphState], Awaitable[None]] = _keep_nothing
    tell: Callable[[str, object], None] = _tell_nobody


class GraphRun:
    """One run of a graph, at the current address.

    Args:
        topology: The graph.
        hooks: Functions that it calls.
        around: The parent graph, if this is a sub-graph.
        is_gated: Whether people approved the whole graph at a breakpoint of its parent.
        step_limit: Maximum number of further steps; None takes the graph's limit.
    """

    def __init__(
        self,
        topology: Topology,
        hooks: Hooks | None = None,
        *,
        around: OuterGraph | None = None,
        is_gated: bool = False,
        step_limit: int | None = None,
    ) -> None:
        self._topology = topology
        self._step_limit = step_limit or topology.step_limit
        self._steps = 0
        self._hooks = hooks or Hooks()
        self._scope: Scope = current_scope("a graph")
        self._place = NodePlace(
            topology=topology,
            scope=self._scope,
            around=around,
            is_gated=is_gated,
            make_child=_make_child,
        )
        self._signals: dict[int, InterruptSignal] = {}
        self._id = ""
        self._has_begun = False
        self._is_first = True
        self.state = GraphState(graph=topology.name, values={})

    @property
    def _run(self) -> RunContext:
        return self._scope.run

    async def run(
        self, make_input: Callable[[], Mapping[str, object]], memory: Memory | None = None
    ) -> Values:
        """Run to the end, from the current state. May be called again after an error.

        `make_input` is called only if the graph has not begun. After an error, `kept_point` has the
        state for a later resume.
        """
        if not self._has_begun:
            await self._load(make_input, memory)
        self._has_begun = True
        while True:
            # Pass the gate first: no node of a step runs before people have approved the step.
            await self._pass_gate()
            if not self.state.tasks:
                return self.state.values
            if self._steps >= self._step_limit:
                raise GraphStepLimitError(self._topology.name, self._step_limit)
            # Between two steps no node is running, so a stopped run loses no work.
            self._stop_if_wanted()
            await self._run_step()
            await self._commit()

    def kept_point(self) -> InterruptNode:
        """The interrupt with the state that a later resume needs, also after an error."""
        children = tuple(self._signals[at].point for at in sorted(self._signals))
        return InterruptNode(
            id=self._id or self._run.new_id(),
            address=self._scope.address,
            slot=self._scope.slot,
            info=GraphInfo(graph=self._topology.name),
            state=encode(self.state),
            children=children,
            is_hidden=not children,
        )

    async def _load(
        self, make_input: Callable[[], Mapping[str, object]], memory: Memory | None
    ) -> None:
        point = self._scope.point
        if point is None:
            channels = self._topology.channels
            # Memory is shared with the parent's stored state, which this run must not change.
            past = deepcopy(memory) if memory is not None else Memory(values={})
            before = {key: past.values[key] for key in channels.names if key in past.values}
            given = [("the input", make_input())]
            values = channels.merge({**channels.initial(), **before}, given)
            self.state = await self._topology.begin(values, memories=past.below)
            return
        self._id = point.id
        self.state = read_state(self._topology, point)
        self.state = await apply_edit(self._topology, self._run, point, self.state)

    async def _pass_gate(self) -> None:
        gatekeeper = Gatekeeper(self._topology, self._scope)
        # An edit at a breakpoint can lead to other nodes, whose breakpoints form a new gate.
        while self.state.gate:
            self.state, signals = await gatekeeper.pass_gate(self.state)
            if signals:
                self._interrupt(dict(enumerate(signals)))

    def _stop_if_wanted(self) -> None:
        if self._run.cancel.mode is not None and not self._is_under_way():
            self._interrupt({0: stop_signal(self._scope)})

    def _is_under_way(self) -> bool:
        """Whether the step has begun. Stopping here would lose its progress."""
        has_begun = any(task.status != "todo" or task.answered for task in self.state.tasks)
        return self._is_first and (has_begun or self._run.journal.knows_work)

    def _interrupt(self, signals: dict[int, InterruptSignal]) -> NoReturn:
        self._signals = signals
        ordered = [signals[at] for at in sorted(signals)]
        with entered(self._scope):
            composite_interrupt(GraphInfo(graph=self._topology.name), self.state, *ordered)

    async def _run_step(self) -> None:
        """Run the unfinished nodes of the step."""
        todo = [at for at in range(len(self.state.tasks)) if self._is_to_run(at)]
        errors: dict[int, Exception] = {}
        async for at, ending in self._side_by_side(todo):
            self.state = self.state.with_task(at, ending.task)
            if ending.signal is not None:
                self._signals[at] = ending.signal
            if ending.error is not None:
                errors[at] = ending.error
            if ending.task.outcome is not None:
                self._tell_update(ending.task.node, ending.task.outcome)
        # Check first: a failed journal write can mean that another process owns this run.
        self._run.journal.raise_failure()
        # An error ends the run now. Parallel interrupts are in `kept_point` and stay pending.
        if errors:
            self._fail(errors)
        if self._signals:
            self._interrupt(self._signals)

    def _is_to_run(self, at: int) -> bool:
        """Whether a task must run now: it is neither finished nor waiting for people."""
        task = self.state.tasks[at]
        if task.outcome is not None:
            if self._is_first:
                self._tell_update(task.node, task.outcome, cached=True)
            return False
        if task.status == "waiting" and at in self._signals:  # a parallel node is retried
            return False
        # The signal belongs to the last run of the task; a rerun raises its own.
        self._signals.pop(at, None)
        untouched = self._run.untouched(task.address(self._scope.address))
        if task.status == "waiting" and untouched is not None:
            self._signals[at] = InterruptSignal(untouched)
            return False
        return True

    def _tell_update(self, name: str, outcome: Outcome, *, cached: bool = False) -> None:
        if self._topology.nodes[name].is_hidden:
            return
        update: dict[str, object] = {name: deepcopy(outcome.update)}
        if cached:
            update["__metadata__"] = {"cached": True}
        self._hooks.tell("updates", update)

    def _fail(self, errors: dict[int, Exception]) -> NoReturn:
        first, *others = [errors[at] for at in sorted(errors)]
        # One exception can be raised; notes keep the others visible.
        for other in others:
            first.add_note(f"beside it: {type(other).__name__}: {other}")
        raise first

    async def _side_by_side(self, todo: list[int]) -> AsyncIterator[tuple[int, NodeEnding]]:
        tasks = {
            asyncio.create_task(self._place.run(self.state.tasks[at], self.state)): at
            for at in todo
        }
        unfinished = set(tasks)
        fatal: BaseException | None = None
        try:
            while unfinished:
                done, unfinished = await asyncio.wait(
                    unfinished, return_when=asyncio.FIRST_COMPLETED
                )
                for task in [task for task in tasks if task in done]:
                    if task.cancelled() or task.exception() is not None:
                        # Do not raise yet: nodes that finished at the same time must still be
                        # recorded.
                        fatal = fatal or _fatal(task)
                    else:
                        yield tasks[task], task.result()
        finally:
            await stop(*tasks)
        if fatal is not None:
            raise fatal

    async def _commit(self) -> None:
        """Write the updates of the step and determine the next step."""
        values = self._topology.channels.merge(self.state.values, self.state.updates)
        done = [(task.node, cast("Outcome", task.outcome).goto) for task in self.state.tasks]
        self._steps += 1
        step, memories = self.state.step + 1, self.state.remembered
        state, leaving = replace(self.state, step=step, memories=memories), self._leaving()
        if leaving is not None:
            self.state = self._topology.leave(state, values, leaving)
        else:
            self.state = await self._topology.advance(state, values, done)
        self._is_first, self._signals = False, {}
        # Store before people are asked. With a gate, the interrupt stores the same state.
        if self.state.tasks and not self.state.gate:
            await self._hooks.keep(self.state)
        self._hooks.tell("values", deepcopy(values))

    def _leaving(self) -> Outcome | None:
        """Return the outcome that a node addresses to the parent graph, if any."""
        outcomes = [(task.node, task.outcome) for task in self.state.tasks if task.outcome]
        leaving = [(node, outcome) for node, outcome in outcomes if outcome.is_for_parent]
        if len(leaving) > 1:
            who = ", ".join(node for node, _ in leaving)
            fault = "nodes of one step may give one command to the graph around, not several"
            raise StateUpdateError(who, fault)
        return leaving[0][1] if leaving else None


def _make_child(here: OuterGraph, is_gated: bool) -> GraphRun:  # noqa: FBT001 - see `MakeChild`
    """Create the run of a sub-graph at its node's address."""
    return GraphRun(cast("Topology", here.node.graph), around=here, is_gated=is_gated)


def read_state(topology: Topology, point: InterruptNode) -> GraphState:
    """Read the stored state of a graph."""
    state = decode(point.state)
    if not isinstance(state, GraphState):
        raise CheckpointDecodeError(f"the graph at {point.address} has lost its state")
    if state.graph != topology.name:
        was, now = f"the graph {state.graph!r}", f"the graph {topology.name!r}"
        raise AgentChangedError(str(point.address), was, now)
    names = {*(task.node for task in state.tasks), *(gate_stop.node for gate_stop in state.gate)}
    for name in sorted(names - set(topology.nodes)):
        raise AgentChangedError(str(point.address), f"a node {name!r}", "none of that name")
    if names and (lost := topology.lost_join(state)):
        raise AgentChangedError(str(point.address), f"an edge {lost}", "none like it")
    for task in state.tasks:
        _check_inside(topology, point, task)
    state = replace(state, values=topology.channels.filled(state.values))
    if names and (fault := topology.channels.misfit(state.values)):
        raise StateChangedError(str(point.address), fault)
    return state


def _check_inside(topology: Topology, point: InterruptNode, task: StepTask) -> None:
    """Check that the interrupts inside of a node can still be answered."""
    graph, address = topology.nodes[task.node].graph, task.address(point.address)
    for child in point.children:
        if not address.is_prefix_of(child.address):
            continue
        was_graph = isinstance(child.info, GraphInfo) and child.address == address
        if was_graph != (graph is not None):
            was, now = ("a sub-graph", "a function") if was_graph else ("a function", "a sub-graph")
            raise AgentChangedError(str(address), was, now)
        if graph is not None:
            read_state(graph, child)


def _fatal(task: asyncio.Task[NodeEnding]) -> BaseException:
    if task.cancelled():
        return asyncio.CancelledError("a node was cancelled")
    return cast("BaseException", task.exception())
