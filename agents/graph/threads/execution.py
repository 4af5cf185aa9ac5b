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


def drop(_: str, __: object) -> None:
    """Drop what a run tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadWork:
    """The answers and options of one run of a thread.

    Attributes:
        answers: By interrupt id.
        refusals: Errors of answers that were set aside; raised after all else is stored.
        resumed: Whether the head was claimed, so that its journal continues.
        cancel: Checked between two steps.
        step_limit: Maximum number of steps; None takes the graph's limit.
        tell: Receives the mode and the part for `stream`.
    """

    answers: Mapping[str, object] = field(default_factory=dict)
    refusals: tuple[ResumeError, ...] = ()
    resumed: bool = False
    cancel: CancelToken = field(default_factory=CancelToken)
    step_limit: int | None = None
    tell: Tell = drop


class GraphExecution:
    """Runs a thread from its head until it stops. This process must own the thread."""

    def __init__(
        self,
        topology: Topology,
        options: Options,
        thread: GraphThread,
        head: RunDocument,
        work: ThreadWork,
    ) -> None:
        self._topology = topology
        self._options = options
        self._thread = thread
        self._head = head
        self._point = graph_point(head)
        self._work = work
        self._run = RunContext(
            checkpoint_id=thread.thread_id,
            new_id=options.new_id,
            journal=thread.journal(every_step=options.every_step),
            session=SessionValues(head.session),
            waiting=self._point,
            answers=work.answers,
            counts=dict(head.counts),
            cancel=work.cancel,
            observers=options.observers,
            house=outer_house(),
        )

    async def run(self) -> GraphResult:
        """Run until the graph ends, interrupts or fails."""
        self._tell_start()
        hooks = Hooks(keep=self._keep, tell=self._work.tell)
        with entered(Scope(run=self._run)), address_segment("runnable", self._topology.name):
            graph_run = GraphRun(self._topology, hooks, step_limit=self._work.step_limit)
            try:
                values = await graph_run.run(dict)
            except InterruptSignal as signal:
                return await self._wait_for_people(signal)
            except NodeRefusedError as error:
                # The refused step must not run on a later resume, so its tasks are removed.
                state = replace(graph_run.state, tasks=(), gate=())
                await self._save(bare_point(self._point, state), "cancelled", str(error))
                raise
            except Exception as error:
                await self._fail(graph_run, error)
                raise
        return await self._finish(graph_run.state, values)

    def _tell_start(self) -> None:
        run, work = self._run, self._work
        run.observers.tell(
            RunResumed(checkpoint_id=run.checkpoint_id, targets=tuple(work.answers))
            if work.resumed
            else RunStarted(checkpoint_id=run.checkpoint_id, agent_name=self._topology.name)
        )

    async def _keep(self, state: GraphState) -> None:
        """Store a step before the next begins."""
        if not self._options.every_step:
            return
        await self._save(bare_point(self._point, state), "running")
        # The new head needs a new journal; old entries belong to the old head.
        self._run.journal = self._thread.journal(every_step=True)

    async def _wait_for_people(self, signal: InterruptSignal) -> GraphResult:
        point, run, tell = signal.point, self._run, self._work.tell
        state = read_state(self._topology, point)
        # Stored before people are asked, so that each answer finds its question.
        saved = await self._save(point, "paused")
        result = result_of(
            self._topology,
            state,
            point,
            thread_id=self._thread.thread_id,
            checkpoint=self._number(saved),
        )
        tell("updates", {"__interrupt__": result.interrupts})
        tell("values", {**deepcopy(result.values), "__interrupt__": result.interrupts})
        tell("interrupts", result.interrupts)
        contexts = tuple(interrupt.context for interrupt in result.interrupts)
        run.observers.tell(RunInterrupted(checkpoint_id=run.checkpoint_id, contexts=contexts))
        self._refuse(*signal.refusals, *self._unused(point))
        return result

    async def _fail(self, graph_run: GraphRun, error: Exception) -> None:
        """Store finished work beside an error, unless another process owns the thread."""
        run = self._run
        # A failed journal write can mean that another process owns the thread.
        run.journal.raise_failure()
        await self._save(graph_run.kept_point(), "failed", f"{type(error).__name__}: {error}")
        run.observers.tell(RunFailed(checkpoint_id=run.checkpoint_id, error=error))

    async def _finish(self, state: GraphState, values: Values) -> GraphResult:
        saved = await self._save(bare_point(self._point, state), "finished")
        self._run.observers.tell(RunFinished(checkpoint_id=self._run.checkpoint_id))
        self._refuse(*self._unused(None))
        return GraphResult(
            values=deepcopy(values),
            thread_id=self._thread.thread_id,
            checkpoint=self._number(saved),
        )

    async def _save(self, point: InterruptNode, phase: Phase, reason: str = "") -> RunDocument:
        head = self._thread.head or self._head
        document = replace(
            head,
            parent=head.number,
            phase=phase,
            reason=reason,
            waiting=point,
            counts=self._run.counts,
            session=dict(self._run.session),
        )
        return await self._thread.save(document, is_new=_is_new(head, document))

    def _number(self, saved: RunDocument) -> int:
        return saved.number if self._thread.thread_id else 0

    def _refuse(self, *refusals: ResumeError) -> None:
        """Raise the first refusal: last of all, when all valid answers are stored."""
        for refusal in (*self._work.refusals, *refusals):
            raise refusal

    def _unused(self, waiting: InterruptNode | None) -> list[ResumeError]:
        """Return unused answers. A stopped run may not have reached their nodes."""
        return [] if self._run.cancel.mode is not None else self._run.unused(waiting)


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
    """Apply a command of a resume: write its update, and add its nodes.

    The nodes run at once beside the step's other nodes, also while these wait for people. At a
    breakpoint, and if they have one of their own, they run in the next step.
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
    elif state.gate:
        changed = replace(state, values=values, queued=queued)
    elif state.tasks:
        changed = topology.joined(replace(state, values=values), targets)
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
