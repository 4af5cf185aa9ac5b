"""The runner: begins, resumes and recovers runs, and keeps their checkpoints.

A run goes from segment to segment. A segment ends with an interrupt, whose document is stored
before anybody sees it, or with the end of the run, whose checkpoint is closed. What happens in
between is in the journal: every step with durability "step"; with "interrupt" only starts and ends
of calls that people agreed to. After an error, a resume of which the journal says nothing is taken
back, so that the same answers can be given again; any other is left `running`, for `recover`.
A run that was stopped from outside is stored as an interrupt is, and goes on with any resume.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import cast, get_args

from pydantic_ai.messages import ModelMessage

from agents.agent import Agent, AgentEvent, AgentInput, InterruptEvent, check_agent, run_agent
from agents.core.cancel import CancelToken
from agents.core.checkpoint import (
    AmendingStore,
    CheckpointStatus,
    CheckpointStore,
    Durability,
    MessageLog,
    new_uuid,
)
from agents.core.codec import read_back
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
from agents.core.pending import InterruptContext, InterruptNode
from agents.core.scope import BeforeStart, Scope
from agents.gates.house import house
from agents.gates.rulings import Judgement
from agents.policy.house import ApplicationPolicy
from agents.runs.declared import check_rules
from agents.runs.document import (
    Claim,
    OpenRun,
    ResumeParams,
    RunDocument,
    Targets,
    find_stopped,
    take_answers,
)
from agents.runs.judging import judge
from agents.runs.session import RunSession, Setup, check_free
from agents.runs.topology import check_topology

__all__ = ["Runner"]

Events = AsyncGenerator[AgentEvent, None]
Claimed = tuple[OpenRun, RunDocument, Claim]
"""A run that was claimed for a resume, what it says, and the claim."""


class Runner:
    """Runs an agent. Stores checkpoints to resume it after an interrupt or a crash.

    All methods that give events are generators: nothing happens, and no error is raised, before
    the first event is asked for. What follows an event happens when the next one is asked for.

    Args:
        agent: The root agent.
        checkpoint_store: Where checkpoints are kept; without one, nothing can be resumed.
        message_log: Where the messages of earlier turns are, for runs with `log`.
        durability: When things are stored: at each interrupt, or at each step.
        streaming: Whether text is passed on while the model speaks.
        observers: Told what happens, after it has happened; see `agents.core.observers`.
        new_id: Makes ids of interrupts; UUIDs.
        before_start: Looks at each gated call right before it starts, and may have people asked
            anew; see `BeforeStart`.
        model_timeout: How long a model may send nothing before a request is given up, with a
            `ModelTimeoutError`; None waits for ever.
        recorder: Puts on record what people let run: its start before it starts, and what became of
            it; see `agents.core.observers`.
        policy: The application's: it judges every call of every tool, with or without a gate in
            code, and what it says is combined with what code says; see `ApplicationPolicy`.
        era: Give another name whenever the store went back to a copy, and ids of runs and calls may
            come again: it enters `idempotency_key()` of all calls but those that waited in it.

    Raises:
        AgentConfigError: It is no agent, there is no such durability, or steps cannot be kept
            without a store; or, with a policy, a rule of code asks without a name of its own.
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
        recorder: Recorder | None = None,
        policy: ApplicationPolicy | None = None,
        era: str = "",
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
        self._setup = Setup(
            agent=agent,
            store=checkpoint_store,
            message_log=message_log,
            every_step=durability == "step",
            observers=Observers(tuple(observers)),
            new_id=new_id,
            before_start=before_start,
            model_timeout=model_timeout,
            recorder=recorder,
            house=house(policy) if policy is not None else None,
            era=era,
            amending=checkpoint_store if isinstance(checkpoint_store, AmendingStore) else None,
        )
        self._streaming = streaming

    @property
    def checkpoint_store(self) -> CheckpointStore | None:
        """The store of checkpoints."""
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
        """Run with what a person says: one message, or several. For the rest, see `run`."""
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
            messages: What the agent works on: the messages of this turn.
            checkpoint_id: A new id for this run; without one it can be interrupted, not resumed.
            log: Id of a message log and number of this turn. Earlier turns are read from it, and
                this one is added at its end; neither is copied into the checkpoint.
            session_values: Values that all agents and tools of the run share; storable.
            cancel: With it, somebody else can stop the run at a safe point.

        Raises:
            CheckpointConflictError: The id is in use: its run waits for answers.
            CheckpointBusyError: The id is in use: its run is going on.
            CheckpointClosedError: The id was used: its run has ended.
            AgentConfigError: The id is empty.
            RunCancelledError: It was stopped, in place of an interrupt event: what it and people
                need is stored.
            AgentError: The run cannot go on.
        """
        document = RunDocument(
            agent=self._setup.agent.name,
            messages=tuple(messages),
            log=log,
            streaming=self._streaming,
            session=dict(session_values or {}),
            era=self._setup.era,
        )
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
        """Go on with answers, by interrupt id or address; what has none stays as it is.

        A list of ids enters these components as targets, without data: see `ResumeParams.targets`.
        Left out, the answers are not the same as an empty dict. With `{}`, nothing is entered and
        nothing changes: it only tells what waits, and goes on where a run was stopped. With
        nothing at all, everything that waits is entered without an answer, and asks again under
        new ids; the ids that people were shown before are gone.

        Args:
            checkpoint_id: The run.
            answers: See `ResumeParams.targets`, or ids alone; None is
                `ResumeParams(untargeted="reenter")`.
            cancel: See `run`.

        Raises:
            AgentConfigError: The answers are no dict by id or address.
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
        """Go on with answers for named interrupts, and wherever the run was stopped from outside.

        If there is nothing of both, and the others are preserved, nothing runs: what is pending
        is told.

        Args:
            checkpoint_id: The run.
            params: The answers.
            session_values: They replace stored ones of the same key.
            cancel: See `run`.
            run: What `open` gave for it: then it is not read again, unless somebody wrote since.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            AgentConfigError: These are no params, or another run was opened.
            UnstorableValueError: An answer could not be read again. Nothing ran.
            CheckpointError: There is no such checkpoint, it cannot be read, its run is going on or
                has ended, or somebody else resumed it first. Nothing ran.
            ResumeError: An answer was refused, nothing ran, and all still waits. Or a tool refused
                its answer: then what did run is stored, and the rest still waits.
            RunCancelledError: See `run`.
            AgentError: The run cannot go on.
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
        """Go on with a run whose process died.

        Events of the segment that was cut are given again, with the same keys. Nothing that the
        journal says has finished runs again; of an approved call that had started, people are
        asked, unless its tool is idempotent. A run that waits for people only tells so; one that
        was stopped goes on.

        Args:
            checkpoint_id: The run. Call this only when its process is gone; if it is not, one of
                the two stops at its next step.
            cancel: See `run`.
            run: See `resume_with_params`.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            AgentConfigError: Another run was opened.
            CheckpointError: There is no such checkpoint, it cannot be read, its run has ended, or
                somebody else recovers it.
            AgentChangedError: What asked is not what it was. Nothing ran, nothing was written.
            RunCancelledError: See `run`.
            AgentError: The run cannot go on.
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
        """Read a run once, for who looks at it before it goes on; None when there is none.

        Whoever has read its checkpoint from the store already uses `OpenRun.of`.

        Args:
            checkpoint_id: The run.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            CheckpointError: It cannot be read.
        """
        stored = await self._need_store().load(checkpoint_id)
        return OpenRun.of(checkpoint_id, stored) if stored is not None else None

    def remember(self, run: OpenRun) -> None:
        """Keep what was just read of a run for `recall`, in place of what this process saved of it.

        Args:
            run: As read from the store; nothing is kept of one that does not wait.
        """
        self._setup.fresh.pop(run.checkpoint_id, None)
        if run.status is CheckpointStatus.PENDING:
            self._setup.fresh[run.checkpoint_id] = run

    def recall(self, checkpoint_id: str) -> OpenRun | None:
        """Return what this process saved or read last of a waiting run; None when unknown.

        Somebody else may have gone on with it since. For who knows that nobody has; should that be
        wrong, the claim of a resume fails, and the run is read.

        Args:
            checkpoint_id: The run.
        """
        fresh = self._setup.fresh.get(checkpoint_id)
        return fresh.again() if fresh is not None else None

    async def pending(self, checkpoint_id: str) -> tuple[InterruptContext, ...]:
        """Read what waits; empty when nothing does.

        What has a `CancelInfo` waits for no answer: the run was stopped there.

        Args:
            checkpoint_id: The run.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            CheckpointError: It cannot be read.
        """
        run = await self.open(checkpoint_id)
        return run.pending() if run is not None else ()

    async def judge(
        self, checkpoint_id: str, interrupt_id: str, arguments: Mapping[str, object]
    ) -> Judgement | None:
        """Work out what the rules demand of a waiting call with other arguments.

        For forms in which people edit: it runs no agent and writes nothing, and lets nothing run.

        Args:
            checkpoint_id: The run.
            interrupt_id: What waits.
            arguments: All of them.

        Returns:
            None when the gate that asks cannot be found without entering an agent's code; then the
            gate judges alone, when it gets the answer.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            CheckpointError: It cannot be read, or its run has ended.
            InvalidArgumentsError: They do not fit the tool.
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
        """Run the agent to its next interrupt or its end, and store which it was."""
        history = segment.opened.history or ()
        agent_input = AgentInput(messages=segment.document.messages, history=history)
        events = run_agent(self._setup.agent, agent_input, outer=Scope(run=segment.run))
        signal: InterruptSignal | None = None
        try:
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
        except InterruptSignal as raised:
            signal = raised.with_traceback(None)  # else its frames keep the run alive
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
        """Go on with a segment that a dead process left; only now it is this one's."""
        if document.waiting is not None:
            check_topology(self._setup.agent, document.waiting, document.topology)
        history = await self._setup.history(document)
        segment = self._setup.segment(replace(run, history=history), document, cancel=cancel)
        await segment.run.journal.append(RECOVERED, "")
        if self._setup.recorder is not None:  # the dead process may not have told of all
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
        """Claim, with what this process has read or saved last, or else with what is stored."""
        self._need_store()
        fresh = self._setup.fresh.pop(checkpoint_id, None)
        run = _same_run(checkpoint_id, run)
        # Somebody else may have written since. Then the truth is in the store.
        with contextlib.suppress(CheckpointError, ResumeError):
            if run is None and fresh is not None and params.targets:
                run = fresh.again()
            if run is not None:
                return await self._claim(run, params, session)
        return await self._claim(await self._need(checkpoint_id), params, session)

    async def _claim(
        self, run: OpenRun, params: ResumeParams, session: Mapping[str, object]
    ) -> Claimed | InterruptEvent:
        checkpoint_id, stored = run.checkpoint_id, run.stored
        document, waiting = self._pending(run)
        stopped = find_stopped(waiting)
        waiting, answers = take_answers(waiting.renewed(stopped), params.targets)
        answers = {**stopped, **answers}
        if params.untargeted == "reenter":
            waiting = waiting.anew()
        document = replace(document, waiting=waiting)
        if not (answers or session) and params.untargeted == "preserve":
            return self._interrupt_event(tuple(waiting.contexts()), stored.version)
        check_topology(self._setup.agent, waiting, document.topology)
        history = run.history
        if history is None:
            history = await self._setup.history(document)
        text = Claim(
            answers=answers,
            untargeted=params.untargeted,
            session=session,
            era=self._setup.era or document.era,
        ).to_text()
        claim = read_back(text, Claim.from_text)
        version = await self._need_store().claim(
            checkpoint_id, text, expected_version=stored.version
        )
        running = CheckpointStatus.RUNNING
        claimed = replace(stored, claim=text, status=running, version=version)
        return replace(run, stored=claimed, history=history), document, claim

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

    def _pending(self, run: OpenRun) -> tuple[RunDocument, InterruptNode]:
        check_free(run.checkpoint_id, run.stored)
        document = self._document(run)
        if document.waiting is None:
            raise NothingPendingError(run.checkpoint_id)
        return document, document.waiting

    def _document(self, run: OpenRun) -> RunDocument:
        document = run.document
        if document is None:
            raise CheckpointClosedError(run.checkpoint_id)
        if document.agent != self._setup.agent.name:
            was, now = f"the agent {document.agent!r}", f"the agent {self._setup.agent.name!r}"
            raise AgentChangedError("the run", was, now)
        return document


def _same_run(checkpoint_id: str, run: OpenRun | None) -> OpenRun | None:
    if run is not None and run.checkpoint_id != checkpoint_id:
        raise AgentConfigError(
            f"{run.checkpoint_id!r} was opened, and {checkpoint_id!r} shall go on"
        )
    return run
