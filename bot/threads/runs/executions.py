"""The record of what people let run: its start in the audit, what became of it on its approval.

The runtime tells it (`agents.core.observers.Recorder`): without the audit entry, no call can
start. What is in the journal is followed by the record of the approval, whose card is drawn again.
A crash between the two is made good when the run is recovered, as the runtime tells it once more
then. Nothing of a call is decided here.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

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
from bot.approvals.execution import ENDED, Run, RunState, is_settled_doubt, lets_run, run_of
from bot.audit.entries import TakesEntries, note_start
from bot.ports.process import Clock
from bot.questions.base import question_of
from bot.questions.form import ask_of
from bot.redaction.call import mask_title
from bot.redaction.mask import mask_text, mask_words
from bot.words import say
from storage.errors import StorageError
from storage.ports.approvals import ApprovalStore
from storage.records import Approval

logger = logging.getLogger(__name__)

_READ = 4_000
"""Characters of a result that are masked before it is cut."""
_KEPT = 600
"""Characters of a result that a record keeps."""
_ENDS = {ToolOutcome.RAN: RunState.RAN, ToolOutcome.FAILED: RunState.FAILED}
"""The end of a call that ran; with another outcome, something kept it from running."""


@dataclass(frozen=True, slots=True)
class ExecutionUpdate:
    """The news in a notice of the runtime about a call or a step."""

    at: str
    state: RunState
    text: str = ""


@dataclass(slots=True)
class _Watched:
    """The approvals of one turn, as last read or written here."""

    approvals: dict[str, Approval] = field(default_factory=dict)
    starting: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()

    def at(self, address: str) -> list[Approval]:
        """Those that let run what stands at an address."""
        return [one for one in self.approvals.values() if _is_about(one, address)]


@dataclass(frozen=True, slots=True)
class ExecutionRecorder:
    """Records starts in the audit and on approvals; see `agents.core.observers.Recorder`.

    Args:
        approvals: Where they are kept.
        audit: Where starts are noted.
        clock: The time now.
        redraw: Starts to draw the card of an approval again, without waiting for it.
        quick: Of a call that takes no longer, only what came of it is put on its approval. That it
            runs says its journal in any case.
    """

    approvals: ApprovalStore
    audit: TakesEntries
    clock: Clock
    redraw: Callable[[str], None]
    quick: timedelta = timedelta(0)
    _turns: dict[str, _Watched] = field(default_factory=dict)

    async def watch(self, checkpoint_id: str, *, known: Iterable[Approval] | None = None) -> None:
        """Follow what becomes of what people let run in a turn.

        Args:
            checkpoint_id: Of the turn; its lease is held.
            known: All approvals of the turn whose calls may still run, read under that lease; they
                are looked up when None.
        """
        if known is None:
            known = await self.approvals.of_turn(checkpoint_id)
        known = list(known)
        found = {one.approval_id: one for one in known if lets_run(one)}
        settled = frozenset(one.address for one in known if is_settled_doubt(one))
        self._turns[checkpoint_id] = _Watched(found, settled=settled)

    def is_settled(self, checkpoint_id: str, address: str) -> bool:
        """Whether a call was in doubt, and has its result without running again."""
        turn = self._turns.get(checkpoint_id)
        return turn is not None and address in turn.settled

    def watched(self, checkpoint_id: str) -> list[Approval]:
        """Return the approvals followed in a turn, as on record: this process alone writes them."""
        turn = self._turns.get(checkpoint_id)
        return list(turn.approvals.values()) if turn is not None else []

    def forget(self, checkpoint_id: str) -> None:
        """Follow that turn no more."""
        turn = self._turns.pop(checkpoint_id, None)
        for task in turn.starting.values() if turn is not None else ():
            task.cancel()

    async def starting(self, start: WorkStarting) -> None:
        """Put a start into the audit: what cannot be written there does not start.

        Raises:
            StorageError: It could not be written.
        """
        await note_start(self.audit, start, self.clock())

    async def noted(self, notice: WorkNotice) -> None:
        """Put on the card what became of something.

        What a call came to is never dropped with its journal before its card can tell of it: when
        that cannot be put on record, the run stops, and is told of it again. A start that cannot be
        put on record stops nothing: a call that is marked and does not run is in doubt.

        Raises:
            StorageError: It could not be put on record.
        """
        turn, news = self._turns.get(notice.checkpoint_id), _news_in(notice)
        if turn is None or news is None:
            return
        starting = turn.starting.pop(news.at, None)
        if starting is not None:  # what it may be writing now is written over
            starting.cancel()
            await asyncio.wait({starting})
        if not isinstance(notice, WorkStarted):
            await self._take(turn, news, closes=news.state in ENDED)
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

    async def _take(self, turn: _Watched, news: ExecutionUpdate, *, closes: bool = False) -> None:
        for approval in turn.at(news.at):
            await self._tell(turn, approval, news, closes=closes)

    async def doubted(self, checkpoint_id: str, address: str) -> None:
        """Nobody can know whether what people let run there has run; the runtime is not asked."""
        await self._tell_all(checkpoint_id, ExecutionUpdate(address, RunState.DOUBT))

    async def vouched(self, checkpoint_id: str, address: str, text: str) -> None:
        """People say that what stood in doubt there has run."""
        await self._tell_all(checkpoint_id, ExecutionUpdate(address, RunState.RAN, text))

    async def ended(self, checkpoint_id: str, notices: Iterable[WorkNotice]) -> None:
        """The turn is given up: what had started is in doubt, what had not never will."""
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
                # Of what is closed, an earlier release may have seen the end, and kept nothing.
                await self._tell(
                    watched,
                    approval,
                    ExecutionUpdate("", RunState.STOPPED, say("reason.not_started")),
                )
        self.forget(checkpoint_id)

    async def _tell_all(self, checkpoint_id: str, news: ExecutionUpdate) -> None:
        known = await self.approvals.of_turn(checkpoint_id)
        watched = _Watched({one.approval_id: one for one in known if lets_run(one)})
        for approval in watched.at(news.at):
            await self._tell(watched, approval, news)

    async def _tell(
        self, watched: _Watched, approval: Approval, news: ExecutionUpdate, *, closes: bool = False
    ) -> None:
        """Put news on record; those that are older than what is there are dropped.

        Args:
            watched: What is followed in the turn.
            approval: As last read.
            news: What became of what it let run.
            closes: Whether nothing waits for its answer any more: its call has ended in a run that
                goes on. That it is decided, and how, is in the audit since before the call began.
        """
        while True:
            run = run_of(approval)
            if not _is_newer(run, news):
                return
            now = self.clock()
            text = _shown(approval, news.text)
            new = Run(state=news.state, text=text, at_ms=now).to_text()
            name = approval.approval_id
            kept = await self.approvals.mark_run(
                name, was=approval.run_json, run_json=new, now_ms=now, closes=closes
            )
            newest = kept or await self.approvals.get(name)
            watched.approvals[name] = newest
            if kept is not None:
                self.redraw(name)
                return
            if newest.run_json == approval.run_json:
                return  # it was withdrawn meanwhile: nothing was let run
            approval = newest


def _is_newer(run: Run | None, news: ExecutionUpdate) -> bool:
    if run is None:
        return True
    if run.state in ENDED or run.state is news.state:
        return False
    if run.state is RunState.DOUBT:  # only people end a doubt: it ran, or it runs once more
        return news.state in {RunState.RUNNING, RunState.RAN}
    return True


def _news_in(notice: WorkNotice) -> ExecutionUpdate | None:
    """Return the news in a notice; None when it is about nothing that people let run."""
    match notice:
        case WorkStarted():
            return ExecutionUpdate(notice.address, RunState.RUNNING)
        case CallFinished() if notice.outcome is not ToolOutcome.ANSWERED:
            state = _ENDS.get(notice.outcome, RunState.STOPPED)
            return ExecutionUpdate(notice.address, state, notice.text)
        case NodeFinished():
            return ExecutionUpdate(notice.address, RunState.RAN)
        case NodeFailed():
            return ExecutionUpdate(notice.address, RunState.FAILED, notice.error)
        case WorkInDoubt():
            return ExecutionUpdate(notice.address, RunState.DOUBT)
        case _:  # or people said something in place of a run
            return None


def _is_about(approval: Approval, address: str) -> bool:
    """Whether an approval let run what stands at an address: its call, or the step it stopped."""
    return question_of(approval).lets_run(address)


def _shown(approval: Approval, text: str) -> str:
    """The beginning of a text, masked before it is cut: half of a secret is not recognised."""
    try:
        arguments = json.loads(approval.arguments_json)
    except (ValueError, RecursionError):
        arguments = {}
    clean = mask_title(mask_text(text[:_READ]), arguments, ask_of(approval).masks)
    return mask_words(clean, arguments)[:_KEPT]
