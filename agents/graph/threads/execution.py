"""Runs a thread in one process and stores the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace

from agents.core.cancel import CancelToken
from agents.core.codec import encode
from agents.core.component.state import address_segment
from agents.core.errors import ResumeError
from agents.core.events import RunFailed, RunFinished, RunInterrupted, RunResumed, RunStarted
from agents.core.interrupt import InterruptSignal
from agents.core.pending import InterruptNode
from agents.core.scope import RunContext, Scope, SessionValues, entered, outer_house
from agents.graph.commands import END, Command
from agents.graph.errors import GotoError, NodeRefusedError, StateUpdateError
from agents.graph.nodes.steps import GraphRun, Hooks, read_state
from agents.graph.options import Options
from agents.graph.state.channels import Values
from agents.graph.state.place import (
    GraphInfo,
    GraphState,
    bare_point,
    graph_point,
    graph_state,
    with_state,
)
from agents.graph.state.plan import Topology
from agents.graph.threads.snapshot import GraphResult, graph_address, result_of
from agents.graph.threads.thread import GraphThread
from agents.runs.document import Phase, RunDocument

Tell = Callable[[str, object], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadWork:
    """The answers and options of one run of a thread.

    Attributes:
        answers: By interrupt id.
        refusals: Errors of answers that were set aside; raised after all else is stored.
        resumed: Whether the head was claimed, so that its journal continues.
        cancel: Checked between two steps.
        step_limit: Maximum number of steps; None takes the graph's limit.
    """

    answers: Mapping[str, object] = field(default_factory=dict)
    refusals: tuple[ResumeError, ...] = ()
    resumed: bool = False
    cancel: CancelToken = field(default_factory=CancelToken)
    step_limit: int | None = None


class Execution:
    """Runs a thread from its head until it stops. This process must own the thread."""

    def __init__(
        self, topology: Topology, options: Options, thread: GraphThread, tell: Tell
    ) -> None:
        self._topology = topology
        self._options = options
        self._thread = thread
        self._tell = tell

    async def run(self, head: RunDocument, work: ThreadWork) -> GraphResult:
        """Run from a head until the graph ends, interrupts or fails."""
        run = self._context(head, work)
        self._tell_start(run, work)
        hooks = Hooks(keep=lambda state: self._keep(head, run, state), tell=self._tell)
        with entered(Scope(run=run)), address_segment("runnable", self._topology.name):
            graph_run = GraphRun(self._topology, hooks, step_limit=work.step_limit)
            try:
                values = await graph_run.run(dict)
            except InterruptSignal as signal:
                return await self._wait_for_people(head, run, signal, work)
            except NodeRefusedError as error:
                # The refused step must not run on a later resume, so its tasks are removed.
                await self._end(head, run, replace(graph_run.state, tasks=(), gate=()), str(error))
                raise
            except Exception as error:
                await self._fail(head, run, graph_run, error)
                raise
        return await self._finish(head, run, graph_run.state, values, work)

    def _tell_start(self, run: RunContext, work: ThreadWork) -> None:
        name, thread_id = self._topology.name, run.checkpoint_id
        run.observers.tell(
            RunResumed(checkpoint_id=thread_id, targets=tuple(work.answers))
            if work.resumed
            else RunStarted(checkpoint_id=thread_id, agent_name=name)
        )

    def _context(self, head: RunDocument, work: ThreadWork) -> RunContext:
        session = SessionValues(head.session)
        # Only changes of this run are journaled, not the values that were stored before.
        session.take_changes()
        return RunContext(
            checkpoint_id=self._thread.thread_id,
            new_id=self._options.new_id,
            journal=self._thread.journal(every_step=self._options.every_step),
            session=session,
            waiting=graph_point(head),
            answers=work.answers,
            counts=dict(head.counts),
            cancel=work.cancel,
            observers=self._options.observers,
            house=outer_house(),
        )

    async def _keep(self, head: RunDocument, run: RunContext, state: GraphState) -> None:
        """Store a step before the next begins."""
        if not self._options.every_step:
            return
        await self._save(head, run, bare_point(graph_point(head), state), "running")
        # The new head needs a new journal; old entries belong to the old head.
        run.journal = self._thread.journal(every_step=True)

    async def _wait_for_people(
        self, head: RunDocument, run: RunContext, signal: InterruptSignal, work: ThreadWork
    ) -> GraphResult:
        point = signal.point
        result = self._result(point)
        # Stored before people are asked, so that each answer finds its question.
        saved = await self._save(head, run, point, "paused")
        result = replace(result, checkpoint=saved.number if self._thread.thread_id else 0)
        self._tell("updates", {"__interrupt__": result.interrupts})
        self._tell("values", {**deepcopy(result.values), "__interrupt__": result.interrupts})
        self._tell("interrupts", result.interrupts)
        contexts = tuple(one.context for one in result.interrupts)
        run.observers.tell(RunInterrupted(checkpoint_id=run.checkpoint_id, contexts=contexts))
        # Raised last, when all valid answers are stored.
        for refusal in (*work.refusals, *signal.refusals, *self._unused(run, point)):
            raise refusal
        return result

    async def _fail(
        self, head: RunDocument, run: RunContext, graph_run: GraphRun, error: Exception
    ) -> None:
        """Store finished work beside an error, unless another process owns the thread."""
        # A failed journal write can mean that another process owns the thread.
        run.journal.raise_failure()
        told = f"{type(error).__name__}: {error}"
        await self._save(head, run, graph_run.kept_point(), "failed", told)
        run.observers.tell(RunFailed(checkpoint_id=run.checkpoint_id, error=error))

    async def _finish(
        self,
        head: RunDocument,
        run: RunContext,
        state: GraphState,
        values: Values,
        work: ThreadWork,
    ) -> GraphResult:
        saved = await self._end(head, run, state, "")
        run.observers.tell(RunFinished(checkpoint_id=run.checkpoint_id))
        for refusal in (*work.refusals, *self._unused(run, None)):
            raise refusal
        number = saved.number if self._thread.thread_id else 0
        return GraphResult(
            values=deepcopy(values), thread_id=self._thread.thread_id, checkpoint=number
        )

    async def _end(
        self, head: RunDocument, run: RunContext, state: GraphState, reason: str
    ) -> RunDocument:
        phase: Phase = "cancelled" if reason else "finished"
        return await self._save(head, run, bare_point(graph_point(head), state), phase, reason)

    async def _save(
        self,
        head: RunDocument,
        run: RunContext,
        point: InterruptNode,
        phase: Phase,
        reason: str = "",
    ) -> RunDocument:
        current = self._thread.head or head
        document = replace(
            current,
            parent=current.number,
            phase=phase,
            reason=reason,
            waiting=point,
            counts=run.counts,
            session=dict(run.session),
        )
        return await self._thread.save(document, is_new=_is_new(current, document))

    def _unused(self, run: RunContext, waiting: InterruptNode | None) -> list[ResumeError]:
        """Return unused answers. A stopped run may not have reached their nodes."""
        return [] if run.cancel.mode is not None else run.unused(waiting)

    def _result(self, point: InterruptNode) -> GraphResult:
        state = read_state(self._topology, point)
        thread_id = self._thread.thread_id
        return result_of(self._topology, state, point, thread_id=thread_id, checkpoint=0)


def _is_new(before: RunDocument, after: RunDocument) -> bool:
    """Whether a head is another checkpoint; a stop within the same step is not."""
    if before.waiting == after.waiting:
        return False
    return before.phase != "running" or graph_state(before).step != graph_state(after).step


async def begun(
    topology: Topology, head: RunDocument | None, given: object, new_id: str
) -> RunDocument:
    """Return the head of a new turn, on top of the stored thread."""
    channels, who = topology.channels, "the input"
    old = graph_state(head) if head else None
    values = old.values if old else channels.initial()
    values = channels.merge(values, [(who, channels.given(given, who))])
    if old is not None and (fault := channels.misfit(values)):
        raise StateUpdateError(who, f"what the thread has does not fit the schema: {fault}")
    state = await topology.begin(values, old.counts if old else {}, old.memories if old else {})
    if head is not None:
        return replace(with_state(head, state, phase="running"), parent=head.number)
    point = InterruptNode(
        id=new_id,
        address=graph_address(topology.name),
        info=GraphInfo(graph=topology.name),
        is_hidden=True,
    )
    point = bare_point(point, state)
    return RunDocument(agent=topology.name, messages=(), number=1, phase="running", waiting=point)


async def commanded(topology: Topology, head: RunDocument, command: Command | None) -> RunDocument:
    """Apply a command of a resume: write its update, add its nodes to the next step.

    The nodes pass their breakpoints, like all others.
    """
    if command is None:
        return head
    who, state = "the command", graph_state(head)
    if command.graph:
        raise GotoError(who, command.graph, (*topology.nodes, END))
    targets = tuple(topology.check_target(who, target) for target in command.targets)
    values = topology.channels.merge(state.values, [(who, command.update)])
    queued = (*state.queued, *targets)
    if state.gate and encode(values) != encode(state.values):
        changed = await topology.again(replace(state, queued=queued), values)
    elif state.tasks or state.gate:
        changed = replace(state, values=values, queued=queued)
    else:
        changed = await topology.advance(state, values, [("", targets)])
    before = graph_point(head)
    point = bare_point(before, changed)
    point = replace(point, children=before.children, is_hidden=not before.children)
    return replace(head, waiting=point)


def shown(topology: Topology, head: RunDocument, thread_id: str) -> GraphResult:
    """Return the current result of a thread without running it."""
    return result_of(
        topology,
        graph_state(head),
        graph_point(head),
        thread_id=thread_id,
        checkpoint=head.number,
    )
