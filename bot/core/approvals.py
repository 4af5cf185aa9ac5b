"""The use cases of approvals: look, decide, edit, open; what follows is their attendance's.

The order is always record, act, redraw: a decision is one conditional write before anything else
happens; then the thread is woken; then the card is drawn again from the record. Each step may be
repeated without harm, and the scheduler repeats what a crash left open.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from bot.clock import milliseconds
from bot.core.attendance.visits import Attendance
from bot.core.audit import note_opened, note_refusal
from bot.core.unseen import Opened, guesses, has_opened, is_yes, with_opened
from bot.core.withdrawals import Withdrawals
from bot.errors import (
    ApprovalClosedError,
    NotSeenError,
    OutdatedCardError,
    UnknownApprovalError,
    UserFacingError,
)
from bot.people.access import Access, check_agreed_once, check_agreement
from bot.ports import Actor, Clock
from bot.questions.base import check_decision
from storage.base import Storage
from storage.errors import RecordConflictError, RecordNotFoundError
from storage.records import Approval, Decision, Status

JUST_DECIDED = timedelta(seconds=5)
"""After a decision: whoever clicks then has not seen the card that is being drawn."""


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approvals: all that people do with them.

    Args:
        storage: Where records are kept.
        access: Who may decide.
        clock: The time now.
        folded: Tells whether the card of a record leaves something out.
        attendance: Does what follows, and all that is due by the clock.
    """

    storage: Storage
    access: Access
    clock: Clock
    folded: Callable[[Approval], bool]
    attendance: Attendance

    async def look(self, approval_id: str, actor: Actor, *, shown: str) -> Approval:
        """Read an approval for a person who may decide it now.

        Args:
            approval_id: As carried by the button or the modal.
            actor: Who asks.
            shown: The digest, or the beginning of it, that the person was shown.

        Returns:
            The pending approval.

        Raises:
            UnknownApprovalError: There is none, or it belongs to another workspace.
            ApprovalClosedError: Somebody, or the clock, decided first.
            OutdatedCardError: The person was shown something else than is on record.
            NotApproverError: This person may not decide it.
            DirectoryError: Who they are could not be looked up.
        """
        try:
            approval = await self.storage.approvals.get(approval_id)
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error
        try:
            self._check_pending(approval)
            if not shown or not approval.digest.startswith(shown):
                raise OutdatedCardError(approval_id)
            await self.access.check_decider(approval, actor)
        except UserFacingError as error:
            await self._note_refusal(approval, actor.user_id, error)
            raise
        return approval

    async def decide(self, approval: Approval, decision: Decision) -> Approval:
        """Record a decision, once. Whoever calls has looked (`look`) with the same actor before.

        Args:
            approval: As read by `look`; the decision covers what that record shows.
            decision: What the person chose.

        Returns:
            The approval as decided. `attend` does the rest.

        Raises:
            ApprovalClosedError: Somebody, or the clock, was first.
            OutdatedCardError: The record has changed since it was read.
            InvalidInputError: The record takes no such answer.
            NotApproverError: The person has agreed to the call already, or has made what it is
                about; they can reject it all the same.
            NotSeenError: It is a yes, and the person has not opened what the card does not show.
        """
        check_decision(approval, decision)
        if is_yes(approval, decision):
            await self.check_seen(approval, decision.by)
        try:
            check_agreement(approval, decision)
        except UserFacingError as error:
            await self._note_refusal(approval, decision.by, error)
            raise
        try:
            return await self.storage.approvals.decide(
                approval.approval_id, decision, digest=approval.digest
            )
        except RecordConflictError as error:
            raise await self._lost(approval, decision.by) from error

    async def rebind(self, approval: Approval, changed: Approval, *, by: str) -> Approval:
        """Record that a call was edited, and who is asked about it now; it waits on.

        Args:
            approval: As read by `look`.
            changed: As it is to be.
            by: Who edited.

        Returns:
            The approval as stored. `attend` does the rest.

        Raises:
            ApprovalClosedError: Somebody, or the clock, was first.
            OutdatedCardError: The record has changed since it was read.
            NotSeenError: The editor has not opened what the card does not show.
        """
        await self.check_seen(approval, by)
        try:
            check_agreed_once(approval, by)
        except UserFacingError as error:
            await self._note_refusal(approval, by, error)
            raise
        try:
            return await self.storage.approvals.rebind(
                changed, digest=approval.digest, now_ms=self.clock()
            )
        except RecordConflictError as error:
            raise await self._lost(approval, by) from error

    async def _lost(self, approval: Approval, by: str) -> UserFacingError:
        """Why somebody else was first; that this person was refused is put on record."""
        refusal = await self._why_refused(approval.approval_id)
        await self._note_refusal(approval, by, refusal)
        return refusal

    async def check_seen(self, approval: Approval, user_id: str) -> None:
        """Refuse who has not opened what the card of an approval does not show.

        Raises:
            NotSeenError: They have not, or something else.
        """
        if guesses(approval):
            what, needed, button = "a part of this is masked", Opened.CLEAR, "Reveal…"
        elif self.folded(approval):
            what, needed, button = "not all of this is on the card", Opened.DETAILS, "Details"
        else:
            return
        if not has_opened(approval, user_id, needed):
            error = NotSeenError(what, button)
            await self._note_refusal(approval, user_id, error)
            raise error

    async def reveal(
        self, approval: Approval, user_id: str, show: Callable[[], Awaitable[None]]
    ) -> None:
        """Show one person what is masked by a guess; on record before they see it.

        Args:
            approval: As read by `look` for that person.
            user_id: Who.
            show: Shows it to them; raises when they do not see it.
        """
        now = self.clock()
        names = guesses(approval) or ("arguments",)
        await note_opened(self.storage.audit, approval, now, by=user_id, fields=names)
        await show()
        await self._mark_seen(approval, user_id, Opened.CLEAR)

    async def note_details(self, approval: Approval, user_id: str) -> None:
        """Put on record that a person was shown all details of a pending approval."""
        if approval.status is not Status.PENDING or has_opened(approval, user_id, Opened.DETAILS):
            return
        await note_opened(self.storage.audit, approval, self.clock(), by=user_id)
        await self._mark_seen(approval, user_id, Opened.DETAILS)

    async def _mark_seen(self, approval: Approval, user_id: str, what: Opened) -> None:
        """Remember it; when others opened it at the same moment, after them."""
        store, digest = self.storage.approvals, approval.digest
        while approval.status is Status.PENDING and approval.digest == digest:
            seen = with_opened(approval, user_id, what)
            if await store.mark_seen(
                approval.approval_id, digest=digest, before=approval.seen_json, seen_json=seen
            ):
                return
            approval = await store.get(approval.approval_id)

    async def _why_refused(self, approval_id: str) -> UserFacingError:
        """Why a decision was not taken, as the record says now."""
        try:
            self._check_pending(await self.storage.approvals.get(approval_id))
        except ApprovalClosedError as error:
            return error
        return OutdatedCardError(approval_id)

    @property
    def withdrawals(self) -> Withdrawals:
        """The withdrawals: all that requesters can do."""
        return Withdrawals(self.storage, self.clock)

    async def follow_up(self, approval: Approval) -> None:
        """Do what follows a decision: wake the thread, at once, and then attend to the card.

        The wake needs no lease: a process that died with the card's lease does not keep the agent
        waiting.
        """
        if approval.open and not approval.run_json:
            await self.attendance.tell_thread(approval)
        await self.attendance.attend(approval.approval_id, is_told=True)

    async def refresh(self, approval_id: str) -> None:
        """Draw a card again that may show what is no longer so: somebody has clicked on it.

        Who clicks just after a decision has not seen the card that is being drawn.

        Raises:
            RecordNotFoundError: There is no such approval.
            StoreUnavailableError: It is drawn with the next such click.
        """
        approval = await self.storage.approvals.get(approval_id)
        now, decision = self.clock(), approval.decision
        if decision is None or now - decision.at_ms > milliseconds(JUST_DECIDED):
            await self.attendance.redraw(approval_id)

    def _check_pending(self, approval: Approval) -> None:
        if approval.status is not Status.PENDING:
            raise ApprovalClosedError(approval)
        if self.clock() >= approval.expires_ms:
            raise ApprovalClosedError(approval)

    async def _note_refusal(self, approval: Approval, by: str, error: UserFacingError) -> None:
        await note_refusal(self.storage.audit, approval, self.clock(), by=by, why=str(error))
