"""Record executions: the start in the audit, the outcome on the approval.

Called by the runtime (`agents.core.observers.Recorder`). A call cannot start without its audit
entry. After the run's journal, the approval is updated and its card redrawn. After a crash in
between, the runtime repeats its notices when the run is recovered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from agents.core.observers import (
    CallFinished,
    NodeFailed,
    NodeFinished,
    ToolOutcome,
    WorkInDoubt,
    WorkNotice,
    WorkStarted,
    WorkStarting,
)
from bot.approvals.changes import with_run
from bot.approvals.execution import ENDED, is_settled_doubt, lets_run, run_of
from bot.audit.entries import TakesEntries, note_start
from bot.ports.process import Clock
from bot.questions.base import question_of
from bot.questions.form import ask_of
from bot.records.approval import Approval, Run, RunState
from bot.records.approval_queries import ApprovalCollection, of_turn
from bot.redaction.call import mask_title
from bot.redaction.mask import mask_text, mask_words
from bot.words import say
from storage.documents import update_or_none
from storage.errors import StorageError

logger = logging.getLogger(__name__)

_READ = 4_000
"""Characters of a result to mask before cutting."""
_KEPT = 600
"""Characters of a result to store."""
_ENDS = {ToolOutcome.RAN: RunState.RAN, ToolOutcome.FAILED: RunState.FAILED}
"""States by outcome of a call that ran; other outcomes did not run."""


@dataclass(frozen=True, slots=True)
class ExecutionUpdate:
    """Update of an execution, from a notice of the runtime."""

    at: str
    state: RunState
    text: str = ""
    is_cancellable: bool = False


@dataclass(slots=True)
class _Watched:
    """Approvals of one turn, as last read or written here."""

    approvals: dict[str, Approval] = field(default_factory=dict)
    starting: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()

    def at(self, address: str) -> list[Approval]:
        """Return the approvals that run what is at an address: a call, or a step."""
        approvals = self.approvals.values()
        return [approval for approval in approvals if question_of(approval).lets_run(address)]


@dataclass(frozen=True, slots=True)
class ExecutionRecorder:
    """Records executions; see `agents.core.observers.Recorder`.

    Args:
        approvals: Stored approvals.
        audit: Records starts.
        clock: The time now.
        redraw: Starts the update of an approval's card, without waiting for it.
        quick: Calls that end within this time store only their result on the approval. The journal
            stores their start in any case.
    """

    approvals: ApprovalCollection
    audit: TakesEntries
    clock: Clock
    redraw: Callable[[str], None]
    quick: timedelta = timedelta(0)
    _turns: dict[str, _Watched] = field(default_factory=dict)

    async def watch(self, checkpoint_id: str, *, known: Iterable[Approval] | None = None) -> None:
        """Start to record the executions of a turn.

        Args:
            checkpoint_id: Checkpoint of the turn, whose lease is owned.
            known: Approvals whose calls may still run, read under that lease; None reads them.
        """
        if known is None:
            known = await of_turn(self.approvals, checkpoint_id)
        known = list(known)
        approvals = {approval.approval_id: approval for approval in known if lets_run(approval)}
        settled = frozenset(approval.address for approval in known if is_settled_doubt(approval))
        self._turns[checkpoint_id] = _Watched(approvals, settled=settled)

    def is_settled(self, checkpoint_id: str, address: str) -> bool:
        """Whether a doubt about the call was settled without running the call again."""
        turn = self._turns.get(checkpoint_id)
        return turn is not None and address in turn.settled

    def watched(self, checkpoint_id: str) -> list[Approval]:
        """Return the recorded approvals of a turn as stored; no other process writes them."""
        turn = self._turns.get(checkpoint_id)
        return list(turn.approvals.values()) if turn is not None else []

    def title_at(self, checkpoint_id: str, address: str) -> str:
        """Return the title of the approved call at an address; empty without an approval."""
        turn = self._turns.get(checkpoint_id)
        approvals = turn.at(address) if turn is not None else []
        decided = (
            approvals[0].decision.title if approvals and approvals[0].decision is not None else ""
        )
        return decided or (approvals[0].title if approvals else "")

    def forget(self, checkpoint_id: str) -> None:
        """Stop recording the executions of a turn."""
        turn = self._turns.pop(checkpoint_id, None)
        for task in turn.starting.values() if turn is not None else ():
            task.cancel()

    async def starting(self, start: WorkStarting) -> None:
        """Record a start in the audit; without the entry, the call does not start.

        Raises:
            StorageError: The entry could not be written.
        """
        await note_start(self.audit, start, self.clock())

    async def noted(self, notice: WorkNotice) -> None:
        """Store an execution's update on its approval.

        If an outcome cannot be stored, the run stops and the notice is repeated later, so the
        outcome is not lost with the journal. A start that cannot be stored stops nothing: a started
        call without an outcome is in doubt.

        Raises:
            StorageError: The outcome could not be stored.
        """
        turn, news = self._turns.get(notice.checkpoint_id), _news_in(notice)
        if turn is None or news is None:
            return
        starting = turn.starting.pop(news.at, None)
        if starting is not None:  # a concurrent write of the start is overwritten
            starting.cancel()
            await asyncio.wait({starting})
        if not isinstance(notice, WorkStarted):
            has_started = starting is not None
            await self._take(turn, news, closes=news.state in ENDED, has_started=has_started)
        elif not (notice.is_news and self.quick):
            await self._tell_start(turn, news)
        elif turn.at(news.at):
            turn.starting[news.at] = asyncio.create_task(self._tell_later(turn, news))

    async def _tell_later(self, turn: _Watched, news: ExecutionUpdate) -> None:
        await asyncio.sleep(self.quick.total_seconds())
        await self._tell_start(turn, news)

    async def _tell_start(self, turn: _Watched, news: ExecutionUpdate) -> None:
        try:
            await self._take(turn, news)
        except StorageError as error:
            logger.warning(
                "could not record the start of a call for its card: %s",
                error,
                extra={"action": "run_untold"},
            )

    async def _take(
        self,
        turn: _Watched,
        news: ExecutionUpdate,
        *,
        closes: bool = False,
        has_started: bool = False,
    ) -> None:
        for approval in turn.at(news.at):
            await self._tell(turn, approval, news, closes=closes, has_started=has_started)

    async def doubted(self, checkpoint_id: str, address: str) -> None:
        """Mark an execution as in doubt, without the runtime."""
        await self._tell_all(checkpoint_id, ExecutionUpdate(address, RunState.DOUBT))

    async def vouched(self, checkpoint_id: str, address: str, text: str) -> None:
        """Store that people confirmed that a call in doubt has run."""
        await self._tell_all(checkpoint_id, ExecutionUpdate(address, RunState.RAN, text))

    async def ended(self, checkpoint_id: str, notices: Iterable[WorkNotice]) -> None:
        """Finish a failed turn: started calls are in doubt, others will never run."""
        await self.watch(checkpoint_id)
        watched = self._turns[checkpoint_id]
        for news in map(_news_in, notices):
            if news is not None:
                await self._take(watched, news)
        for approval in list(watched.approvals.values()):
            run = run_of(approval)
            if run is not None and run.state is RunState.RUNNING:
                await self._tell(watched, approval, ExecutionUpdate("", RunState.DOUBT))
            elif run is None and approval.open and approval.tool.strip():
                # The turn is over, so a call that has not started never will.
                await self._tell(
                    watched,
                    approval,
                    ExecutionUpdate("", RunState.STOPPED, say("reason.not_started")),
                )
        self.forget(checkpoint_id)

    async def _tell_all(self, checkpoint_id: str, news: ExecutionUpdate) -> None:
        known = await of_turn(self.approvals, checkpoint_id)
        watched = _Watched(
            {approval.approval_id: approval for approval in known if lets_run(approval)}
        )
        for approval in watched.at(news.at):
            await self._tell(watched, approval, news)

    async def _tell(
        self,
        watched: _Watched,
        approval: Approval,
        news: ExecutionUpdate,
        *,
        closes: bool = False,
        has_started: bool = False,
    ) -> None:
        """Store an update; drop it if the stored state is newer.

        Args:
            watched: The recorded turn.
            approval: As last read.
            news: The update.
            closes: Whether the interrupt is gone, because its call ended in a run that continues.
                The decision has been in the audit since before the start.
            has_started: Whether the call just ran: the start of a quick call is not stored.
        """
        while True:
            run = run_of(approval)
            if not _is_newer(run, news, has_started=has_started):
                return
            now = self.clock()
            text = _shown(approval, news.text)
            new = Run(state=news.state, text=text, at_ms=now, is_cancellable=news.is_cancellable)
            name = approval.approval_id
            was = approval.run
            write = partial(with_run, run=new, was=was, now_ms=now, closes=closes)
            kept = await update_or_none(self.approvals, name, write, writes_due=True)
            newest = kept or await self.approvals.get(name)
            watched.approvals[name] = newest
            if kept is not None:
                self.redraw(name)
                return
            if not lets_run(newest):
                return  # withdrawn meanwhile
            approval = newest  # others wrote first, for as long as one update waits


def _is_newer(run: Run | None, news: ExecutionUpdate, *, has_started: bool) -> bool:
    if run is None:
        return True
    if run.state in ENDED or run.state is news.state:
        return False
    if run.state is RunState.DOUBT:  # only people settle a doubt, or let the call run again
        return has_started or news.state in {RunState.RUNNING, RunState.RAN}
    return True


def _news_in(notice: WorkNotice) -> ExecutionUpdate | None:
    """Return the update in a notice; None if it concerns no approved call."""
    match notice:
        case WorkStarted():
            running = RunState.RUNNING
            return ExecutionUpdate(notice.address, running, is_cancellable=notice.is_cancellable)
        case CallFinished() if notice.outcome is not ToolOutcome.ANSWERED:
            state = _ENDS.get(notice.outcome, RunState.STOPPED)
            return ExecutionUpdate(notice.address, state, notice.text)
        case NodeFinished():
            return ExecutionUpdate(notice.address, RunState.RAN)
        case NodeFailed():
            return ExecutionUpdate(notice.address, RunState.FAILED, notice.error)
        case WorkInDoubt():
            return ExecutionUpdate(notice.address, RunState.DOUBT)
        case _:  # or people settled the doubt
            return None


def _shown(approval: Approval, text: str) -> str:
    """Mask and shorten a text. Masking comes first: half a secret is not recognized."""
    clean = mask_title(mask_text(text[:_READ]), approval.arguments, ask_of(approval).masks)
    return mask_words(clean, approval.arguments)[:_KEPT]
