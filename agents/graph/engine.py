"""The engine: runs a graph step by step, in whatever run it is in.

A step runs its nodes side by side and waits for all of them. What they write counts when all are
finished. When one asks people, or fails, the step stays as it is: who is finished never runs
again, who waits and was not answered is not entered, who failed or was answered runs again.

The engine keeps where it stands in the state of its own interrupt, like any other component. So
a graph works the same alone, in a node, in a tool and in an agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import NoReturn, cast

from agents.address import Address
from agents.agent import stop
from agents.codec import Json, decode, encode
from agents.context import RunContext, Scope, Watch, current_scope, entered
from agents.errors import CheckpointDecodeError, SwallowedInterruptError, TopologyChangedError
from agents.graph.breakpoints import Gatekeeper, apply_edit, stop_signal
from agents.graph.channels import Values
from agents.graph.errors import GraphStepLimitError, StateUpdateError
from agents.graph.nodes import (
    NodeContext,
    call_function,
    graph_input,
    graph_update,
    numbering,
    read_outcome,
    unpack_group,
)
from agents.graph.plan import Node, Topology
from agents.graph.questions import NodeRun, running
from agents.graph.state import Answered, GraphInfo, GraphState, Outcome, Task
from agents.points import Point
from agents.signals import Interrupted, composite_interrupt

NODE = "node"
"""Kind of journal entries: a node has finished."""


async def _keep_nothing(_: GraphState) -> None:
    return


def _tell_nobody(_: str, __: object) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Who is told what happens.

    Attributes:
        keep: Stores the state between two steps, before the next begins.
        tell: Takes what `stream` gives: the mode, and what happened.
    """

    keep: Callable[[GraphState], Awaitable[None]] = _keep_nothing
    tell: Callable[[str, object], None] = _tell_nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the run of a node ended.

    Attributes:
        task: The task, as it is now.
        signal: What waits in it.
        error: Why it failed.
    """

    task: Task
    signal: Interrupted | None = None
    error: Exception | None = None


class Engine:
    """Runs a graph at the current address.

    Args:
        topology: The graph.
        hooks: Who is told what happens.

    Attributes:
        state: Where it stands; set once it has begun.
    """

    def __init__(self, topology: Topology, hooks: Hooks | None = None) -> None:
        self._topology = topology
        self._hooks = hooks or Hooks()
        self._scope: Scope = current_scope("a graph")
        self._signals: dict[int, Interrupted] = {}
        self._id = ""
        self._is_first = True
        self.state = GraphState(graph=topology.name, values={})

    @property
    def _run(self) -> RunContext:
        return self._scope.run

    async def run(self, make_input: Callable[[], Mapping[str, object]]) -> Values:
        """Run to the end, from where it stands.

        Args:
            make_input: Makes the input; only called when it has not begun.

        Returns:
            The state at the end.

        Raises:
            Interrupted: People are needed.
            NodeRefusedError: A breakpoint was not passed.
            AgentError: The graph cannot go on.
            Exception: A node failed. `kept_point` has what is needed to go on.
        """
        await self._load(make_input)
        while True:
            self._pass_gate()
            if not self.state.tasks:
                return self.state.values
            if self.state.step >= self._topology.step_limit:
                raise GraphStepLimitError(self._topology.name, self._topology.step_limit)
            self._stop_if_wanted()
            await self._run_step()
            await self._commit()

    def kept_point(self) -> Point:
        """All that is needed to go on later, also after an error."""
        children = tuple(self._signals[at].point for at in sorted(self._signals))
        return Point(
            id=self._id or self._run.new_id(),
            address=self._scope.address,
            slot=self._scope.slot,
            info=GraphInfo(graph=self._topology.name),
            state=encode(self.state),
            children=children,
            is_hidden=not children,
        )

    async def _load(self, make_input: Callable[[], Mapping[str, object]]) -> None:
        point = self._scope.point
        if point is None:
            channels = self._topology.channels
            values = channels.merge(channels.initial(), [("the input", make_input())])
            self.state = await self._topology.begin(values, {})
            return
        self._id = point.id
        self.state = read_state(self._topology, point)
        self.state = apply_edit(self._topology, self._run, point, self.state)

    def _pass_gate(self) -> None:
        if not self.state.gate:
            return
        keeper = Gatekeeper(self._topology, self._scope)
        self.state, signals = keeper.pass_gate(self.state)
        if signals:
            self._interrupt(dict(enumerate(signals)))

    def _stop_if_wanted(self) -> None:
        if self._run.cancel.mode is not None:
            self._interrupt({0: stop_signal(self._scope)})

    def _interrupt(self, signals: dict[int, Interrupted]) -> NoReturn:
        self._signals = signals
        ordered = [signals[at] for at in sorted(signals)]
        with entered(self._scope):
            composite_interrupt(GraphInfo(graph=self._topology.name), self.state, *ordered)

    async def _run_step(self) -> None:
        """Run what is to run in this step; whoever is finished stays finished."""
        self._signals = {}
        todo = [at for at in range(len(self.state.tasks)) if self._is_to_run(at)]
        errors: dict[int, Exception] = {}
        async for at, ending in self._side_by_side(todo):
            self.state = self.state.with_task(at, ending.task)
            if ending.signal is not None:
                self._signals[at] = ending.signal
            if ending.error is not None:
                errors[at] = ending.error
            if ending.task.outcome is not None:
                self._hooks.tell("updates", {ending.task.node: ending.task.outcome.update})
        self._run.journal.raise_failure()
        if errors:
            self._fail(errors)
        if self._signals:
            self._interrupt(self._signals)

    def _is_to_run(self, at: int) -> bool:
        """Whether a task runs now: it may be finished, or wait for people still."""
        task = self.state.tasks[at]
        if task.outcome is not None:
            if self._is_first:
                cached = {task.node: task.outcome.update, "__metadata__": {"cached": True}}
                self._hooks.tell("updates", cached)
            return False
        untouched = self._run.untouched(task.address(self._scope.address))
        if task.status == "waiting" and untouched is not None:
            self._signals[at] = Interrupted(untouched)
            return False
        return True

    def _fail(self, errors: dict[int, Exception]) -> NoReturn:
        first, *others = [errors[at] for at in sorted(errors)]
        for other in others:
            first.add_note(f"beside it: {type(other).__name__}: {other}")
        raise first

    async def _side_by_side(self, todo: list[int]) -> AsyncIterator[tuple[int, Ending]]:
        tasks = {asyncio.create_task(self._run_node(self.state.tasks[at])): at for at in todo}
        unfinished = set(tasks)
        fatal: BaseException | None = None
        try:
            while unfinished:
                done, unfinished = await asyncio.wait(
                    unfinished, return_when=asyncio.FIRST_COMPLETED
                )
                for task in [task for task in tasks if task in done]:
                    if task.cancelled() or task.exception() is not None:
                        fatal = fatal or _fatal(task)
                    else:
                        yield tasks[task], task.result()
        finally:
            await stop(*tasks)
        if fatal is not None:
            raise fatal

    async def _run_node(self, task: Task) -> Ending:
        """Run a node in its address; whatever comes out of it has one meaning."""
        node, address = self._topology.nodes[task.node], task.address(self._scope.address)
        node_run = self._node_run(task, address)
        scope = replace(
            self._scope,
            address=address,
            slot="",
            point=self._run.claim(address, ""),
            watch=Watch(),
            granted=None,
            why="",
        )
        with entered(scope), numbering(scope), running(node_run):
            try:
                return await self._attempt(task, node, node_run)
            except BaseExceptionGroup as group:
                return self._ungrouped(task, node_run, group)

    async def _attempt(self, task: Task, node: Node, node_run: NodeRun) -> Ending:
        child = Engine(node.graph) if node.graph is not None else None
        try:
            outcome = await self._outcome(task, node, node_run, child)
        except Interrupted as signal:
            return _waiting(task, node_run, signal)
        except Exception as error:  # noqa: BLE001 - kept with the task, and raised after the step
            return self._failed(task, node_run, error, child)
        answered = _answers(node_run)
        done = replace(task, status="done", outcome=outcome, answered=answered, kept={}, error="")
        return Ending(task=done)

    def _ungrouped(
        self, task: Task, node_run: NodeRun, group: BaseExceptionGroup[BaseException]
    ) -> Ending:
        try:
            error = unpack_group(group)
        except Interrupted as signal:
            return _waiting(task, node_run, signal)
        return self._failed(task, node_run, error, None)

    def _failed(
        self, task: Task, node_run: NodeRun, error: Exception, child: Engine | None
    ) -> Ending:
        """A sub-graph that failed keeps what is finished in it, and what waits in it."""
        error.add_note(f"in node {task.node!r} of graph {self._topology.name!r}")
        told = f"{type(error).__name__}: {error}".rstrip(": ")
        failed = replace(
            task, status="failed", error=told, answered=_answers(node_run), kept=node_run.kept
        )
        signal = (
            Interrupted(child.kept_point()) if child is not None and child.state.tasks else None
        )
        return Ending(task=failed, signal=signal, error=error)

    async def _outcome(
        self, task: Task, node: Node, node_run: NodeRun, child: Engine | None
    ) -> Outcome:
        scope, journal = current_scope("a node"), self._run.journal
        at = str(scope.address)
        before = journal.find(NODE, at)
        if before is not None:
            self._run.session.apply_changes(cast("dict[str, Json]", before["session"]))
            return cast("Outcome", decode(before["outcome"]))
        state = deepcopy(task.sent[0] if task.sent else self.state.values)
        if child is None:
            result = await call_function(node, state, self._context(task))
        else:
            result = await self._run_child(node, state, child)
        if scope.watch.raised:
            raise SwallowedInterruptError(at)
        node_run.check_finished()
        outcome = read_outcome(self._topology, node, result)
        if journal.every_step:
            changes = self._run.session.take_changes()
            await journal.append(NODE, at, {"outcome": encode(outcome), "session": changes})
        return outcome

    async def _run_child(self, node: Node, state: object, child: Engine) -> Values:
        given = dict(graph_input(node, state))
        after = await child.run(lambda: given)
        before = state if isinstance(state, dict) else {}
        return graph_update(node, self._topology.channels, before, after)

    def _node_run(self, task: Task, address: Address) -> NodeRun:
        known = {answer.index: answer for answer in task.answered}
        node_run = NodeRun(
            run=self._run,
            address=address,
            node=task.node,
            answered=known,
            kept=dict(task.kept),
        )
        node_run.take_answers()
        return node_run

    def _context(self, task: Task) -> NodeContext:
        return NodeContext(
            node=task.node,
            run=task.run,
            step=self.state.step,
            thread_id=self._run.checkpoint_id,
        )

    async def _commit(self) -> None:
        """Write what the nodes of the step return, and see what is next."""
        values = self._topology.channels.merge(self.state.values, self.state.updates)
        done = [(task.node, cast("Outcome", task.outcome).goto) for task in self.state.tasks]
        state = replace(self.state, step=self.state.step + 1)
        self.state = await self._topology.advance(state, values, done)
        self._is_first = False
        if self.state.tasks and not self.state.gate:
            await self._hooks.keep(self.state)
        self._hooks.tell("values", deepcopy(values))


def read_state(topology: Topology, point: Point) -> GraphState:
    """Read where a graph stood.

    Raises:
        TopologyChangedError: It was another graph, or a node that must go on is gone.
        CheckpointDecodeError: It is damaged.
    """
    state = decode(point.state)
    if not isinstance(state, GraphState):
        raise CheckpointDecodeError(f"the graph at {point.address} has lost its state")
    if state.graph != topology.name:
        was, now = f"the graph {state.graph!r}", f"the graph {topology.name!r}"
        raise TopologyChangedError(str(point.address), was, now)
    names = {*(task.node for task in state.tasks), *(one.node for one in state.gate)}
    for name in sorted(names - set(topology.nodes)):
        raise TopologyChangedError(str(point.address), f"a node {name!r}", "none of that name")
    return state


def shown_values(topology: Topology, state: GraphState) -> Values:
    """The state as people see it: with what finished nodes of this step have written."""
    try:
        return topology.channels.merge(state.values, state.updates)
    except StateUpdateError:  # two writers: the step cannot end, and its node says why
        return state.values


def _fatal(task: asyncio.Task[Ending]) -> BaseException:
    if task.cancelled():
        return asyncio.CancelledError("a node was cancelled")
    return cast("BaseException", task.exception())


def _answers(node_run: NodeRun) -> tuple[Answered, ...]:
    return tuple(node_run.answered[index] for index in sorted(node_run.answered))


def _waiting(task: Task, node_run: NodeRun, signal: Interrupted) -> Ending:
    """Who asks, waits; who asked something else than people answered, waits as before."""
    if node_run.refusals:
        return Ending(task=replace(task, status="waiting", kept=node_run.kept), signal=signal)
    answered = _answers(node_run)
    waiting = replace(task, status="waiting", answered=answered, kept=node_run.kept, error="")
    return Ending(task=waiting, signal=signal)
