"""A segment of a run: from its start, resume or recovery to its next interrupt or its end.

What all segments of a runner share is its setup, which opens and begins them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from cachetools import LRUCache
from pydantic_ai.messages import ModelMessage

from agents.agent import Agent
from agents.cancel import CancelToken
from agents.checkpoint import CheckpointStatus, CheckpointStore, MessageLog, StoredCheckpoint
from agents.codec import read_back
from agents.context import BeforeStart, RunContext, SessionValues
from agents.document import Claim, RunDocument, find_stopped
from agents.errors import (
    AgentConfigError,
    CheckpointBusyError,
    CheckpointClosedError,
    CheckpointConflictError,
    ResumeError,
)
from agents.journal import Journal
from agents.messages import dump_new, log_text, read_log
from agents.observe import Observers, RunCancelled, RunFailed, RunFinished, RunInterrupted
from agents.points import Point
from agents.topology import topology

_FRESH = 200
"""How many checkpoints a runner remembers, each a few kilobytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a runner was made with.

    Attributes:
        agent: The root agent.
        store: Where checkpoints are kept.
        message_log: Where the messages of earlier turns are.
        every_step: Whether each step is stored.
        observers: Told what happens.
        new_id: Makes ids of interrupts.
        before_start: Looks at each gated call before it starts; None lets all of them.
        era: Enters idempotency keys; empty for that of the document.
        fresh: What this process saved last, so that a resume need not read it again. Others may
            have written since: a claim tells.
    """

    agent: Agent
    store: CheckpointStore | None
    message_log: MessageLog | None
    every_step: bool
    observers: Observers
    new_id: Callable[[], str]
    before_start: BeforeStart | None = None
    era: str = ""
    fresh: LRUCache[str, StoredCheckpoint] = field(default_factory=lambda: LRUCache(_FRESH))

    async def history(self, document: RunDocument) -> tuple[ModelMessage, ...]:
        """Read the messages of earlier turns in the log.

        Raises:
            AgentConfigError: The run has a log, and this runner has none.
        """
        if document.log is None:
            return ()
        if self.message_log is None:
            raise AgentConfigError("`log` needs a message log: `Runner(agent, message_log=…)`")
        log_id, turn = document.log
        return tuple(read_log(await self.message_log.load(log_id, before_turn=turn)))

    async def begin(self, run_id: str, document: RunDocument) -> StoredCheckpoint:
        """Make sure that an id is free; when each step is stored, take it.

        Returns:
            The checkpoint; with version 0, when nothing is stored yet.

        Raises:
            CheckpointError: The id is in use.
            UnstorableValueError: A value of the run cannot be stored.
        """
        text = read_back(document.to_text(), RunDocument.from_text)
        version, status = 0, CheckpointStatus.RUNNING
        if self.store is not None and run_id:
            if not self.every_step:
                await self._check_new(self.store, run_id)
            else:
                version = await self._take(self.store, run_id, text)
        return StoredCheckpoint(
            data=text, claim="", status=status, version=version, base=version, journal=()
        )

    async def _check_new(self, store: CheckpointStore, run_id: str) -> None:
        stored = await store.load(run_id)
        if stored is not None:
            check_free(run_id, stored)
            raise CheckpointConflictError(run_id, "it waits for answers or is new")

    async def _take(self, store: CheckpointStore, run_id: str, text: str) -> int:
        """Save, which also says whether the id is new; only when it is not, look why."""
        try:
            status = CheckpointStatus.RUNNING
            return await store.save(run_id, text, status=status, expected_version=0)
        except CheckpointConflictError:
            await self._check_new(store, run_id)
            raise

    def segment(
        self,
        run_id: str,
        document: RunDocument,
        stored: StoredCheckpoint,
        *,
        history: tuple[ModelMessage, ...],
        cancel: CancelToken | None,
        was_claimed: bool = False,
    ) -> Segment:
        """Make a segment; nothing of it runs yet.

        Args:
            run_id: Id of the checkpoint; may be empty.
            document: What the checkpoint says.
            stored: The checkpoint.
            history: Messages of earlier turns.
            cancel: With it, somebody else can stop the run.
            was_claimed: Whether this process has just claimed it.
        """
        claim = Claim.from_text(stored.claim)
        document = document.in_era(claim.era or document.era)
        session = SessionValues({**document.session, **claim.session})
        session.take_changes()
        journal = Journal(
            self.store,
            run_id,
            base=stored.base,
            entries=stored.journal,
            every_step=self.every_step,
        )
        run = RunContext(
            checkpoint_id=run_id,
            new_id=self.new_id,
            journal=journal,
            session=session,
            waiting=document.waiting,
            answers=claim.answers,
            untargeted=claim.untargeted,
            counts=dict(document.counts),
            transcript=list(document.transcript),
            streaming=document.streaming,
            cancel=cancel or CancelToken(),
            observers=self.observers,
            before_start=self.before_start,
            era=document.era,
            eras=document.eras,
        )
        return Segment(
            setup=self,
            checkpoint_id=run_id if self.store else "",
            document=document,
            run=run,
            version=stored.version,
            history=history,
            was_claimed=was_claimed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a run that is going on, and how it is stored when it is over.

    Attributes:
        setup: What its runner was made with.
        checkpoint_id: Empty when nothing is kept.
        document: What it began from.
        run: What all parts of it share.
        version: Of the checkpoint; 0 when there is none yet.
        history: Messages of earlier turns.
        was_claimed: Whether this process has just claimed it.
    """

    setup: Setup
    checkpoint_id: str
    document: RunDocument
    run: RunContext
    version: int
    history: tuple[ModelMessage, ...] = ()
    was_claimed: bool = False

    async def keep(self, waiting: Point) -> int:
        """Store what waits; only then may people see it.

        Returns:
            The version of the checkpoint; 0 when nothing is kept.
        """
        with self._failures():
            version = await self._keep(waiting)
        kind = RunCancelled if self.was_stopped(waiting) else RunInterrupted
        contexts = tuple(waiting.contexts())
        self.run.observers.tell(kind(checkpoint_id=self.run.checkpoint_id, contexts=contexts))
        return version

    def was_stopped(self, waiting: Point) -> bool:
        """Whether it ended because somebody stopped it, whatever else waits as well."""
        return self.run.cancel.mode is not None or bool(find_stopped(waiting))

    def unused(self, waiting: Point) -> list[ResumeError]:
        """Answers that nobody used; where a run was stopped, they may not have been reached."""
        return [] if self.was_stopped(waiting) else self.run.unused(waiting)

    async def fail(self, error: Exception) -> None:
        """After an error: wait for the same answers again, if nothing is on record since."""
        journal = self.run.journal
        # Whoever was refused an entry may have been overtaken: a save would wipe the journal of
        # the other one, with the start of a call that runs right now.
        if self.was_claimed and not journal.has_entries and not journal.has_failed:
            # The caller must see the error that ended the run; `recover` works all the same.
            with contextlib.suppress(Exception):
                await self._save(self.document)
        self._tell_failure(error)

    async def finish(self) -> None:
        """Add the turn to its log, then close the checkpoint: each may be repeated."""
        with self._failures():
            message_log, store = self.setup.message_log, self.setup.store
            if self.document.log is not None and message_log is not None:
                log_id, turn = self.document.log
                text = log_text([*self.document.messages, *self.run.transcript])
                await message_log.append(log_id, turn, text)
            if store is not None and self.version:
                await store.close(self.checkpoint_id, expected_version=self.version)
        self.run.observers.tell(RunFinished(checkpoint_id=self.run.checkpoint_id))

    async def _keep(self, waiting: Point) -> int:
        dump_new(self.run.transcript[len(self.document.transcript) :])
        document = replace(
            self.document,
            session=dict(self.run.session),
            counts=self.run.counts,
            transcript=tuple(self.run.transcript),
            waiting=waiting,
            topology=topology(self.setup.agent, waiting),
        )
        return await self._save(document)

    async def _save(self, document: RunDocument) -> int:
        store, fresh = self.setup.store, self.setup.fresh
        if store is None or not self.checkpoint_id:
            return 0
        text, status = document.to_text(), CheckpointStatus.PENDING
        version = await store.save(
            self.checkpoint_id, text, status=status, expected_version=self.version
        )
        fresh[self.checkpoint_id] = StoredCheckpoint(
            data=text, claim="", status=status, version=version, base=version, journal=()
        )
        return version

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._tell_failure(error)
            raise

    def _tell_failure(self, error: Exception) -> None:
        self.run.observers.tell(RunFailed(checkpoint_id=self.run.checkpoint_id, error=error))


def check_free(checkpoint_id: str, stored: StoredCheckpoint) -> None:
    """Make sure that a run has not ended, and that nobody works on it.

    Raises:
        CheckpointClosedError: It has ended.
        CheckpointBusyError: It is going on.
    """
    if stored.status is CheckpointStatus.CLOSED:
        raise CheckpointClosedError(checkpoint_id)
    if stored.status is CheckpointStatus.RUNNING:
        raise CheckpointBusyError(checkpoint_id)
