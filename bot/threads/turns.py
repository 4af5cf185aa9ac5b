"""Turns: start, resume and recover an agent's run."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property, partial

from pydantic_ai.messages import ModelResponse

from agents import InterruptContext, ResumeDataError, ResumeError, ResumeParams, Runner
from agents.core.cancel import CancelInfo
from agents.core.checkpoint import CheckpointStatus
from agents.core.errors import NothingPendingError, UnknownInterruptError
from agents.core.interrupt import TaskGroupInfo
from agents.core.journal import notices_in
from agents.core.messages import read_log, text_of
from agents.core.observers import WorkStarted
from agents.runs.document import Claim, OpenRun, has_last_answer
from bot.approvals.due.worker import ApprovalWorker
from bot.approvals.execution import has_ended
from bot.audit.entries import resume_entries
from bot.errors import RunEndedError
from bot.observability.events import TellEvent, nobody
from bot.people.quorum import QuorumCheck
from bot.policy.demands import ends_run
from bot.ports.notifier import Notifier
from bot.ports.process import Clock, Spawn
from bot.ports.threads import Presence, TaskBoard
from bot.questions.base import answer_from, question_of
from bot.questions.record import Rules, approval_id_of
from bot.records.approval import Approval, Kind, Status
from bot.records.approval_queries import get_all, newest_of, open_of
from bot.records.messages import Message
from bot.records.thread import Thread
from bot.stores import Stores
from bot.threads.closing import ApprovalClosing, RunTermination, set_turn
from bot.threads.halts import TurnHalts
from bot.threads.outbox import Outbox
from bot.threads.requesters import Requesters, speakers_of
from bot.threads.requests import Asking, PendingApprovals
from bot.threads.runs.call_records import CallRecords
from bot.threads.runs.calls import Calls, parked_by
from bot.threads.runs.following import (
    UNSEEN,
    RunObserver,
    RunResult,
    StoppableRun,
    StoppableRuns,
    going_on,
    thinking,
    title_of,
)
from bot.threads.runs.streaming import SaidBefore, a_post
from bot.threads.runs.task_board import NO_BOARD
from bot.threads.thread_pass import ThreadPass
from bot.words import say

logger = logging.getLogger(__name__)


class Progress(Enum):
    """Result of a step of a turn."""

    AGAIN = auto()  # progress was made; continue
    WAITING = auto()  # people must act
    ENDED = auto()  # the turn has ended


@dataclass(frozen=True)
class Turns:
    """Runs the agent of a thread, turn by turn, under the thread's lease."""

    storage: Stores
    runners: Callable[[Thread], Awaitable[Runner]]
    attendance: ApprovalWorker
    quorum_check: QuorumCheck
    notifier: Notifier
    outbox: Outbox
    rules: Rules
    clock: Clock
    spawn: Spawn
    calls: Calls
    call_records: CallRecords
    halts: TurnHalts
    tell: TellEvent = nobody
    stopping: StoppableRuns = field(default_factory=StoppableRuns)
    presence: Presence = UNSEEN
    board: TaskBoard = NO_BOARD

    @cached_property
    def _settlement(self) -> ApprovalClosing:
        return ApprovalClosing(self.storage, self.attendance, self.clock, self.spawn)

    @cached_property
    def ending(self) -> RunTermination:
        """Ends turns that cannot continue or were stopped."""
        return RunTermination(
            storage=self.storage,
            settlement=self._settlement,
            requesters=self._requesters,
            call_records=self.call_records,
            outbox=self.outbox,
            clock=self.clock,
            runners=self.runners,
        )

    @cached_property
    def _requesters(self) -> Requesters:
        return Requesters(self.storage)

    @cached_property
    def _asking(self) -> Asking:
        return Asking(
            storage=self.storage,
            attendance=self.attendance,
            quorum_check=self.quorum_check,
            rules=self.rules,
            requesters=self._requesters,
            clock=self.clock,
            spawn=self.spawn,
        )

    @cached_property
    def _follower(self) -> RunObserver:
        return RunObserver(
            storage=self.storage,
            notifier=self.notifier,
            outbox=self.outbox,
            clock=self.clock,
            call_records=self.call_records,
            tell=self.tell,
            presence=self.presence,
            board=self.board,
            spawn=self.spawn,
        )

    def begin(self, work: ThreadPass) -> None:
        """Begin the next turn: its first step takes messages from the inbox."""
        work.thread = work.thread.changed(turn=work.thread.turn + 1, turn_open=True)
        work.is_new_turn, work.messages, work.running, work.decided = True, None, (), 0

    async def open_left(self, work: ThreadPass) -> bool:
        """Open the next turn if a crashed process has taken messages for it.

        Returns:
            Whether such messages exist.

        Raises:
            CheckpointConflictError: The lease was lost.
        """
        thread = work.thread
        if work.left is not None or thread.turn_open:
            return False
        turn = thread.turn + 1
        if not await self.storage.inbox.of_turn(thread.thread_id, turn):
            return False
        work.thread = await set_turn(self.storage.threads, thread, turn=turn, turn_open=True)
        return True

    async def end(self, work: ThreadPass) -> None:
        """Record that the turn is over."""
        work.thread = await set_turn(
            self.storage.threads,
            work.thread,
            turn=work.thread.turn,
            turn_open=False,
            said=work.kept_text,
        )
        work.is_new_turn, work.messages, work.running = False, None, ()

    async def close_answered(self, thread: Thread) -> None:
        """Close approvals of ended turns."""
        if thread.turn:  # no approvals before the first turn
            await self._settlement.close(thread)

    async def has_answered(self, thread: Thread) -> bool:
        """Return whether the agent has given its last answer in the open turn.

        Raises:
            CheckpointDecodeError: The journal of its run is damaged.
        """
        stored = await self.storage.checkpoints.load(thread.checkpoint_id)
        if stored is None or not thread.turn_open:
            return False
        return stored.status is CheckpointStatus.CLOSED or has_last_answer(stored.journal)

    async def clear_status(self, thread: Thread) -> None:
        """Remove the typing status that a crashed process may have left."""
        taken = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        await self.presence.clear(thread, message_ts=taken[-1].ts if taken else "", is_left=True)

    async def step(self, work: ThreadPass, admitted: Sequence[str]) -> Progress:
        """Continue the open turn from its records.

        Raises:
            AgentError: The runtime cannot continue.
            DeliveryError: Slack refused a message.
            DirectoryError: The channel's agent could not be looked up.
            RunEndedError: A request expired and its rule ends the run.
        """
        thread, work.parked_by = work.thread, ""
        if work.is_new_turn:  # if another process has stored its run, ours is refused
            return await self._start(work, admitted)
        if work.left is not None:  # no other process had the lease since: take the run from memory
            recalled = (await self.runners(thread)).recall(thread.checkpoint_id)
            if recalled is not None and recalled.status is CheckpointStatus.PENDING:
                return await self._resume(work, recalled)
        stored = await self.storage.checkpoints.load(thread.checkpoint_id)
        if stored is None:
            return await self._start(work, admitted)
        if stored.status is CheckpointStatus.CLOSED:
            work.decided = None
            await self._settlement.close(thread)
            await self._break_silence(thread)
            if thread.depth and not work.said:
                work.said = await self._answer_of(thread)
            return Progress.ENDED
        run = OpenRun.of(thread.checkpoint_id, stored)
        # For the next pass, if no other process saved a run.
        (await self.runners(thread)).remember(run)
        if stored.status is CheckpointStatus.RUNNING:
            return await self._recover(work, run)
        return await self._resume(work, run)

    async def _start(self, work: ThreadPass, admitted: Sequence[str]) -> Progress:
        """Run the agent on new messages, or on those of an earlier attempt.

        A process that began the turn may be suspended and store its run at any time. Messages are
        therefore taken once, and later ones wait for the next turn. A suspended process cannot
        begin a turn after others took over. The turn is opened after its messages are taken; before
        that no run can be stored.
        """
        work.messages = messages = await self._taken(work, admitted)
        if not messages:
            return Progress.ENDED
        runner = await self.runners(work.thread)
        grown = await self._requesters.grown(work, (message.user_id for message in messages))
        turn = work.thread.turn
        work.thread = await set_turn(  # opens a new turn, and checks the lease
            self.storage.threads,
            work.thread,
            turn=turn,
            turn_open=True,
            requesters=grown,
        )
        work.is_new_turn, work.running = False, ()
        title = title_of(messages[0].text)
        self.presence.show(work.thread, thinking, message_ts=messages[-1].ts, title=title)
        with self._stoppable(work.thread) as running:
            events = runner.query(
                [message.input for message in messages],
                checkpoint_id=work.thread.checkpoint_id,
                log=(work.thread.thread_id, turn),
                cancel=running.token,
            )
            segment = await self._follower.follow(work.thread, events, running, SaidBefore.NOTHING)
        work.said = segment.voice.newest
        if segment.contexts is not None and running.is_stopped:
            return Progress.AGAIN  # no approval is pending
        if segment.contexts is not None:
            new = await self._asking.request(work, segment.contexts, known=())
            return _waits(work, segment.contexts, new)
        if not segment.voice.has_spoken:
            await segment.voice.break_silence()
        return Progress.ENDED

    def _stoppable(self, thread: Thread) -> AbstractContextManager[StoppableRun]:
        """Let people stop a run, and freezes halt it, until the block ends."""
        return self.stopping.run(thread.thread_id, is_halted=partial(self.halts.covers, thread))

    async def _taken(self, work: ThreadPass, admitted: Sequence[str]) -> Sequence[Message]:
        """Take the messages of a turn, once."""
        inbox, thread = self.storage.inbox, work.thread
        if not work.is_new_turn:
            taken = await inbox.of_turn(thread.thread_id, thread.turn)
            if taken:
                return taken
        taken = await inbox.take(admitted, turn=thread.turn)
        is_known = (
            work.left is not None or not work.is_new_turn
        )  # another process has taken some of them
        if is_known and len(taken) == len(admitted):
            return taken
        return await inbox.of_turn(thread.thread_id, thread.turn)

    async def _recover(self, work: ThreadPass, run: OpenRun) -> Progress:
        """Continue a run whose process crashed; then check the turn again."""
        runner = await self.runners(work.thread)
        work.running = None
        await self.ending.note_told(work.thread, run.stored)
        if held := await self._held_since_claim(work.thread, run):
            return _waits(work, (), (), held=held.values())
        await self.call_records.watch(work.thread)
        self.presence.show(work.thread, thinking)
        with self._stoppable(work.thread) as running:
            events = runner.recover(run.checkpoint_id, cancel=running.token, run=run)
            segment = await self._follower.follow(work.thread, events, running, SaidBefore.PERHAPS)
        work.said = segment.voice.newest
        if segment.contexts is not None and not running.is_stopped:
            opened = await open_of(self.storage.approvals, work.thread.thread_id)
            known = {approval.interrupt_id for approval in opened}
            await self._asking.request(work, segment.contexts, known=known)
        return Progress.AGAIN

    async def _held_since_claim(self, thread: Thread, run: OpenRun) -> dict[str, str]:
        """Return the freezes that cover decided steps that a dead process has not begun."""
        answers = Claim.from_text(run.stored.claim).answers
        notices = notices_in(run.checkpoint_id, run.stored.journal)
        begun = {notice.address for notice in notices if isinstance(notice, WorkStarted)}
        opened = await open_of(self.storage.approvals, thread.thread_id) if answers else ()
        not_begun = [
            approval
            for approval in opened
            if approval.interrupt_id in answers
            and not any(map(question_of(approval).lets_run, begun))
        ]
        infos = {context.id: context.info for context in run.pending()}
        return await self.calls.held(thread, not_begun, infos, is_told=True)

    async def _resume(self, work: ThreadPass, run: OpenRun) -> Progress:
        """Resume the run with all decisions that it has not received."""
        thread, runner = work.thread, await self.runners(work.thread)
        pending = run.pending()
        asked = await self._looked_up(work, pending)
        held = await self.calls.held(thread, asked.decided, asked.infos)
        decided = [approval for approval in asked.decided if approval.interrupt_id not in held]
        unfrozen = await self.calls.answers_to_unfrozen(thread, pending)
        late = _in_unanswered_groups(pending, {a.interrupt_id for a in decided} | unfrozen.keys())
        decided = [approval for approval in decided if approval.interrupt_id not in late]
        unfrozen = {name: answer for name, answer in unfrozen.items() if name not in late}
        # After a stop, the run continues without answers.
        if not decided and not unfrozen and not any(map(_is_stopped, pending)):
            return _waits(work, pending, (), held=held.values())
        targets = await self._answers(decided, asked.infos)
        if targets is None:
            return Progress.AGAIN
        targets |= unfrozen
        await self._note_passed_on(work, decided)
        work.decided = None if work.decided is None else work.decided + len(decided)
        known = None if work.running is None else [*work.running, *decided]
        await self.call_records.watch(thread, known=known)
        params = ResumeParams(targets=targets)
        self.presence.show(thread, partial(going_on, decided))
        try:
            with self._stoppable(thread) as running:
                events = runner.resume_with_params(
                    thread.checkpoint_id, params, cancel=running.token, run=run
                )
                segment = await self._follower.follow(thread, events, running, _said_before(work))
        except (NothingPendingError, UnknownInterruptError):
            raise
        except ResumeError as error:
            work.running = None  # the other calls may have started
            unused = await self.ending.unused(thread)
            await self._settlement.withdraw(decided, unused, error)
            return Progress.AGAIN
        if segment.contexts is not None and running.is_stopped:
            work.running = None
            return Progress.AGAIN
        return await self._after(work, segment, asked, held=held.values())

    async def _answers(
        self, decided: Sequence[Approval], infos: Mapping[str, object]
    ) -> dict[str, object] | None:
        """Build the answers of decisions by interrupt.

        Returns:
            None if a decision had to be cancelled: read the approvals again.

        Raises:
            ResumeError: A record without a decision is invalid and cannot be cancelled.
        """
        answers: dict[str, object] = {}
        for approval in decided:
            try:
                answers[approval.interrupt_id] = answer_from(approval, infos[approval.interrupt_id])
            except ResumeDataError as error:
                await self._settlement.cancel_decision(approval, error)
        return answers if len(answers) == len(decided) else None

    async def _note_passed_on(self, work: ThreadPass, decided: Sequence[Approval]) -> None:
        """Record that the run receives these decisions; an approved call does so as it starts."""
        await self._requesters.note(work, speakers_of(decided))
        noted = [a.approval_id for a in decided if self.attendance.has_told(a)]
        others = [
            a for a in decided if a.approval_id not in noted or a.status is not Status.APPROVED
        ]
        if others:
            entries = resume_entries(others, self.clock(), noted=noted)
            await self.storage.audit.append(*entries)
        for approval in decided:
            await self.attendance.alert(approval)  # the process that decided may have crashed
            if approval.kind is Kind.DOUBT and approval.status is Status.ANSWERED:
                # Its call's own card shows that people confirmed the outcome.
                result = question_of(approval).vouched()
                if result is not None:
                    await self.call_records.vouched(work.thread, approval.address, result)

    async def _looked_up(
        self, work: ThreadPass, pending: Sequence[InterruptContext]
    ) -> PendingApprovals:
        """Return the approvals of pending interrupts; close those without an interrupt.

        Raises:
            RunEndedError: An approval expired and its rule ends the run.
        """
        asked, thread = await self._asking.find_or_request(work, pending), work.thread
        if asked.gone:
            # Check the lease: its next owner may have created the approvals.
            await set_turn(self.storage.threads, thread, turn=thread.turn, turn_open=True)
            await self._settlement.settle(thread, asked.gone)
        expired = [approval for approval in asked.decided if approval.status is Status.EXPIRED]
        if any(map(ends_run, expired)):
            raise RunEndedError
        return asked

    async def _after(
        self,
        work: ThreadPass,
        segment: RunResult,
        asked: PendingApprovals,
        *,
        held: Iterable[str] = (),
    ) -> Progress:
        """Close answered approvals after a resume, and create new ones.

        Nothing is read again: a concurrent change woke the thread, and the release of the lease
        detects that.
        """
        contexts = segment.contexts or ()
        work.said = segment.voice.newest
        gone = [
            approval_id_of(interrupt_id)
            for interrupt_id in asked.known - {context.id for context in contexts}
        ]
        read = {approval.approval_id: approval for approval in (*asked.decided, *segment.watched)}
        unread = [name for name in gone if name not in read]
        if unread:
            rest = await get_all(self.storage.approvals, unread)
            read.update({approval.approval_id: approval for approval in rest})
        noted = {approval.approval_id for approval in asked.decided}
        # Approvals that were undecided at the resume were not passed on.
        unused = frozenset(read[name].interrupt_id for name in unread)
        left = [read[name] for name in gone]
        await self._settlement.settle(work.thread, left, unused=unused, noted=noted)
        work.running = tuple(approval for approval in segment.watched if not has_ended(approval))
        if segment.contexts is None:
            if not segment.voice.has_spoken and not asked.known:
                await self._break_silence(work.thread)
            return Progress.ENDED
        new = await self._asking.request(work, contexts, known=asked.known)
        return _waits(work, contexts, new, held=held)

    async def _break_silence(self, thread: Thread) -> None:
        """Post a default text in a turn without visible output."""
        if await self.storage.posts.any_of(thread.checkpoint_id) or await self._answer_of(thread):
            return
        newest = await newest_of(self.storage.approvals, thread.thread_id, limit=1)
        if not newest or newest[0].checkpoint_id != thread.checkpoint_id:
            await self.outbox.say(
                thread, a_post(thread, "silent", say("error.silent"), now_ms=self.clock())
            )

    async def _answer_of(self, thread: Thread) -> str:
        """Return the last text of the ended run of the newest turn; empty without one."""
        log, turn = self.storage.log, thread.turn
        before = await log.load(thread.thread_id, before_turn=turn)
        entries = await log.load(thread.thread_id, before_turn=turn + 1)
        messages = read_log(entries[len(before) :])
        texts = [text_of(message) for message in messages if isinstance(message, ModelResponse)]
        return next((text for text in reversed(texts) if text.strip()), "")


def _said_before(work: ThreadPass) -> SaidBefore:
    """Return which texts of a resume an earlier, failed one may have posted."""
    if work.thread.attempts or (work.left is not None and work.running is None):
        return SaidBefore.PERHAPS
    return SaidBefore.ON_RECORD if work.left is None else SaidBefore.NOTHING


def _waits(
    work: ThreadPass,
    contexts: Sequence[InterruptContext],
    new: Iterable[Approval],
    *,
    held: Iterable[str] = (),
) -> Progress:
    """Return the progress after an interrupt: continue if it needs no person.

    For calls that a freeze has parked, and decisions that it holds back, the thread is looked at
    again once the freeze is lifted.
    """
    work.parked_by = " ".join(sorted({*parked_by(contexts).split(), *held}))
    is_decided = any(approval.status is not Status.PENDING for approval in new)
    return Progress.AGAIN if is_decided or any(map(_is_stopped, contexts)) else Progress.WAITING


def _in_unanswered_groups(
    pending: Iterable[InterruptContext], answered: Collection[str]
) -> frozenset[str]:
    """Return the interrupts that are resumed later, with the others of their task group."""
    groups: dict[str, set[str]] = {}
    unanswered: set[str] = set()
    for context in pending:
        parent = context.parent
        while parent is not None:
            if isinstance(parent.info, TaskGroupInfo):
                groups.setdefault(parent.id, set()).add(context.id)
                if context.id not in answered and not _is_stopped(context):
                    unanswered.add(parent.id)
            parent = parent.parent
    return frozenset().union(*(groups[name] for name in unanswered))


def _is_stopped(context: InterruptContext) -> bool:
    return isinstance(context.info, CancelInfo)
