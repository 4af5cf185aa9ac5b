"""The runner: begins, resumes and recovers runs, and keeps their checkpoints.

A run goes from segment to segment. A segment ends with an interrupt, whose document is stored
before anybody sees it, or with the end of the run, whose checkpoint is closed. What happens in
between is in the journal: every step with durability "step"; with "interrupt" only starts and ends
of calls that people agreed to. After an error, a resume of which the journal says nothing is taken
back, so that the same answers can be given again; any other is left `running`, for `recover`.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Literal

from pydantic_ai.messages import ModelMessage

from agents.agent import Agent, AgentEvent, AgentInput, InterruptEvent, run_agent
from agents.checkpoint import CheckpointStatus, CheckpointStore, MessageLog, StoredCheckpoint
from agents.context import RunContext, Scope, SessionValues
from agents.document import Claim, ResumeParams, RunDocument, find_answers
from agents.errors import (
    AgentConfigError,
    CheckpointBusyError,
    CheckpointClosedError,
    CheckpointConflictError,
    CheckpointNotFoundError,
    NoCheckpointStoreError,
    NothingPendingError,
    TopologyChangedError,
)
from agents.interrupt import Interrupted
from agents.journal import RECOVERED, Journal
from agents.messages import read_log, user_message
from agents.points import InterruptContext, Point
from agents.segment import Segment

Durability = Literal["interrupt", "step"]
Events = AsyncGenerator[AgentEvent, None]


def new_uuid() -> str:
    """Make an id that nobody can guess."""
    return str(uuid.uuid4())


class Runner:
    """Runs an agent, and keeps what is needed to go on after an interrupt or a crash.

    All methods that give events are generators: nothing happens, and no error is raised, before
    the first event is asked for. What follows an event happens when the next one is asked for.

    Args:
        agent: The root agent.
        checkpoint_store: Where checkpoints are kept; without one, nothing can be resumed.
        message_log: Where the messages of earlier turns are, for runs with `log`.
        durability: When things are stored: at each interrupt, or at each step.
        streaming: Whether text is passed on while the model speaks.
        new_id: Makes ids of interrupts; UUIDs.

    Raises:
        AgentConfigError: Steps cannot be kept without a store.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        checkpoint_store: CheckpointStore | None = None,
        message_log: MessageLog | None = None,
        durability: Durability = "interrupt",
        streaming: bool = False,
        new_id: Callable[[], str] = new_uuid,
    ) -> None:
        if durability == "step" and checkpoint_store is None:
            raise AgentConfigError(
                "durability 'step' needs a store; give one: `Runner(agent, checkpoint_store=…)`"
            )
        self._agent = agent
        self._store = checkpoint_store
        self._message_log = message_log
        self._durability = durability
        self._streaming = streaming
        self._new_id = new_id

    async def query(
        self,
        text: str | Sequence[str],
        *,
        checkpoint_id: str | None = None,
        log: tuple[str, int] | None = None,
        session_values: Mapping[str, object] | None = None,
    ) -> Events:
        """Run with what a person says; see `run`.

        Args:
            text: One message, or several.
            checkpoint_id: See `run`.
            log: See `run`.
            session_values: See `run`.
        """
        texts = [text] if isinstance(text, str) else list(text)
        events = self.run(
            [user_message(*texts)],
            checkpoint_id=checkpoint_id,
            log=log,
            session_values=session_values,
        )
        async with contextlib.aclosing(events):
            async for event in events:
                yield event

    async def run(
        self,
        messages: Sequence[ModelMessage],
        *,
        checkpoint_id: str | None = None,
        log: tuple[str, int] | None = None,
        session_values: Mapping[str, object] | None = None,
    ) -> Events:
        """Begin a run.

        Args:
            messages: What the agent works on: the messages of this turn.
            checkpoint_id: A new id for this run; without one it can be interrupted, not resumed.
            log: Id of a message log and number of this turn. Earlier turns are read from it, and
                this one is added at its end; neither is copied into the checkpoint.
            session_values: Values that all agents and tools of the run share; storable.

        Raises:
            CheckpointConflictError: The id is in use: its run waits for answers.
            CheckpointBusyError: The id is in use: its run is going on.
            CheckpointClosedError: The id was used: its run has ended.
            AgentError: The run cannot go on.
        """
        document = RunDocument(
            agent=self._agent.name,
            messages=tuple(messages),
            log=log,
            streaming=self._streaming,
            session=dict(session_values or {}),
        )
        kept_id = checkpoint_id if checkpoint_id and self._store else ""
        history = await self._history(document)
        version = await self._begin(kept_id, document)
        journal = self._journal(kept_id, base=version)
        segment = Segment(
            store=self._store,
            checkpoint_id=kept_id,
            document=document,
            run=self._context(checkpoint_id or "", document, journal),
            version=version,
            history=history,
        )
        async with contextlib.aclosing(self._work(segment)) as events:
            async for event in events:
                yield event

    async def resume(self, checkpoint_id: str) -> Events:
        """Enter everything that waits, without answers: each goes on by itself, or waits again.

        Args:
            checkpoint_id: The run.

        Raises:
            AgentError: See `resume_with_params`.
        """
        events = self.resume_with_params(checkpoint_id, ResumeParams(untargeted="reenter"))
        async with contextlib.aclosing(events):
            async for event in events:
                yield event

    async def resume_with_params(
        self,
        checkpoint_id: str,
        params: ResumeParams,
        *,
        session_values: Mapping[str, object] | None = None,
    ) -> Events:
        """Go on with answers for named interrupts.

        Without any answer, and with the others preserved, nothing runs: what is pending is told.

        Args:
            checkpoint_id: The run.
            params: The answers.
            session_values: They replace stored ones of the same key.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            CheckpointError: There is no such checkpoint, it cannot be read, its run is going on or
                has ended, or somebody else resumed it first. Nothing ran.
            ResumeError: An answer was refused, nothing ran, and all still waits. Or a tool refused
                its answer: then what did run is stored, and the rest still waits.
            AgentError: The run cannot go on.
        """
        store = self._need_store()
        stored = await self._load(checkpoint_id)
        document, waiting = self._pending(checkpoint_id, stored)
        answers = find_answers(waiting, params.targets)
        if not answers and params.untargeted == "preserve" and not session_values:
            yield self._interrupt_event(waiting, stored.version)
            return
        history = await self._history(document)
        claim = Claim(
            answers=answers, untargeted=params.untargeted, session=dict(session_values or {})
        ).to_text()
        version = await store.claim(checkpoint_id, claim, expected_version=stored.version)
        journal = self._journal(checkpoint_id, base=stored.base, entries=stored.journal)
        segment = Segment(
            store=self._store,
            checkpoint_id=checkpoint_id,
            document=document,
            run=self._context(checkpoint_id, document, journal, Claim.from_text(claim)),
            version=version,
            history=history,
            was_claimed=True,
        )
        async with contextlib.aclosing(self._work(segment)) as events:
            async for event in events:
                yield event

    async def recover(self, checkpoint_id: str) -> Events:
        """Go on with a run whose process died.

        Events of the segment that was cut are given again, with the same keys. Nothing that the
        journal says has finished runs again; of an approved call that had started, people are
        asked, unless its tool is idempotent. A run that waits for people only tells so.

        Args:
            checkpoint_id: The run. Call this only when its process is gone; if it is not, one of
                the two stops at its next step.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            CheckpointError: There is no such checkpoint, it cannot be read, its run has ended, or
                somebody else recovers it.
            AgentError: The run cannot go on.
        """
        self._need_store()
        stored = await self._load(checkpoint_id)
        document = self._document(stored)
        if stored.status is CheckpointStatus.PENDING and document.waiting:
            yield self._interrupt_event(document.waiting, stored.version)
            return
        history = await self._history(document)
        claim = Claim.from_text(stored.claim)
        journal = self._journal(checkpoint_id, base=stored.base, entries=stored.journal)
        await journal.append(RECOVERED, "")
        segment = Segment(
            store=self._store,
            checkpoint_id=checkpoint_id,
            document=document,
            run=self._context(checkpoint_id, document, journal, claim),
            version=stored.version,
            history=history,
        )
        async with contextlib.aclosing(self._work(segment)) as events:
            async for event in events:
                yield event

    async def pending(self, checkpoint_id: str) -> tuple[InterruptContext, ...]:
        """Read what waits for people; empty when nothing does.

        Args:
            checkpoint_id: The run.

        Raises:
            NoCheckpointStoreError: This runner has no store.
            CheckpointError: It cannot be read.
        """
        stored = await self._need_store().load(checkpoint_id)
        if stored is None or stored.status is not CheckpointStatus.PENDING:
            return ()
        waiting = RunDocument.from_text(stored.data).waiting
        return tuple(waiting.contexts()) if waiting else ()

    async def _work(self, segment: Segment) -> Events:
        """Run the agent to its next interrupt or its end, and store which it was."""
        agent_input = AgentInput(messages=segment.document.messages, history=segment.history)
        events = run_agent(self._agent, agent_input, outer=Scope(run=segment.run))
        signal: Interrupted | None = None
        try:
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
        except Interrupted as raised:
            signal = raised
        except Exception:
            await segment.take_back()
            raise
        if signal is None:
            await segment.finish(self._message_log)
            return
        version = await segment.keep(signal.point)
        yield self._interrupt_event(signal.point, version)
        if signal.refusals:
            raise signal.refusals[0]

    async def _begin(self, checkpoint_id: str, document: RunDocument) -> int:
        """Make sure that the id is free; with durability "step", take it."""
        if self._store is None or not checkpoint_id:
            document.to_text()  # a value that cannot be stored is an error in any case
            return 0
        stored = await self._store.load(checkpoint_id)
        if stored is not None:
            self._check_ended(checkpoint_id, stored)
            raise CheckpointConflictError(checkpoint_id, "it waits for answers or is new")
        text = document.to_text()
        if self._durability == "interrupt":
            return 0
        return await self._store.save(
            checkpoint_id, text, status=CheckpointStatus.RUNNING, expected_version=0
        )

    def _context(
        self,
        checkpoint_id: str,
        document: RunDocument,
        journal: Journal,
        claim: Claim | None = None,
    ) -> RunContext:
        claim = claim or Claim()
        session = SessionValues({**document.session, **claim.session})
        session.take_changes()
        return RunContext(
            checkpoint_id=checkpoint_id,
            new_id=self._new_id,
            journal=journal,
            session=session,
            waiting=document.waiting,
            answers=claim.answers,
            untargeted=claim.untargeted,
            counts=dict(document.counts),
            transcript=list(document.transcript),
            streaming=document.streaming,
        )

    def _journal(self, checkpoint_id: str, *, base: int, entries: Sequence[str] = ()) -> Journal:
        return Journal(
            self._store,
            checkpoint_id,
            base=base,
            entries=entries,
            every_step=self._durability == "step",
        )

    def _interrupt_event(self, waiting: Point, version: int) -> InterruptEvent:
        return InterruptEvent(
            agent_name=self._agent.name,
            run_path=(self._agent.name,),
            key=f"interrupt/{version}",
            contexts=tuple(waiting.contexts()),
        )

    def _need_store(self) -> CheckpointStore:
        if self._store is None:
            raise NoCheckpointStoreError
        return self._store

    async def _load(self, checkpoint_id: str) -> StoredCheckpoint:
        stored = await self._need_store().load(checkpoint_id)
        if stored is None:
            raise CheckpointNotFoundError(checkpoint_id)
        if stored.status is CheckpointStatus.CLOSED:
            raise CheckpointClosedError(checkpoint_id)
        return stored

    def _check_ended(self, checkpoint_id: str, stored: StoredCheckpoint) -> None:
        if stored.status is CheckpointStatus.CLOSED:
            raise CheckpointClosedError(checkpoint_id)
        if stored.status is CheckpointStatus.RUNNING:
            raise CheckpointBusyError(checkpoint_id)

    def _pending(self, checkpoint_id: str, stored: StoredCheckpoint) -> tuple[RunDocument, Point]:
        self._check_ended(checkpoint_id, stored)
        document = self._document(stored)
        if document.waiting is None:
            raise NothingPendingError(checkpoint_id)
        return document, document.waiting

    def _document(self, stored: StoredCheckpoint) -> RunDocument:
        document = RunDocument.from_text(stored.data)
        if document.agent != self._agent.name:
            was, now = f"the agent {document.agent!r}", f"the agent {self._agent.name!r}"
            raise TopologyChangedError("the run", was, now)
        return document

    async def _history(self, document: RunDocument) -> tuple[ModelMessage, ...]:
        """Messages of earlier turns, from the log."""
        if document.log is None:
            return ()
        if self._message_log is None:
            raise AgentConfigError("`log` needs a message log: `Runner(agent, message_log=…)`")
        log_id, turn = document.log
        return tuple(read_log(await self._message_log.load(log_id, before_turn=turn)))
