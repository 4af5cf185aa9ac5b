"""A segment of a run: from its start or resume to its next interrupt or end.

`Setup` holds what all segments of a runner share, and starts them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

from cachetools import LRUCache
from pydantic_ai.messages import ModelMessage

from agents.agent import Agent
from agents.core.asking.limits import ModelBudget
from agents.core.cancel import CancelToken
from agents.core.checkpoint import (
    CheckpointStatus,
    CheckpointStore,
    MessageLog,
    StoredCheckpoint,
)
from agents.core.codec import read_back, to_text
from agents.core.errors import (
    AgentConfigError,
    CheckpointBusyError,
    CheckpointClosedError,
    CheckpointConflictError,
    ModelError,
    ResumeError,
)
from agents.core.events import RunCancelled, RunFailed, RunFinished, RunInterrupted
from agents.core.journal import Journal
from agents.core.messages import dump_new, log_text, read_log
from agents.core.observers import Observers, Recorder
from agents.core.pending import InterruptContext, InterruptNode
from agents.core.scope import BeforeStart, RunContext, SessionValues
from agents.policy.house import House
from agents.runs.answers import find_stopped
from agents.runs.document import Claim, OpenRun, RunDocument
from agents.runs.topology import topology

_FRESH = 200
"""Capacity of a runner's cache of checkpoints; each has a few kilobytes."""
_FRESH_SIZE = 4_000_000
"""Capacity of that cache in characters, unless a single run is larger."""


def _size(run: OpenRun) -> int:
    return min(max(run.size, _FRESH_SIZE // _FRESH), _FRESH_SIZE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The configuration of a runner.

    Attributes:
        message_log: Store of the messages of earlier turns.
        every_step: Whether each step is stored.
        new_id: Creates ids of interrupts.
        before_start: Checks each gated call before it starts; None allows all.
        model_timeout: How long a model may send nothing; None means no limit.
        tool_timeout: Longest time of a call, for tools without their own; None means no limit.
        budget: Limits of what models may use; None means no limits.
        recorder: Records approved work for the application; None records nothing.
        house: The application's policy or None.
        epoch: Part of idempotency keys; empty keeps the epoch of the document.
        fresh: Cache of checkpoints that this process wrote or read last, which saves a read on
            resume. It may be stale; the claim then fails.
    """

    agent: Agent
    store: CheckpointStore | None
    message_log: MessageLog | None
    every_step: bool
    observers: Observers
    new_id: Callable[[], str]
    before_start: BeforeStart | None = None
    model_timeout: timedelta | None = None
    tool_timeout: timedelta | None = None
    budget: ModelBudget | None = None
    recorder: Recorder | None = None
    house: House | None = None
    epoch: str = ""
    fresh: LRUCache[str, OpenRun] = field(
        default_factory=lambda: LRUCache(_FRESH_SIZE, getsizeof=_size)
    )

    async def history(self, document: RunDocument) -> tuple[ModelMessage, ...]:
        """Read the messages of earlier turns from the log."""
        if document.log is None:
            return ()
        if self.message_log is None:
            raise AgentConfigError("`log` needs a message log: `Runner(agent, message_log=…)`")
        log_id, turn = document.log
        if turn <= 1:  # nothing comes before the first
            return ()
        entries = await self.message_log.load(log_id, before_turn=turn)
        return tuple(read_log(entries, log_id=log_id))

    async def begin(self, run_id: str, document: RunDocument) -> OpenRun:
        """Check that a run's id is unused, and reserve it if each step is stored."""
        data = document.to_json()
        text = to_text(data)
        # An unreadable document must fail now, not at the resume.
        read_back(text, RunDocument.from_text)
        version, status = 0, CheckpointStatus.RUNNING
        if self.store is not None and run_id:
            if not self.every_step:
                # The first interrupt writes the checkpoint, and finds any conflict then.
                await self._check_new(self.store, run_id)
            else:
                version = await self._save_new_run(self.store, run_id, text)
        stored = StoredCheckpoint(
            data=text, claim="", status=status, version=version, base=version, journal=()
        )
        return OpenRun(checkpoint_id=run_id, stored=stored, document=document, data=data)

    async def _check_new(self, store: CheckpointStore, run_id: str) -> None:
        stored = await store.load(run_id)
        if stored is not None:
            check_free(run_id, stored)
            raise CheckpointConflictError(
                run_id, "this run waits for answers; resume it, or begin a run with another id"
            )

    async def _save_new_run(self, store: CheckpointStore, run_id: str, text: str) -> int:
        """Save a new run. Only if that fails, read why: a second command is rarely needed."""
        try:
            status = CheckpointStatus.RUNNING
            return await store.save(run_id, text, status=status, expected_version=0)
        except CheckpointConflictError:
            await self._check_new(store, run_id)
            raise

    def segment(
        self,
        opened: OpenRun,
        document: RunDocument,
        *,
        cancel: CancelToken | None,
        claimed: Claim | None = None,
    ) -> RunSession:
        """Create a segment that starts from a document. Nothing runs yet.

        `opened` has the history of the run; its id may be empty. `claimed` is the stored claim, if
        this process has just claimed the run.
        """
        run_id, stored, was_claimed = opened.checkpoint_id, opened.stored, claimed is not None
        claim = claimed if claimed is not None else Claim.from_text(stored.claim)
        document = document.in_epoch(claim.epoch or document.epoch)
        journal = Journal(
            self.store,
            run_id,
            base=stored.base,
            entries=stored.journal,
            every_step=self.every_step,
            recorder=self.recorder,
        )
        run = RunContext(
            checkpoint_id=run_id,
            new_id=self.new_id,
            journal=journal,
            session=SessionValues({**document.session, **claim.session}),
            waiting=document.waiting,
            answers=claim.answers,
            # A claim that an earlier process stored was not checked in this process.
            checked=frozenset(claim.answers) if was_claimed else frozenset(),
            untargeted=claim.untargeted,
            counts=dict(document.counts),
            transcript=list(document.transcript),
            streaming=document.streaming,
            cancel=cancel or CancelToken(),
            observers=self.observers,
            before_start=self.before_start,
            model_timeout=self.model_timeout,
            tool_timeout=self.tool_timeout,
            budget=self.budget,
            house=self.house,
            epoch=document.epoch,
            epochs=document.epochs,
        )
        return RunSession(
            setup=self,
            checkpoint_id=run_id if self.store else "",
            document=document,
            run=run,
            opened=opened,
            was_claimed=was_claimed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A segment that did not end the run.

    Attributes:
        version: Version of the checkpoint; 0 if the run is not stored.
        contexts: The pending interrupts.
        was_stopped: Whether the run was cancelled. Other interrupts may be pending, too.
        unused: Errors for answers that no component used.
    """

    version: int
    contexts: tuple[InterruptContext, ...]
    was_stopped: bool
    unused: tuple[ResumeError, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSession:
    """A segment in progress, and how it is stored at its end.

    Attributes:
        setup: Configuration of the runner.
        checkpoint_id: Empty if the run is not stored.
        document: The document that it began with.
        opened: The checkpoint, with version 0 if none exists yet.
        was_claimed: Whether this process has just claimed it.
    """

    setup: Setup
    checkpoint_id: str
    document: RunDocument
    run: RunContext
    opened: OpenRun
    was_claimed: bool = False

    @property
    def version(self) -> int:
        """Return the version of the checkpoint; 0 if none exists yet."""
        return self.opened.stored.version

    async def keep(self, waiting: InterruptNode) -> Kept:
        """Store the pending interrupts and return them as read back, for people to see."""
        with self._failures():
            # People see the interrupts as a later process will read them.
            waiting = waiting.stored()
            version = await self._keep(waiting)
        # A cancelled run may have other pending interrupts, too.
        was_stopped = self.run.cancel.mode is not None or bool(find_stopped(waiting))
        kind = RunCancelled if was_stopped else RunInterrupted
        contexts = tuple(waiting.contexts())
        self.run.observers.tell(kind(checkpoint_id=self.run.checkpoint_id, contexts=contexts))
        # A cancelled run may not have reached the components that were answered.
        unused = () if was_stopped else tuple(self.run.unused(waiting))
        return Kept(version=version, contexts=contexts, was_stopped=was_stopped, unused=unused)

    async def fail(self, error: Exception) -> None:
        """Make the run pending again after an error, if this segment has stored nothing."""
        journal = self.run.journal
        if isinstance(error, ModelError):  # agents and hooks with an answer may retry the model
            with contextlib.suppress(Exception):
                await journal.release_answered()
        # After a failed write, another process may own the run. A save would delete its journal,
        # with the start of a call that is running.
        if self.was_claimed and not journal.has_entries and not journal.has_failed:
            # The caller must see the original error; `recover` works even if this fails.
            with contextlib.suppress(Exception):
                await self._save(self.document)
        self._tell_failure(error)

    async def finish(self) -> None:
        """Append the turn to its log, then close the checkpoint. Both are idempotent."""
        with self._failures():
            # The log first: after a crash in between, both are repeated and the log ignores the
            # second append.
            message_log, store = self.setup.message_log, self.setup.store
            if self.document.log is not None and message_log is not None:
                log_id, turn = self.document.log
                text = log_text([*self.document.messages, *self.run.transcript])
                await message_log.append(log_id, turn, text)
            if store is not None and self.version:
                await store.close(self.checkpoint_id, expected_version=self.version)
        self.run.observers.tell(RunFinished(checkpoint_id=self.run.checkpoint_id))

    async def _keep(self, waiting: InterruptNode) -> int:
        # Fails for unstorable messages before anything is written.
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
        """Write the changes of the document, or the whole document if that is cheaper."""
        store, opened = self.setup.store, self.opened
        if store is None or not self.checkpoint_id:
            return 0
        data = document.to_json(opened)
        saved = await opened.amended(store, document, data)
        if saved is None:
            saved = await opened.replaced(store, document, data)
        # The next resume in this process then needs no read.
        self.setup.fresh[self.checkpoint_id] = saved
        return saved.stored.version

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
    """Check that a run has not ended and is not in progress."""
    if stored.status is CheckpointStatus.CLOSED:
        raise CheckpointClosedError(checkpoint_id)
    if stored.status is CheckpointStatus.RUNNING:
        raise CheckpointBusyError(checkpoint_id)
