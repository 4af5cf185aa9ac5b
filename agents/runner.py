"""The runner: begins, resumes and recovers runs, and stores their checkpoints.

A run consists of segments. A segment ends with an interrupt, whose document is stored before people
see it, or with the end of the run, whose checkpoint is closed. The journal records the steps in
between: every step with durability "step"; with "interrupt" only starts and ends of approved calls.
After an error, a resume without a journal entry is rolled back, so that the same answers can be
given again; any other resume stays `running`, for `recover`. A run that was stopped from outside is
stored like an interrupt, and any resume continues it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import cast, get_args

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from agents.agent import Agent, AgentEvent, AgentInput, InterruptEvent, check_agent, run_agent
from agents.core.asking.limits import ModelBudget
from agents.core.cancel import CancelToken
from agents.core.checkpoint import (
    CheckpointStatus,
    CheckpointStore,
    Durability,
    MessageLog,
    new_uuid,
)
from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    CheckpointClosedError,
    CheckpointError,
    CheckpointNotFoundError,
    NoCheckpointStoreError,
    NothingPendingError,
    ResumeError,
    RunCancelledError,
)
from agents.core.events import RunResumed, RunStarted
from agents.core.interrupt import InterruptSignal
from agents.core.journal import RECOVERED
from agents.core.messages import user_message
from agents.core.observers import Observer, Observers, Recorder
from agents.core.pending import InterruptContext
from agents.core.scope import BeforeStart, Scope
from agents.core.tools import check_timeout
from agents.gates.approval import house
from agents.gates.rulings import Judgement
from agents.policy.house import ApplicationPolicy
from agents.runs.answers import ResumeParams, Targets, find_stopped, take_answers
from agents.runs.declared import check_rules
from agents.runs.document import Claim, OpenRun, RunDocument
from agents.runs.judging import judge
from agents.runs.session import RunSession, Setup, check_free
from agents.runs.topology import check_topology

__all__ = ["Runner"]

Events = AsyncGenerator[AgentEvent, None]
Claimed = tuple[OpenRun, RunDocument, Claim]
"""A run that was claimed for a resume, its document, and the claim."""


class Runner:
    """Runs an agent. Stores checkpoints to resume it after an interrupt or a crash.

    All methods that return events are async generators: nothing runs, and no error is raised,
    before the first event is requested. The work after an event runs when the next event is
    requested.

    Args:
        agent: The root agent.
        checkpoint_store: Stores the checkpoints; without it, runs cannot be resumed.
        message_log: Stores the messages of earlier turns, for runs with `log`.
        durability: When to store: at each interrupt, or at each step.
        streaming: Whether to emit text while the model produces it.
        observers: Notified after events; see `agents.core.observers`.
        new_id: Creates ids of interrupts; by default UUIDs.
        before_start: Checks each gated call right before it starts, and may have people asked
            again; see `BeforeStart`.
        model_timeout: Longest time without data from the model, after which the request fails with
            a `ModelTimeoutError`; None has no limit.
        tool_timeout: Longest time of a call, for tools without their own `timeout`; see `tool`. It
            is not for tools that run agents. None has no limit.
        budget: Counts what models use, and has people asked at a limit; see `ModelBudget`.
        recorder: Records approved calls: the start before the call starts, and the outcome; see
            `agents.core.observers`.
        policy: The application's policy. It judges every call of every tool, with or without a gate
            in code, and is combined with that gate; see `ApplicationPolicy`.
        epoch: Part of `idempotency_key()`. Change it whenever the store was restored from a backup
            and ids of runs and calls may repeat. Calls that were pending in the backup keep their
            keys.

    Raises:
        AgentConfigError: `agent` is not an agent, the durability is unknown, or steps cannot be
            stored without a store; `tool_timeout` is not positive; or, with a policy, a rule in
            code has no name of its own.
    """

    def __init__(  # noqa: PLR0913 - the documented names, all given by keyword
        self,
        agent: Agent,
        *,
        checkpoint_store: CheckpointStore | None = None,
        message_log: MessageLog | None = None,
        durability: Durability = "interrupt",
        streaming: bool = False,
        observers: Sequence[Observer] = (),
        new_id: Callable[[], str] = new_uuid,
        before_start: BeforeStart | None = None,
        model_timeout: timedelta | None = None,
        tool_timeout: timedelta | None = None,
        budget: ModelBudget | None = None,
        recorder: Recorder | None = None,
        policy: ApplicationPolicy | None = None,
        epoch: str = "",
    ) -> None:
        check_agent(agent)
        if policy is not None:
            check_rules(agent)
        if durability not in get_args(Durability):
            known = ", ".join(map(repr, get_args(Durability)))
            raise AgentConfigError(f"there is no durability={durability!r}; use {known}")
        if durability == "step" and checkpoint_store is None:
            raise AgentConfigError(
                "durability 'step' needs a store; give one: `Runner(agent, checkpoint_store=…)`"
            )
        check_timeout("the runner", "tool_timeout", tool_timeout)
        self._setup = Setup(
            agent=agent,
            store=checkpoint_store,
            message_log=message_log,
            every_step=durability == "step",
            observers=Observers(tuple(observers)),
            new_id=new_id,
            before_start=before_start,
            model_timeout=model_timeout,
            tool_timeout=tool_timeout,
            budget=budget,
            recorder=recorder,
            house=house(policy) if policy is not None else None,
            epoch=epoch,
        )
        self._streaming = streaming

    @property
    def checkpoint_store(self) -> CheckpointStore | None:
        """The checkpoint store."""
        return self._setup.store

    @property
    def message_log(self) -> MessageLog | None:
        """The log of the messages of earlier turns."""
        return self._setup.message_log

    def query(
        self,
        text: str | Sequence[str],
        *,
        checkpoint_id: str | None = None,
        log: tuple[str, int] | None = None,
        session_values: Mapping[str, object] | None = None,
        cancel: CancelToken | None = None,
    ) -> Events:
        """Begin a run with one or several messages of a person. For the rest, see `run`."""
        texts = [text] if isinstance(text, str) else list(text)
        return self.run(
            [user_message(*texts)],
            checkpoint_id=checkpoint_id,
            log=log,
            session_values=session_values,
            cancel=cancel,
        )

    async def run(
        self,
        messages: Sequence[ModelMessage],
        *,
        checkpoint_id: str | None = None,
        log: tuple[str, int] | None = None,
        session_values: Mapping[str, object] | None = None,
        cancel: CancelToken | None = None,
    ) -> Events:
        """Begin a run.

        Args:
            messages: The messages of this turn.
            checkpoint_id: A new id for this run; without it the run cannot be resumed.
            log: Id of a message log and number of this turn. Earlier turns are read from the log,
                and this turn is added at its end. Neither is copied into the checkpoint.
            session_values: Values that all agents and tools of the run share; storable.
            cancel: Stops the run at a safe point.

        Raises:
            CheckpointConflictError: The id belongs to an interrupted run.
            CheckpointBusyError: The id belongs to a running run.
            CheckpointClosedError: The id belongs to an ended run.
            NoCheckpointStoreError: An id was given, and this runner has no store.
            AgentConfigError: The id is empty, or something else than messages is given.
            RunCancelledError: The run was stopped. Raised instead of an interrupt event; the state
                is stored.
            AgentError: The run cannot continue.
        """
        for message in messages:
            if not isinstance(message, ModelRequest | ModelResponse):
                raise AgentConfigError(
                    f"run() takes messages of pydantic-ai, not a {type(message).__name__}; for a "
                    "text, use `query(text)`"
                )
        document = RunDocument(
            agent=self._setup.agent.name,
            messages=tuple(messages),
            log=log,
            streaming=self._streaming,
            session=dict(session_values or {}),
            epoch=self._setup.epoch,
        )
        if checkpoint_id is not None and self._setup.store is None:
            raise NoCheckpointStoreError
        if checkpoint_id is not None and not checkpoint_id:
            raise AgentConfigError(
                f"checkpoint_id is a text that is not empty, got {checkpoint_id!r}; leave it out "
                "for a run that nobody resumes"
            )
        run_id = checkpoint_id or ""
        history = await self._setup.history(document)
        begun = await self._setup.begin(run_id, document)
        segment = self._setup.segment(replace(begun, history=history), document, cancel=cancel)
        self._setup.observers.tell(
            RunStarted(checkpoint_id=run_id, agent_name=self._setup.agent.name)
        )
        async with contextlib.aclosing(self._work(segment)) as events:
            async for event in events:
                yield event

    def resume(
        self,
        checkpoint_id: str,
        answers: Targets | Sequence[str] | None = None,
        *,
        cancel: CancelToken | None = None,
    ) -> Events:
        """Resume with answers by interrupt id or address. Other interrupts stay pending.

        A list of ids resumes these components without data: see `ResumeParams.targets`. Omitted
        answers differ from an empty dict. With `{}`, nothing changes: the event lists the pending
        interrupts, and a stopped run continues. With no answers at all, all pending components are
        resumed without an answer and ask again under new ids; the earlier ids become invalid.

        Args:
            checkpoint_id: The run.
            answers: See `ResumeParams.targets`, or ids alone; None is
                `ResumeParams(untargeted="reenter")`.
            cancel: See `run`.

        Raises:
            AgentConfigError: `answers` is not a dict by id or address.
            AgentError: See `resume_with_params`.
        """
        params = ResumeParams(untargeted="reenter")
        if isinstance(answers, list | tuple):
            params = ResumeParams(targets=dict.fromkeys(answers))
        elif answers is not None:
            params = ResumeParams(targets=cast("Targets", answers))
        return self.resume_with_params(checkpoint_id, params, cancel=cancel)

    async def resume_with_params(
        self,
        checkpoint_id: str,
        params: ResumeParams,
        *,
        session_values: Mapping[str, object] | None = None,
        cancel: CancelToken | None = None,
        run: OpenRun | None = None,
    ) -> Events:
        """Resume named interrupts with answers, and continue a stopped run.

        With neither answers nor a stop, and if other interrupts are preserved, nothing runs and the
        event lists the pending interrupts.

        Args:
            checkpoint_id: The run.
            params: The answers.
            session_values: They replace stored values of the same key.
            cancel: See `run`.
            run: Result of `open`, to avoid a second read. The run is read again only if another
                process has written since.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            AgentConfigError: `params` has another type, or `run` is another run.
            UnstorableValueError: An answer cannot be stored. Nothing ran.
            CheckpointError: The checkpoint does not exist or cannot be read, its run is running or
                has ended, or another process resumed it first. Nothing ran.
            ResumeError: An answer was refused, nothing ran, and all interrupts stay pending. Or a
                tool refused its answer: finished work is stored, and the other interrupts stay
                pending.
            RunCancelledError: See `run`.
            AgentError: The run cannot continue.
        """
        if not isinstance(params, ResumeParams):
            raise AgentConfigError(
                f"resume_with_params() takes ResumeParams, not {type(params).__name__}; "
                "for answers alone there is `resume(checkpoint_id, {id: answer})`"
            )
        claimed = await self._claimed(checkpoint_id, params, session_values or {}, run)
        if isinstance(claimed, InterruptEvent):
            yield claimed
            return
        opened, document, claim = claimed
        segment = self._setup.segment(opened, document, cancel=cancel, claimed=claim)
        self._tell_resumed(segment)
        async with contextlib.aclosing(self._work(segment)) as events:
            async for event in events:
                yield event

    async def recover(
        self,
        checkpoint_id: str,
        *,
        cancel: CancelToken | None = None,
        run: OpenRun | None = None,
    ) -> Events:
        """Continue a run after a crash of its process.

        Events of the interrupted segment are emitted again, with the same keys. Journaled work does
        not run again. If an approved call had started, people are asked, unless its tool is
        idempotent. An interrupted run only lists its interrupts; a stopped run continues.

        Args:
            checkpoint_id: The run. Call this only if its process has ended; otherwise one of the
                two stops at its next step.
            cancel: See `run`.
            run: See `resume_with_params`.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            AgentConfigError: `run` is another run.
            CheckpointError: The checkpoint does not exist or cannot be read, its run has ended, or
                another process recovers it.
            AgentChangedError: The component that asked has changed. Nothing ran, nothing was
                written.
            RunCancelledError: See `run`.
            AgentError: The run cannot continue.
        """
        self._need_store()
        run = _same_run(checkpoint_id, run) or await self._need(checkpoint_id)
        document = self._document(run)
        if run.status is CheckpointStatus.PENDING and document.waiting is not None:
            work = self.resume_with_params(checkpoint_id, ResumeParams(), cancel=cancel, run=run)
        else:
            work = self._work(await self._recovered(run, document, cancel))
        async with contextlib.aclosing(work) as events:
            async for event in events:
                yield event

    async def open(self, checkpoint_id: str) -> OpenRun | None:
        """Read a run once, to inspect it before it resumes; None if it does not exist.

        If you have already read its checkpoint from the store, use `OpenRun.of`.

        Args:
            checkpoint_id: The run.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            CheckpointError: The checkpoint cannot be read.
        """
        stored = await self._need_store().load(checkpoint_id)
        return OpenRun.of(checkpoint_id, stored) if stored is not None else None

    def remember(self, run: OpenRun) -> None:
        """Cache a run for `recall`, replacing the version that this process saved.

        Args:
            run: As read from the store; only interrupted runs are cached.
        """
        self._setup.fresh.pop(run.checkpoint_id, None)
        if run.status is CheckpointStatus.PENDING:
            self._setup.fresh[run.checkpoint_id] = run

    def recall(self, checkpoint_id: str) -> OpenRun | None:
        """Return the cached version of an interrupted run; None if there is none.

        Another process may have changed the run since. In that case the claim of a resume fails,
        and the run is read again.

        Args:
            checkpoint_id: The run.
        """
        fresh = self._setup.fresh.get(checkpoint_id)
        return fresh.again() if fresh is not None else None

    async def pending(self, checkpoint_id: str) -> tuple[InterruptContext, ...]:
        """Read the pending interrupts of a run.

        An interrupt with a `CancelInfo` needs no answer: the run was stopped there.

        Args:
            checkpoint_id: The run.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            CheckpointError: The checkpoint cannot be read.
        """
        run = await self.open(checkpoint_id)
        return run.pending() if run is not None else ()

    async def judge(
        self, checkpoint_id: str, interrupt_id: str, arguments: Mapping[str, object]
    ) -> Judgement | None:
        """Return what the rules require of a pending call with other arguments.

        For edit forms. Runs no agent and no tool, and writes nothing.

        Args:
            checkpoint_id: The run.
            interrupt_id: The pending interrupt.
            arguments: All arguments of the call.

        Returns:
            None if the gate cannot be found without running an agent's code. The gate then decides
            alone when it receives the answer.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            CheckpointError: The checkpoint cannot be read, or its run has ended.
            InvalidArgumentsError: The arguments do not fit the tool.
        """
        document = self._document(await self._need(checkpoint_id))
        return await judge(
            self._setup.agent,
            document,
            checkpoint_id,
            interrupt_id,
            arguments,
            house=self._setup.house,
        )

    async def _work(self, segment: RunSession) -> Events:
        """Run the agent to its next interrupt or end, and store the result."""
        history = segment.opened.history or ()
        agent_input = AgentInput(messages=segment.document.messages, history=history)
        events = run_agent(self._setup.agent, agent_input, outer=Scope(run=segment.run))
        signal: InterruptSignal | None = None
        try:
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
        except InterruptSignal as raised:
            # The traceback's frames would keep the run's objects alive
            signal = raised.with_traceback(None)
        except Exception as error:
            await segment.fail(error)
            raise
        if signal is None:
            await segment.finish()
            for unused in segment.run.unused(None):
                raise unused
            return
        ending = await segment.keep(signal.point)
        refusal = next(iter((*signal.refusals, *ending.unused)), None)
        if ending.was_stopped:
            raise RunCancelledError(segment.checkpoint_id, ending.contexts) from refusal
        yield self._interrupt_event(ending.contexts, ending.version)
        if refusal is not None:
            raise refusal

    async def _recovered(
        self, run: OpenRun, document: RunDocument, cancel: CancelToken | None
    ) -> RunSession:
        """Take over the segment of a dead process."""
        if document.waiting is not None:
            check_topology(self._setup.agent, document.waiting, document.topology)
        history = await self._setup.history(document)
        segment = self._setup.segment(replace(run, history=history), document, cancel=cancel)
        await segment.run.journal.append(RECOVERED, "")
        # The dead process may have stopped before it recorded all outcomes
        if self._setup.recorder is not None:
            for notice in run.notices():
                await self._setup.recorder.noted(notice)
        self._tell_resumed(segment, is_recovery=True)
        return segment

    async def _claimed(
        self,
        checkpoint_id: str,
        params: ResumeParams,
        session: Mapping[str, object],
        run: OpenRun | None,
    ) -> Claimed | InterruptEvent:
        """Claim the run from the cached version, else from the stored one."""
        self._need_store()
        fresh = self._setup.fresh.pop(checkpoint_id, None)
        run = _same_run(checkpoint_id, run)
        # Another process may have written since the cache was filled, so read the store.
        with contextlib.suppress(CheckpointError, ResumeError):
            if run is None and fresh is not None and params.targets:
                run = fresh.again()
            if run is not None:
                return await self._claim(run, params, session)
        return await self._claim(await self._need(checkpoint_id), params, session)

    async def _claim(
        self, run: OpenRun, params: ResumeParams, session: Mapping[str, object]
    ) -> Claimed | InterruptEvent:
        check_free(run.checkpoint_id, run.stored)
        document = self._document(run)
        waiting = document.waiting
        if waiting is None:
            raise NothingPendingError(run.checkpoint_id)
        stopped = find_stopped(waiting)
        waiting, answers = take_answers(waiting.renewed(stopped), params.targets)
        answers = {**stopped, **answers}
        if params.untargeted == "reenter":
            waiting = waiting.anew()
        document = replace(document, waiting=waiting)
        if not (answers or session) and params.untargeted == "preserve":
            return self._interrupt_event(tuple(waiting.contexts()), run.stored.version)
        check_topology(self._setup.agent, waiting, document.topology)
        history = run.history
        if history is None:
            history = await self._setup.history(document)
        claim = Claim(
            answers=answers,
            untargeted=params.untargeted,
            session=session,
            epoch=self._setup.epoch or document.epoch,
        )
        claimed, claim = await run.claimed(self._need_store(), claim)
        return replace(claimed, history=history), document, claim

    def _tell_resumed(self, segment: RunSession, *, is_recovery: bool = False) -> None:
        waiting = segment.run.waiting
        answers, stopped = segment.run.answers, find_stopped(waiting) if waiting else {}
        self._setup.observers.tell(
            RunResumed(
                checkpoint_id=segment.checkpoint_id,
                targets=tuple(key for key in answers if key not in stopped),
                is_recovery=is_recovery,
            )
        )

    def _interrupt_event(
        self, contexts: tuple[InterruptContext, ...], version: int
    ) -> InterruptEvent:
        return InterruptEvent(
            agent_name=self._setup.agent.name,
            run_path=(self._setup.agent.name,),
            key=f"interrupt/{version}",
            contexts=contexts,
        )

    def _need_store(self) -> CheckpointStore:
        if self._setup.store is None:
            raise NoCheckpointStoreError
        return self._setup.store

    async def _need(self, checkpoint_id: str) -> OpenRun:
        run = await self.open(checkpoint_id)
        if run is None:
            raise CheckpointNotFoundError(checkpoint_id)
        return run

    def _document(self, run: OpenRun) -> RunDocument:
        document = run.document
        if document is None:
            raise CheckpointClosedError(run.checkpoint_id)
        if document.number or document.agent != self._setup.agent.name:
            was = f"the {'graph' if document.number else 'agent'} {document.agent!r}"
            now = f"the agent {self._setup.agent.name!r}"
            raise AgentChangedError("the run", was, now)
        return document


def _same_run(checkpoint_id: str, run: OpenRun | None) -> OpenRun | None:
    if run is not None and run.checkpoint_id != checkpoint_id:
        raise AgentConfigError(
            f"{run.checkpoint_id!r} was opened, and {checkpoint_id!r} shall go on"
        )
    return run
