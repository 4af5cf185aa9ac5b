"""Records of the calls of open turns: which approvals let them run, and what becomes of them.

The end of a call follows its entry in the journal. After a crash in between, the runtime repeats
its notices when the run is recovered.
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
)
from bot.approvals.changes import redrawn
from bot.approvals.execution import (
    ENDED,
    execution_of,
    is_settled_doubt,
    lets_run,
    may_have_run,
    with_outcome,
)
from bot.ports.process import Clock
from bot.questions.base import question_of
from bot.questions.form import ask_of
from bot.questions.record import start_number_in
from bot.records.approval import Approval, ExecutionState
from bot.records.approval_queries import of_turn
from bot.records.thread import Thread
from bot.redaction.call import mask_title
from bot.redaction.mask import mask_text, mask_words
from bot.stores import Stores
from bot.words import say
from storage.documents import update, update_or_none
from storage.errors import StorageError

logger = logging.getLogger(__name__)

_READ = 4_000
"""Characters of a result to mask before cutting."""
_KEPT = 600
"""Characters of a result to store."""
_ENDS = {ToolOutcome.RAN: ExecutionState.ENDED, ToolOutcome.FAILED: ExecutionState.FAILED}
"""States by outcome of a call that ran; other outcomes did not run."""


@dataclass(frozen=True, slots=True)
class _News:
    """The state of the work at an address, from a notice of the runtime."""

    at: str
    state: ExecutionState
    text: str = ""
    number: int = 0
    is_cancellable: bool | None = None


@dataclass(slots=True)
class OpenTurn:
    """Approvals of one turn, as last read or written here under its lease.

    Attributes:
        approvals: By id.
        fence: Fencing token of the lease.
        numbers: Start numbers, by address.
        showing: Tasks that show that a call runs, by address.
        settled: Addresses of doubts that were settled without running the call.
    """

    approvals: dict[str, Approval] = field(default_factory=dict)
    fence: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    showing: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()

    def at(self, address: str) -> list[Approval]:
        """Return the approvals that run what is at an address: a call, or a step."""
        approvals = self.approvals.values()
        return [approval for approval in approvals if question_of(approval).lets_run(address)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecords:
    """Records the calls of open turns (`Recorder`).

    Args:
        storage: The database.
        clock: The time now.
        redraw: Starts the update of an approval's card, without waiting for it.
        quick: Cards of calls that end within this time show only the result.
    """

    storage: Stores
    clock: Clock
    redraw: Callable[[str], None]
    quick: timedelta = timedelta(0)
    _turns: dict[str, OpenTurn] = field(default_factory=dict)

    async def watch(self, thread: Thread, *, known: Iterable[Approval] | None = None) -> None:
        """Start to record the calls of a thread's newest turn.

        Args:
            thread: As claimed.
            known: Approvals whose calls may still run, read under that lease; None reads them.
        """
        if known is None:
            known = await of_turn(self.storage.approvals, thread.checkpoint_id)
        known = list(known)
        approvals = {approval.approval_id: approval for approval in known if lets_run(approval)}
        settled = frozenset(approval.address for approval in known if is_settled_doubt(approval))
        turn = OpenTurn(approvals, fence=thread.fence, settled=settled)
        self._turns[thread.checkpoint_id] = turn

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

    def forget(self, thread: Thread) -> None:
        """Stop recording the calls of a turn, unless a newer lease of this process records them."""
        turn = self._turns.get(thread.checkpoint_id)
        if turn is None or turn.fence > thread.fence:
            return
        del self._turns[thread.checkpoint_id]
        for task in turn.showing.values():
            task.cancel()

    def open_turn(self, checkpoint_id: str) -> OpenTurn:
        """Return a recorded turn; an empty one if it is not recorded."""
        return self._turns.get(checkpoint_id) or OpenTurn()

    async def show_start(self, turn: OpenTurn, address: str) -> None:
        """Let the cards show that a call runs; of a quick call they show only the result."""
        if self.quick:
            turn.showing[address] = asyncio.create_task(self._show(turn, address, after=self.quick))
        else:
            await self._show(turn, address)

    async def noted(self, notice: WorkNotice) -> None:
        """Store what became of a call on its approval.

        If an outcome cannot be stored, the run stops and the notice is repeated later, so the
        outcome is not lost with the journal.

        Raises:
            StorageError: The outcome could not be stored.
            CheckpointConflictError: The lease was lost.
        """
        turn, news = self._turns.get(notice.checkpoint_id), _news_in(notice)
        is_news = not isinstance(notice, WorkStarted) or not notice.is_news
        if turn is None or news is None or not is_news:
            return
        showing = turn.showing.pop(news.at, None)
        if showing is not None:
            showing.cancel()
            await asyncio.wait({showing})
        for approval in turn.at(news.at):
            await self._record(turn, approval, news, closes=news.state in ENDED)

    async def _show(self, turn: OpenTurn, address: str, *, after: timedelta = timedelta(0)) -> None:
        """Let the cards show that a call runs. A failure stops nothing."""
        if after:
            await asyncio.sleep(after.total_seconds())
        for approval in turn.at(address):
            name, write = approval.approval_id, partial(redrawn, now_ms=self.clock())
            try:
                newest = await update_or_none(self.storage.approvals, name, write, writes_due=True)
            except StorageError as error:
                logger.warning(
                    "could not show the start of a call on its card: %s",
                    error,
                    extra={"action": "run_untold"},
                )
                return
            if newest is not None:
                turn.approvals[name] = newest
                self.redraw(name)

    async def doubted(self, thread: Thread, address: str) -> None:
        """Mark an execution as in doubt, without the runtime."""
        await self._record_of_turn(thread, _News(address, ExecutionState.DOUBT))

    async def vouched(self, thread: Thread, address: str, text: str) -> None:
        """Store that people confirmed that a call in doubt has run."""
        await self._record_of_turn(thread, _News(address, ExecutionState.ENDED, text))

    async def ended(self, thread: Thread, notices: Iterable[WorkNotice]) -> None:
        """Finish a failed turn: started calls are in doubt, others will never run."""
        await self.watch(thread)
        turn = self._turns[thread.checkpoint_id]
        for news in filter(None, map(_news_in, notices)):
            for approval in turn.at(news.at):
                await self._record(turn, approval, news)
        for approval in list(turn.approvals.values()):
            waits = approval.open or approval.execution.parked is not None
            if may_have_run(approval):
                await self._record(turn, approval, _News("", ExecutionState.DOUBT))
            elif execution_of(approval) is None and waits and approval.tool.strip():
                # The turn is over, so a call that has not started never will.
                text = say("reason.not_started")
                await self._record(turn, approval, _News("", ExecutionState.LAPSED, text))
        self.forget(thread)

    async def _record_of_turn(self, thread: Thread, news: _News) -> None:
        known = await of_turn(self.storage.approvals, thread.checkpoint_id)
        approvals = {approval.approval_id: approval for approval in known if lets_run(approval)}
        turn = OpenTurn(approvals, fence=thread.fence)
        for approval in turn.at(news.at):
            await self._record(turn, approval, news)

    async def _record(
        self, turn: OpenTurn, approval: Approval, news: _News, *, closes: bool = False
    ) -> None:
        """Store what became of a call; drop it if the stored state is newer."""
        name = approval.approval_id
        write = partial(
            with_outcome,
            state=news.state,
            fence=turn.fence,
            now_ms=self.clock(),
            text=_shown(approval, news.text),
            number=news.number or turn.numbers.get(news.at, 0),
            is_cancellable=news.is_cancellable,
            closes=closes,
        )
        stored = await update(self.storage.approvals, name, write, writes_due=True)
        if stored is not None:
            self.redraw(name)
        turn.approvals[name] = stored or await self.storage.approvals.get(name)


def _news_in(notice: WorkNotice) -> _News | None:
    """Return what a notice says; None if it concerns no approved call."""
    match notice:
        case WorkStarted():
            return _News(
                notice.address,
                ExecutionState.STARTED,
                number=start_number_in(notice.frozen),
                is_cancellable=notice.is_cancellable,
            )
        case CallFinished() if notice.outcome is not ToolOutcome.ANSWERED:
            state = _ENDS.get(notice.outcome, ExecutionState.LAPSED)
            return _News(notice.address, state, notice.text)
        case NodeFinished():
            return _News(notice.address, ExecutionState.ENDED)
        case NodeFailed():
            return _News(notice.address, ExecutionState.FAILED, notice.error)
        case WorkInDoubt():
            return _News(notice.address, ExecutionState.DOUBT)
        case _:  # or people settled the doubt
            return None


def _shown(approval: Approval, text: str) -> str:
    """Mask and shorten a text. Masking comes first: half a secret is not recognized."""
    clean = mask_title(mask_text(text[:_READ]), approval.arguments, ask_of(approval).masks)
    return mask_words(clean, approval.arguments)[:_KEPT]
