"""The end of turns that cannot go on, and of approvals whose interrupts no longer wait."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic_ai.messages import ModelResponse, TextPart

from agents import CheckpointError, InterruptContext, ResumeDataError, ResumeError, Runner
from agents.core.checkpoint import CheckpointStatus, StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from agents.core.journal import notices_in
from agents.core.messages import log_text, user_message
from agents.runs.document import Claim
from bot.approvals.due.worker import ApprovalWorker
from bot.audit.acts import Act
from bot.audit.entries import decision_entries, note, note_decision, resume_entries
from bot.errors import DirectoryError
from bot.people.requesters import Requesters
from bot.people.thread_pass import ThreadPass
from bot.ports.process import Clock, Spawn
from bot.questions.base import answer_from
from bot.threads.outbox import Outbox
from bot.threads.runs.executions import ExecutionRecorder
from bot.threads.runs.streaming import a_post, post_id
from bot.words import say
from storage.base import Storage
from storage.errors import RecordConflictError
from storage.ports.threads import ThreadStore
from storage.records import Approval, Decision, Post, Status, Thread

logger = logging.getLogger(__name__)

_BY_PEOPLE = (Status.APPROVED, Status.REJECTED, Status.ANSWERED)
_SUPERSEDED = Status.SUPERSEDED, "reason.superseded"
_CANCELLED = Status.CANCELLED, "reason.stopped"
"""A status, and the key of its reason."""
_TO_BE_USED = (Status.APPROVED, Status.ANSWERED)
"""The statuses that are untrue when a turn ends without their use; a rejection stays true."""


GIVEN_UP = "failed"
"""Key of the post that says that a turn was given up."""
STOPPED = "stopped"
"""Key of the post that says that somebody ended a turn."""


@dataclass(frozen=True, slots=True)
class ApprovalClosing:
    """Closes, cancels and withdraws approvals, and has their cards drawn again."""

    storage: Storage
    attendance: ApprovalWorker
    clock: Clock
    spawn: Spawn

    async def close(self, thread: Thread) -> None:
        """Close all approvals of turns that are over: nobody asks anything in these any more."""
        await self.settle(thread, await self.storage.approvals.open_of(thread.thread_id))

    async def settle(
        self,
        thread: Thread,
        approvals: Iterable[Approval],
        *,
        unused: frozenset[str] = frozenset(),
        noted: Collection[str] = (),
        is_stopped: bool = False,
    ) -> None:
        """Close approvals whose interrupt no longer waits; call off those that nobody decided.

        That each is decided, and how, is in the audit before it is closed: who draws its card
        afterwards need not see to that.

        Args:
            thread: Whose.
            approvals: As read in this pass.
            unused: Interrupts that will never have their answer, though there may be one.
            noted: Ids of those whose decision is in the audit.
            is_stopped: Whether somebody wanted the turn to end.
        """
        # A process that was asleep must not end what a later turn has asked meanwhile.
        gone = [one for one in approvals if _turn_of(one) <= thread.turn]
        called_off = _CANCELLED if is_stopped else _SUPERSEDED
        ended = [
            await self._end(one, called_off, is_unused=one.interrupt_id in unused) for one in gone
        ]
        entries = [
            entry
            for one in ended
            if one.decision is not None and one.approval_id not in noted
            for entry in decision_entries(one, one.decision)
        ]
        if entries:
            await self.storage.audit.append_all(entries)
        still_open = [one.approval_id for one in ended if one.open]
        if still_open:
            await self.storage.approvals.close_all(still_open)

    async def _end(
        self, approval: Approval, called_off: tuple[Status, str], *, is_unused: bool
    ) -> Approval:
        """Call off what nobody decided; take back a yes that lets nothing run any more.

        Returns:
            The approval as it is decided.
        """
        while approval.status is Status.PENDING:
            ended = await self._call_off(approval, *called_off)
            if ended is not None:
                return ended
            # Somebody was quicker: with an edit, or with a decision that nobody will pass on.
            approval, is_unused = await self.storage.approvals.get(approval.approval_id), True
        if is_unused and approval.status in _TO_BE_USED:
            with contextlib.suppress(ResumeError):
                return await self._withdraw(approval, ResumeError(say("reason.turn_ended")))
        return approval

    async def answers(
        self, decided: Sequence[Approval], infos: Mapping[str, object]
    ) -> dict[str, object] | None:
        """Build the answers that decisions give, by interrupt.

        Returns:
            None when a decision had to be withdrawn: look again.

        Raises:
            ResumeError: A record that nobody decided does not fit; nothing can be withdrawn.
        """
        answers: dict[str, object] = {}
        for approval in decided:
            try:
                answer = answer_from(approval, infos[approval.interrupt_id])
            except ResumeDataError as error:
                await self._withdraw(approval, error)
            else:
                answers[approval.interrupt_id] = answer
        return answers if len(answers) == len(decided) else None

    async def withdraw(
        self, decided: Sequence[Approval], waiting: frozenset[str], error: ResumeError
    ) -> None:
        """Cancel decisions that the run refused; the others stay as they are.

        Raises:
            ResumeError: The same, when there is no decision of people that can be withdrawn.
        """
        asked_anew = error.target  # under another id: this one waits no more
        unused = waiting | {asked_anew}
        refused = [a for a in decided if a.interrupt_id in unused and a.status in _BY_PEOPLE]
        if not refused:
            raise error
        for approval in refused:
            await self._withdraw(approval, error)

    async def _withdraw(self, approval: Approval, error: ResumeError) -> Approval:
        if approval.decision is not None:  # whoever took it may have died before it was noted
            await note_decision(self.storage.audit, approval, approval.decision)
        decision = Decision(
            status=Status.CANCELLED,
            by="",
            at_ms=self.clock(),
            reason=say("reason.unused", status=say(f"reason.{approval.status}"), why=error),
        )
        try:
            withdrawn = await self.storage.approvals.withdraw(approval.approval_id, decision)
        except RecordConflictError:
            raise error from None
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
        """Call it off as it was read, why by key; None when it is no longer like that."""
        decision = Decision(
            status=status,
            by="",
            at_ms=min(self.clock(), approval.expires_ms - 1),
            reason=say(why),
        )
        try:
            ended = await self.storage.approvals.decide(
                approval.approval_id, decision, digest=approval.digest
            )
        except RecordConflictError:
            return None
        self.spawn(self.attendance.attend(approval.approval_id))
        return ended


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTermination:
    """Ends turns that cannot go on, or that somebody has stopped."""

    storage: Storage
    settlement: ApprovalClosing
    requesters: Requesters
    witness: ExecutionRecorder
    outbox: Outbox
    clock: Clock
    runners: Callable[[Thread], Awaitable[Runner]]

    async def pending(self, thread: Thread) -> Sequence[InterruptContext]:
        """Return all that waits in the open turn."""
        return await (await self.runners(thread)).pending(thread.checkpoint_id)

    async def attend(self, approval_id: str) -> None:
        """Do all that is due for an approval."""
        await self.settlement.attendance.attend(approval_id)

    async def doubt(self, thread: Thread, address: str) -> None:
        """Note that nobody knows whether what stands there has run."""
        await self.witness.doubted(thread.checkpoint_id, address)

    async def stop(self, work: ThreadPass, text: str) -> None:
        """End the open turn as somebody wants it; see `give_up`.

        Raises:
            CheckpointConflictError: The lease was lost; nothing was ended.
        """
        thread = work.thread
        await self.storage.posts.add(a_post(thread, STOPPED, text, now_ms=self.clock()))
        await self.abandon(thread, text, is_stopped=True)
        work.thread = replace(thread, turn_open=False)
        work.is_new_turn, work.messages, work.running = False, None, ()

    async def give_up(self, thread: Thread, text: str) -> bool:
        """End the open turn, which cannot go on, and tell people so; begun first where none is.

        What people are told is on record before anything is ended, so that a crash in between does
        not leave a turn that nobody goes on with: `abandon` is repeated (`is_given_up`).

        Returns:
            Whether the turn had messages of its own; otherwise those that are new have none.

        Raises:
            CheckpointConflictError: The lease was lost; nothing was ended.
        """
        turn = thread.turn if thread.turn_open else thread.turn + 1
        thread = await set_turn(self.storage.threads, thread, turn=turn, turn_open=True)
        await self.storage.posts.add(a_post(thread, GIVEN_UP, text, now_ms=self.clock()))
        return await self.abandon(thread, text)

    async def abandon(self, thread: Thread, text: str, *, is_stopped: bool = False) -> bool:
        """End a turn that cannot go on: nothing of it can be resumed, its cards are closed.

        Args:
            thread: As claimed.
            text: What people are told; the agent learns of it in its next turn.
            is_stopped: Whether somebody wanted that.

        Returns:
            Whether the turn had messages.

        Raises:
            CheckpointConflictError: The lease was lost.
        """
        messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        if messages:  # the agent reads them with the history of the next turn
            work = ThreadPass(thread=thread, messages=messages)
            await self.requesters.note(work, (message.user_id for message in messages))
            await self._log_unfinished(thread, [message.text for message in messages], text)
        stored = await self.storage.checkpoints.load(thread.checkpoint_id)
        unused = await self.unused(thread)
        thread = await set_turn(  # still ours?
            self.storage.threads, thread, turn=thread.turn, turn_open=True
        )
        if stored is not None:
            with contextlib.suppress(CheckpointError):  # what cannot be read told nobody anything
                await self.note_told(thread, stored)
        await self.witness.ended(
            thread.checkpoint_id,
            notices_in(thread.checkpoint_id, stored.journal if stored else ()),
        )
        left = await self.storage.approvals.open_of(thread.thread_id)
        # Ours also when these were read? Whoever has it now may just have asked them.
        thread = await set_turn(self.storage.threads, thread, turn=thread.turn, turn_open=True)
        await self.settlement.settle(thread, left, unused=unused, is_stopped=is_stopped)
        await self.outbox.drop(thread)
        # Last goes what says what waited, and that there is something to be ended: whoever goes on
        # after a crash finds it, and does all of this again.
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
        """Ids of the interrupts whose answers, if there are any, were not used."""
        try:
            contexts = await self.pending(thread)
        except (CheckpointError, DirectoryError):
            return frozenset()  # it cannot be read, which may be why the turn is ended
        return frozenset(context.id for context in contexts)

    async def note_told(self, thread: Thread, stored: StoredCheckpoint) -> None:
        """Put on record what a process that is gone told a run: its claim has it."""
        told = Claim.from_text(stored.claim).answers
        if told:
            opened = await self.storage.approvals.open_of(thread.thread_id)
            decided = [one for one in opened if one.interrupt_id in told and one.decision]
            entries = resume_entries(decided, self.clock())
            await self.storage.audit.append_all(entries)


def is_given_up(thread: Thread, post: Post) -> bool:
    """Whether a post says that the open turn was given up, and a crash came before its end."""
    keys = post_id(thread, GIVEN_UP), post_id(thread, STOPPED)
    return thread.turn_open and post.post_id in keys


async def set_turn(
    threads: ThreadStore,
    thread: Thread,
    *,
    turn: int,
    turn_open: bool,
    requesters_json: str | None = None,
) -> Thread:
    """Put on record how far a thread is, under the caller's lease.

    Raises:
        CheckpointConflictError: The lease was lost.
    """
    kept = await threads.set_turn(
        thread.thread_id,
        fence=thread.fence,
        turn=turn,
        turn_open=turn_open,
        requesters_json=requesters_json,
    )
    if not kept:
        raise CheckpointConflictError(thread.checkpoint_id)
    known = requesters_json if requesters_json is not None else thread.requesters_json
    return replace(thread, turn=turn, turn_open=turn_open, requesters_json=known)


def _turn_of(approval: Approval) -> int:
    number = approval.checkpoint_id.rpartition("#")[2]
    return int(number) if number.isdecimal() else 0
