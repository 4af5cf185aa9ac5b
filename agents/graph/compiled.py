"""Compiled graphs: run, stream, resume and recover threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from datetime import timedelta
from typing import Literal, TypeAlias, Unpack, cast

from pydantic import BaseModel

from agents.core.cancel import CancelToken, stop
from agents.core.component.exits import contained
from agents.core.component.state import address_segment
from agents.core.errors import (
    AgentConfigError,
    CheckpointConflictError,
    NothingPendingError,
    OutsideRunError,
    ResumeError,
)
from agents.core.events import telling
from agents.core.journal import RECOVERED
from agents.core.scope import current_scope
from agents.graph.commands import Command
from agents.graph.drawing import mermaid
from agents.graph.errors import NoCheckpointerError, ThreadBusyError
from agents.graph.nodes.function import graph_number, kept
from agents.graph.nodes.steps import GraphRun, read_state
from agents.graph.state.channels import Values
from agents.graph.state.place import graph_point, graph_state
from agents.graph.threads.answers import (
    Resume,
    can_go_on,
    check_input,
    check_request,
    has_answers,
    late_error,
    named_answers,
    names_questions,
    sort_answers,
)
from agents.graph.threads.execution import GraphExecution, ThreadWork, begun, commanded, shown
from agents.graph.threads.snapshot import GraphResult
from agents.graph.threads.thread import GraphThread
from agents.graph.threads.threads import GraphThreads
from agents.runs.answers import find_stopped
from agents.runs.document import Claim, RunDocument

StreamMode: TypeAlias = Literal["updates", "values", "interrupts", "events"]
_MODES = ("updates", "values", "interrupts", "events")


class CompiledGraph(GraphThreads):
    """A graph that can run. Made by `StateGraph.compile`.

    Args:
        topology: Nodes and edges.
        store: Stores the threads; None stores nothing.
        options: Other options of `compile`.
    """

    def draw_mermaid(self) -> str:
        """Draw the graph and its sub-graphs as Mermaid text; see `agents.graph.drawing`."""
        return mermaid(self.topology)

    async def invoke(
        self,
        input: Mapping[str, object] | BaseModel | None = None,  # noqa: A002 - the documented name
        *,
        thread_id: str = "",
        cancel: CancelToken | None = None,
        step_limit: int | None = None,
        **resume: Unpack[Resume],
    ) -> GraphResult:
        """Run the graph to its end or to an interrupt.

        An input begins a new turn and replaces a pending one. An answer or a command resumes the
        thread, and an input is then ignored. With neither, the thread continues if possible: failed
        nodes run again, and pending interrupts stay pending. Inside another run and without a
        thread id, the graph becomes a part of that run.

        Args:
            input: By key of the state, or an instance of the state's model.
            thread_id: Id of the thread, for a graph with a store. Runs of a graph without a store
                are not stored and cannot be resumed.
            cancel: Stops the run between two steps.
            step_limit: Maximum number of steps of this call; by default the limit of `compile`. A
                sub-graph has its own.
            **resume: See `Resume`.

        Returns:
            The state and the pending interrupts.

        Raises:
            NoCheckpointerError: A resume without a store or thread id, or a graph with a store
                without a thread id. Nothing ran.
            TypeError: An argument is unknown. Nothing ran.
            ResumeError: An answer's interrupt is not pending; nothing ran. Or some answers are
                invalid: the other answers are used, and the thread is stored.
            CheckpointError: The thread never ran, is busy, or cannot be read.
            AgentError: The graph cannot continue.
            Exception: A node failed. Finished nodes are stored.
        """
        work = _work(cancel, step_limit)
        return await self._run_thread(input, resume, thread_id, work)

    async def stream(
        self,
        input: Mapping[str, object] | BaseModel | None = None,  # noqa: A002 - the documented name
        *,
        mode: StreamMode | Sequence[StreamMode] = "updates",
        thread_id: str = "",
        cancel: CancelToken | None = None,
        step_limit: int | None = None,
        **resume: Unpack[Resume],
    ) -> AsyncGenerator[object, None]:
        """Run the graph like `invoke` and stream its progress.

        Args:
            input: See `invoke`.
            mode: "updates" yields each node's update as `{node: update}`, and pending interrupts at
                the end as `{"__interrupt__": …}`; a node that had finished before a resume also has
                `"__metadata__": {"cached": True}`. "values" yields the state after each step, with
                "__interrupt__" if it stops. "interrupts" yields pending interrupts. "events" yields
                the events of agents and tools in its nodes, as `AgentEvent`. Several modes yield
                pairs of mode and part.
            thread_id: See `invoke`.
            cancel: See `invoke`.
            step_limit: See `invoke`.
            **resume: See `Resume`.

        Raises:
            AgentError: See `invoke`.
        """
        modes = (mode,) if isinstance(mode, str) else tuple(mode)
        for name in modes:
            if name not in _MODES:
                raise AgentConfigError(f"there is no mode {name!r}; use {', '.join(_MODES)}")
        queue: asyncio.Queue[tuple[str, object] | None] = asyncio.Queue()

        def tell(kind: str, part: object) -> None:
            if kind in modes:
                queue.put_nowait((kind, part))

        work = replace(_work(cancel, step_limit), tell=tell)
        going = self._run_thread(input, resume, thread_id, work)
        task = asyncio.create_task(going, context=copy_context())
        # None ends the loop below, also if the run fails; `await task` then raises the error.
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (entry := await queue.get()) is not None:
                yield entry[1] if isinstance(mode, str) else entry
            await task
        finally:
            await stop(cast("asyncio.Task[object]", task))

    async def run_inside(
        self,
        input: Mapping[str, object] | BaseModel,  # noqa: A002 - see invoke
        *,
        step_limit: int | None = None,
    ) -> Values:
        """Run the graph as a part of the current run: in a node, a tool or an agent.

        A call after an interrupt resumes the graph and ignores the input. If the calling node runs
        again, a finished graph does not. Parallel graphs need an address segment each.

        Args:
            input: By key of the state, or an instance of the state's model.
            step_limit: See `invoke`.

        Returns:
            The final state.

        Raises:
            InterruptSignal: The graph is interrupted.
            OutsideRunError: There is no current run.
            Exception: A node failed.
        """
        scope = current_scope("run_inside()")
        number = graph_number(scope, self.name)

        async def work() -> Values:
            with address_segment("runnable", self.name, number):
                graph_run = GraphRun(self.topology, step_limit=step_limit)
                return await graph_run.run(lambda: self.topology.channels.given(input, "the input"))

        return await kept(f"graph {scope.address} {self.name} {number}", work)

    async def recover(
        self,
        thread_id: str,
        *,
        cancel: CancelToken | None = None,
        step_limit: int | None = None,
    ) -> GraphResult:
        """Continue a thread after a crash of its process; finished nodes do not run again.

        Args:
            thread_id: The thread. Call this only if its process has ended; otherwise one of the two
                stops at its next step.
            cancel: See `invoke`.
            step_limit: See `invoke`.

        Raises:
            CheckpointError: The thread never ran, cannot be read, or another process recovers it.
            Exception: A node failed.
        """
        work = _work(cancel, step_limit)
        thread = self._thread(thread_id, "recover()")
        head = await thread.need_head(self.topology)
        if not thread.is_running:
            return shown(self.topology, head, thread_id)
        # A fence: of two processes that recover the thread, only one can write this index.
        await thread.journal(every_step=False).append(RECOVERED, "")
        await thread.load()
        claim = thread.claimed
        head = await commanded(self.topology, head, cast("Command | None", claim.command))
        work = replace(work, answers=claim.answers, resumed=True)
        with contained(), telling(lambda event: work.tell("events", event), passes_on=False):
            return await self._run(thread, head, work)

    async def _run_thread(
        self,
        given: Mapping[str, object] | BaseModel | None,
        request: Resume,
        thread_id: str,
        work: ThreadWork,
    ) -> GraphResult:
        check_request(request)
        check_input(given)
        goes_on = given is None or bool(request)
        # A graph inside another run is stored with that run, so it needs no thread of its own.
        if not thread_id and not goes_on and given is not None and _is_inside():
            return GraphResult(values=await self.run_inside(given, step_limit=work.step_limit))
        with telling(lambda event: work.tell("events", event), passes_on=False):
            if goes_on:
                return await self._resume(self._thread(thread_id, "a resume"), request, work)
            return await self._begin(given or {}, thread_id, work)

    async def _begin(
        self, given: Mapping[str, object] | BaseModel, thread_id: str, work: ThreadWork
    ) -> GraphResult:
        if (self._store is None) == bool(thread_id):  # one without the other stores nothing
            raise NoCheckpointerError(self.name, "invoke()")
        thread = GraphThread(self._store, thread_id)
        head = await thread.load()
        thread.refuse_running()
        thread.check_graph(self.topology)
        new = await begun(self.topology, head, given, self._options.new_id())
        saved = await thread.save(new)
        return await self._run(thread, saved, work)

    async def _resume(self, thread: GraphThread, request: Resume, work: ThreadWork) -> GraphResult:
        """Resume a thread. An answer waits until another answer of the thread is done."""
        delays = _delays(self._options.patience if names_questions(request) else timedelta())
        while True:
            try:
                return await self._resumed(thread, request, work)
            except _TryAgain as late:
                delay = next(delays, None)
                if delay is None:
                    raise late.error from None
            await asyncio.sleep(delay)

    async def _resumed(self, thread: GraphThread, request: Resume, work: ThreadWork) -> GraphResult:
        head = await thread.need_head(self.topology)
        if thread.is_running:
            raise _late(thread, request, thread.origin)
        # Check everything before the claim, so that a refused resume leaves the thread unchanged.
        read_state(self.topology, graph_point(head))
        command = request.get("command")
        answers = find_stopped(graph_point(head))
        refusals: tuple[ResumeError, ...] = ()
        if has_answers(request):
            named = named_answers(head, request, thread.thread_id)
            sorted_answers = sort_answers(self.topology, head, named)
            answers |= sorted_answers.fit
            refusals = sorted_answers.refusals
        elif command is None and not answers:
            state = graph_state(head)
            if not state.tasks and not state.gate:
                raise NothingPendingError(thread.thread_id)
            if head.phase == "paused" and not can_go_on(head):
                return shown(self.topology, head, thread.thread_id)
        begun, base = thread.origin, await commanded(self.topology, head, command)
        # The claim stores the answers, so that a process that recovers the thread can read them.
        try:
            await thread.claim(Claim(answers=answers, command=command and command.plain()))
        except CheckpointConflictError:
            await thread.load()
            raise _late(thread, request, begun) from None
        work = replace(work, answers=answers, refusals=refusals, resumed=True)
        return await self._run(thread, base, work)

    async def _run(self, thread: GraphThread, head: RunDocument, work: ThreadWork) -> GraphResult:
        return await GraphExecution(self.topology, self._options, thread, head, work).run()


def _work(cancel: CancelToken | None, step_limit: object) -> ThreadWork:
    is_number = isinstance(step_limit, int) and not isinstance(step_limit, bool)
    if step_limit is not None and not (is_number and cast("int", step_limit) >= 1):
        raise AgentConfigError(f"`step_limit` is {step_limit!r}; give a number of steps, from 1")
    return ThreadWork(cancel=cancel or CancelToken(), step_limit=cast("int | None", step_limit))


class _TryAgain(Exception):  # noqa: N818 - no error: never leaves this module
    """The thread is busy with another answer, or changed since it was read."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _late(thread: GraphThread, request: Resume, origin: int) -> Exception:
    """Return the error of a late resume, or `_TryAgain` if only answers came between."""
    error = late_error(thread, request)
    if isinstance(error, CheckpointConflictError | ThreadBusyError) and thread.origin == origin:
        return _TryAgain(error)
    return error


def _delays(patience: timedelta) -> Iterator[float]:
    """Yield the delay before each attempt, in seconds; at most `patience` in total."""
    left, delay = patience.total_seconds(), 0.005
    while left > 0:
        yield min(delay, left)
        left -= delay
        delay = min(2 * delay, 0.5)


def _is_inside() -> bool:
    try:
        current_scope("invoke()")
    except OutsideRunError:
        return False
    return True
