"""Close approvals whose interrupt is gone, and end turns that cannot continue."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic_ai.messages import ModelResponse, TextPart

from agents import CheckpointError, InterruptContext, ResumeError, Runner
from agents.core.checkpoint import CheckpointStatus, StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from agents.core.journal import notices_in
from agents.core.messages import log_text, user_message
from agents.runs.document import Claim
from bot.approvals.changes import closed, decided, refused_by_run
from bot.approvals.due.worker import ApprovalWorker
from bot.approvals.execution import execution_of
from bot.audit.acts import Act
from bot.audit.entries import (
    decision_entries,
    note,
    note_decision,
    resume_entries,
    resume_entry,
)
from bot.errors import DirectoryError
from bot.ports.process import Clock, Spawn
from bot.records.approval import Approval, Decision, ExecutionState, Status
from bot.records.approval_queries import open_of
from bot.records.messages import Post
from bot.records.thread import Thread, ThreadStore
from bot.stores import Stores
from bot.threads.outbox import Outbox
from bot.threads.requesters import Requesters
from bot.threads.runs.call_records import CallRecords
from bot.threads.runs.model_away import ModelAway
from bot.threads.runs.streaming import a_post, post_id
from bot.threads.thread_pass import ThreadPass
from bot.words import say
from storage.documents import update, update_or_none

logger = logging.getLogger(__name__)

_BY_PEOPLE = (Status.APPROVED, Status.REJECTED, Status.ANSWERED)
_SUPERSEDED = Status.SUPERSEDED, "reason.superseded"
_CANCELLED = Status.CANCELLED, "reason.stopped"
"""A status, and the catalog key of its reason."""
_TO_BE_USED = (Status.APPROVED, Status.ANSWERED)
"""Statuses that become false if the turn ends before the call. A rejection stays."""


GIVEN_UP = "failed"
"""Key of the post about a turn that failed."""
STOPPED = "stopped"
"""Key of the post about a turn that a person stopped."""
_DEADLY = "the process stopped again and again, maybe while posting this; it may stand in Slack"
"""Reason stored with a text that is dropped because the process crashed while posting it."""


@dataclass(frozen=True, slots=True)
class ApprovalClosing:
    """Closes, cancels and withdraws approvals, and updates their cards."""

    storage: Stores
    attendance: ApprovalWorker
    clock: Clock
    spawn: Spawn

    async def close(self, thread: Thread) -> None:
        """Close all approvals of ended turns."""
        await self.settle(thread, await open_of(self.storage.approvals, thread.thread_id))

    async def settle(
        self,
        thread: Thread,
        approvals: Iterable[Approval],
        *,
        unused: frozenset[str] = frozenset(),
        noted: Collection[str] = (),
        is_stopped: bool = False,
    ) -> None:
        """Close approvals whose interrupt is gone; cancel those without a decision.

        Decisions are recorded in the audit before an approval is closed.

        Args:
            thread: The thread.
            approvals: As read in this pass.
            unused: Ids of interrupts whose answers will never be used.
            noted: Ids of approvals whose decision is in the audit.
            is_stopped: Whether a person stopped the turn.
        """
        # A process that was suspended must not cancel approvals of a later turn.
        gone = [approval for approval in approvals if approval.turn <= thread.turn]
        called_off = _CANCELLED if is_stopped else _SUPERSEDED
        ended = [
            await self._end(approval, called_off, is_unused=approval.interrupt_id in unused)
            for approval in gone
        ]
        entries = [
            entry
            for approval in ended
            if approval.decision is not None and approval.approval_id not in noted
            for entry in decision_entries(approval, approval.decision)
        ]
        # A call that has started recorded this with its start.
        entries += [
            resume_entry(approval, self.clock())
            for approval in ended
            if approval.status is Status.APPROVED and execution_of(approval) is None
        ]
        if entries:
            await self.storage.audit.append(*entries)
        still_open = [approval.approval_id for approval in ended if approval.open]
        writes = (update_or_none(self.storage.approvals, name, closed) for name in still_open)
        await asyncio.gather(*writes)

    async def _end(
        self, approval: Approval, called_off: tuple[Status, str], *, is_unused: bool
    ) -> Approval:
        """Cancel an undecided approval; revoke an approved one that runs nothing any more.

        Returns:
            The approval with its decision.
        """
        while approval.status is Status.PENDING:
            ended = await self._call_off(approval, *called_off)
            if ended is not None:
                return ended
            # Another process wrote first: an edit, or a decision that no run will receive.
            approval, is_unused = await self.storage.approvals.get(approval.approval_id), True
        if is_unused and approval.status in _TO_BE_USED:
            with contextlib.suppress(ResumeError):
                return await self.cancel_decision(approval, ResumeError(say("reason.turn_ended")))
        return approval

    async def withdraw(
        self, decided: Sequence[Approval], waiting: frozenset[str], error: ResumeError
    ) -> None:
        """Cancel decisions that the run refused; the others do not change.

        Raises:
            ResumeError: The same error, if no decision can be withdrawn.
        """
        asked_anew = error.target  # the new interrupt has another id: the old one is gone
        unused = waiting | {asked_anew}
        refused = [a for a in decided if a.interrupt_id in unused and a.status in _BY_PEOPLE]
        if not refused:
            raise error
        for approval in refused:
            await self.cancel_decision(approval, error)

    async def cancel_decision(self, approval: Approval, error: ResumeError) -> Approval:
        """Cancel a decision that the run cannot receive.

        Raises:
            ResumeError: The same error, if the decision cannot be cancelled.
        """
        if approval.decision is not None:  # the process may have crashed before recording it
            await note_decision(self.storage.audit, approval, approval.decision)
        decision = Decision(
            status=Status.CANCELLED,
            by="",
            at_ms=self.clock(),
            reason=say("reason.unused", status=say(f"reason.{approval.status}"), why=error),
        )
        write = partial(refused_by_run, decision=decision)
        name = approval.approval_id
        withdrawn = await update(self.storage.approvals, name, write, writes_due=True)
        if withdrawn is None:
            raise error
        logger.warning(
            "discarded a decision that can't be applied: %s",
            error,
            extra={"action": "unusable", "approval_id": approval.approval_id},
        )
        await note(
            self.storage.audit,
            Act.UNUSABLE,
            key=approval.approval_id,
            at_ms=decision.at_ms,
            about=approval,
            was=str(approval.status),
            why=str(error),
        )
        self.spawn(self.attendance.attend(approval.approval_id))
        return withdrawn

    async def _call_off(self, approval: Approval, status: Status, why: str) -> Approval | None:
        """Cancel an approval as it was read; return None if it changed."""
        decision = Decision(
            status=status,
            by="",
            at_ms=min(self.clock(), approval.expires_ms - 1),
            reason=say(why),
        )
        write = partial(decided, decision=decision, digest=approval.digest)
        name = approval.approval_id
        ended = await update(self.storage.approvals, name, write, writes_due=True)
        if ended is not None:
            self.spawn(self.attendance.attend(name))
        return ended


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTermination:
    """Ends turns that cannot continue or were stopped."""

    storage: Stores
    settlement: ApprovalClosing
    requesters: Requesters
    call_records: CallRecords
    outbox: Outbox
    clock: Clock
    runners: Callable[[Thread], Awaitable[Runner]]

    @property
    def away(self) -> ModelAway:
        """Tells threads about models that fail."""
        return ModelAway(storage=self.storage, outbox=self.outbox, clock=self.clock)

    async def pending(self, thread: Thread) -> Sequence[InterruptContext]:
        """Return all pending interrupts of the open turn."""
        return await (await self.runners(thread)).pending(thread.checkpoint_id)

    async def attend(self, approval_id: str) -> None:
        """Process an approval that is due."""
        await self.settlement.attendance.attend(approval_id)

    async def doubt(self, thread: Thread, address: str) -> None:
        """Record that the outcome of the call at an address is unknown."""
        await self.call_records.doubted(thread, address)

    async def stop(self, work: ThreadPass, text: str) -> None:
        """End the open turn because a person stopped it; see `give_up`.

        Raises:
            CheckpointConflictError: The lease was lost; nothing was ended.
        """
        thread = work.thread
        await self.storage.posts.add(a_post(thread, STOPPED, text, now_ms=self.clock()))
        await self.abandon(thread, text, is_stopped=True)
        work.thread = thread.changed(turn_open=False)
        work.is_new_turn, work.messages, work.running = False, None, ()

    async def give_up(self, thread: Thread, text: str) -> bool:
        """End the open turn, which cannot continue, and post why.

        Begins a turn first if none is open. The post is stored before the turn is ended, so that
        another process can finish after a crash: `abandon` is repeated (`is_given_up`).

        Returns:
            Whether the turn had messages of its own; otherwise new messages have none.

        Raises:
            CheckpointConflictError: The lease was lost; nothing was ended.
        """
        turn = thread.turn if thread.turn_open else thread.turn + 1
        thread = await set_turn(self.storage.threads, thread, turn=turn, turn_open=True)
        await self.storage.posts.add(a_post(thread, GIVEN_UP, text, now_ms=self.clock()))
        return await self.abandon(thread, text)

    async def drop_deadly(self, thread: Thread) -> None:
        """Drop the next text: the process died again and again, perhaps while posting it.

        Texts are posted one at a time, and unfinished ones first, so the first unfinished text is
        the one that was posted when the process died. Slack may have taken it: each attempt looks
        for the message, and another look here could stop the process once more.
        """
        posts = await self.storage.posts.unfinished(thread.thread_id)
        texts = [post for post in posts if post.text]
        if texts and not texts[0].post_id.endswith((f":{GIVEN_UP}", f":{STOPPED}")):
            await self.outbox.fail(thread, texts[0], "chat.postMessage", _DEADLY)

    async def abandon(self, thread: Thread, text: str, *, is_stopped: bool = False) -> bool:
        """End a turn that cannot be resumed, and close its cards.

        Args:
            thread: As claimed.
            text: Message for the thread; the agent reads it in its next turn.
            is_stopped: Whether a person stopped the turn.

        Returns:
            Whether the turn had messages.

        Raises:
            CheckpointConflictError: The lease was lost.
        """
        messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        if messages:  # the agent reads the messages with the history of its next turn
            work = ThreadPass(thread=thread, messages=messages)
            await self.requesters.note(work, (message.user_id for message in messages))
            await self._log_unfinished(thread, [message.input for message in messages], text)
        stored = await self.storage.checkpoints.load(thread.checkpoint_id)
        await self.away.end(thread, is_back=False)
        unused = await self.unused(thread)
        thread = await set_turn(  # do we still own the lease?
            self.storage.threads, thread, turn=thread.turn, turn_open=True
        )
        if stored is not None:
            with contextlib.suppress(CheckpointError):  # an unreadable run has no recorded answers
                await self.note_told(thread, stored)
        await self.call_records.ended(
            thread,
            notices_in(thread.checkpoint_id, stored.journal if stored else ()),
        )
        left = await open_of(self.storage.approvals, thread.thread_id)
        # Check the lease after reading: its next owner may have created the approvals.
        thread = await set_turn(self.storage.threads, thread, turn=thread.turn, turn_open=True)
        unused |= _never_told(stored, left)
        await self.settlement.settle(thread, left, unused=unused, is_stopped=is_stopped)
        await self.outbox.drop(thread)
        # The checkpoint is deleted last, because it shows that work is left after a crash.
        if stored is not None and stored.status is not CheckpointStatus.CLOSED:
            with contextlib.suppress(CheckpointConflictError):
                await self.storage.checkpoints.close(
                    thread.checkpoint_id, expected_version=stored.version
                )
        await set_turn(self.storage.threads, thread, turn=thread.turn, turn_open=False)
        return bool(messages)

    async def _log_unfinished(self, thread: Thread, texts: Sequence[str], why: str) -> None:
        note = (
            f"This turn could not be finished: {why} Calls that people had approved may have run; "
            "check before you make one of them again."
        )
        entry = log_text([user_message(*texts), ModelResponse(parts=[TextPart(note)])])
        await self.storage.log.append(thread.thread_id, thread.turn, entry)

    async def unused(self, thread: Thread) -> frozenset[str]:
        """Return ids of interrupts whose answers were not used."""
        try:
            contexts = await self.pending(thread)
        except (CheckpointError, DirectoryError):
            return frozenset()  # unreadable, which may be why the turn is ended
        return frozenset(context.id for context in contexts)

    async def note_told(self, thread: Thread, stored: StoredCheckpoint) -> None:
        """Record the answers that a crashed process gave to the run, from its claim."""
        answers = Claim.from_text(stored.claim).answers
        if answers:
            opened = await open_of(self.storage.approvals, thread.thread_id)
            decided = [
                approval
                for approval in opened
                if approval.interrupt_id in answers and approval.decision
            ]
            entries = resume_entries(decided, self.clock())
            await self.storage.audit.append(*entries)


def is_given_up(thread: Thread, post: Post) -> bool:
    """Whether the open turn failed and a crash prevented its end."""
    keys = post_id(thread, GIVEN_UP), post_id(thread, STOPPED)
    return thread.turn_open and post.post_id in keys


async def set_turn(
    threads: ThreadStore,
    thread: Thread,
    *,
    turn: int,
    turn_open: bool,
    requesters: Sequence[str] | None = None,
    said: str = "",
) -> Thread:
    """Store the state of a thread under the caller's lease.

    Raises:
        CheckpointConflictError: The lease was lost.
    """
    is_stored = await threads.set_turn(
        thread.thread_id,
        fence=thread.fence,
        turn=turn,
        turn_open=turn_open,
        requesters=requesters,
        said=said,
    )
    if not is_stored:
        raise CheckpointConflictError(thread.checkpoint_id)
    known = thread.requesters if requesters is None else tuple(requesters)
    return thread.changed(
        turn=turn, turn_open=turn_open, requesters=known, said=said or thread.said
    )


def _never_told(stored: StoredCheckpoint | None, approvals: Iterable[Approval]) -> frozenset[str]:
    """Return the interrupts decided while their run went on, whose answers it did not receive."""
    if stored is None or stored.status is not CheckpointStatus.RUNNING:
        return frozenset()
    try:
        answers = Claim.from_text(stored.claim).answers
    except CheckpointError:  # an unreadable run has no recorded answers
        return frozenset()
    runs = ((approval.interrupt_id, execution_of(approval)) for approval in approvals)
    return frozenset(
        name
        for name, run in runs
        if name not in answers and (run is None or run.state is ExecutionState.LAPSED)
    )
