"""The end of approvals whose interrupts no longer wait, or whose decisions cannot be used."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agents import ResumeDataError, ResumeError
from bot.core.attendance.visits import Attendance
from bot.core.audit.acts import Act
from bot.core.audit.entries import decision_entries, note, note_decision
from bot.ports.process import Clock, Spawn
from bot.questions.base import answer_from
from bot.words import say
from storage.base import Storage
from storage.errors import RecordConflictError
from storage.records import Approval, Decision, Status, Thread

logger = logging.getLogger(__name__)

_BY_PEOPLE = (Status.APPROVED, Status.REJECTED, Status.ANSWERED)
_SUPERSEDED = Status.SUPERSEDED, "reason.superseded"
_CANCELLED = Status.CANCELLED, "reason.stopped"
"""A status, and the key of its reason."""
_TO_BE_USED = (Status.APPROVED, Status.ANSWERED)
"""The statuses that are untrue when a turn ends without their use; a rejection stays true."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """Closes, cancels and withdraws approvals, and has their cards drawn again.

    Args:
        storage: Where records are kept.
        attendance: Draws cards.
        clock: The time now.
        spawn: Starts the drawing.
    """

    storage: Storage
    attendance: Attendance
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

        Args:
            decided: Decided approvals.
            infos: What their interrupts ask, by interrupt.

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

        Args:
            decided: What the run was told.
            waiting: Interrupts that still wait: their answers were not used.
            error: Why not; it may name one that was withdrawn and asked anew.

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
            "decision withdrawn: %s",
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


def _turn_of(approval: Approval) -> int:
    number = approval.checkpoint_id.rpartition("#")[2]
    return int(number) if number.isdecimal() else 0
