"""The use cases of approvals: request, decide, attend (redraw, wake, remind, escalate, expire).

The order is always record, act, redraw: a decision is one conditional write before anything else
happens; then the thread is woken; then the card is drawn again from the record. Each step may be
repeated without harm, and the scheduler repeats what a crash left open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from cachetools import LRUCache

from bot.clock import milliseconds
from bot.core.audit import (
    note_decision,
    note_escalation,
    note_opened,
    note_refusal,
    note_request,
    note_undeliverable,
)
from bot.core.reminders import Nudges
from bot.core.unseen import Opened, guesses, has_opened, is_yes, with_opened
from bot.core.withdrawals import Withdrawals
from bot.core.work import ATTENDANCE, CARD_RETRY, LEASE, LOOK_PATIENCE, ClaimedWork, Hold
from bot.errors import (
    REFUSALS,
    ApprovalClosedError,
    DeliveryError,
    NotSeenError,
    OutdatedCardError,
    UnknownApprovalError,
    UserFacingError,
)
from bot.observability.context import about
from bot.people.access import Access, check_agreed_once, check_agreement
from bot.people.outlook import Outlook
from bot.ports import Actor, Clock, Notifier
from bot.questions.base import check_decision
from storage.base import Storage
from storage.errors import RecordConflictError, RecordNotFoundError
from storage.records import Approval, Decision, DrawnCard, Kind, Status

logger = logging.getLogger(__name__)

LOOK_AGAIN = timedelta(minutes=1)
"""While nobody can decide: people come back."""
JUST_READ = timedelta(seconds=1)
"""The age up to which a record is drawn as it was read."""
JUST_DECIDED = timedelta(seconds=5)
_REMEMBERED = 1_000
"""Decisions of which this process knows that they are in the audit; others go in once more."""
MOST_AT_ONCE = 500
"""The most cards drawn again when Slack lets the app in; the others follow by themselves."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome of an attendance.

    Attributes:
        seen: The record as last read.
        due_ms: When it needs attention again; None when it does not.
        failed: Whether that is because of a fault.
        drawn: The card as it was drawn, when that is not on record yet.
    """

    seen: Approval
    due_ms: int | None
    failed: bool = False
    drawn: DrawnCard | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    """One attendance under a lease.

    Attributes:
        hold: The record as claimed.
        is_born: Whether the lease is the one that a new approval has: its request is in the audit,
            and its post is taken for begun.
        is_told: Whether its decision is in the audit, and the thread knows of it.
    """

    hold: Hold[Approval]
    is_born: bool = False
    is_told: bool = False


@dataclass(slots=True)
class _Flight:
    """An attendance that goes on in this process.

    Attributes:
        is_wanted: Whether somebody wanted another one meanwhile.
        over: Set at its end.
    """

    is_wanted: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approvals: all that people and the clock do with them.

    Args:
        storage: Where records are kept.
        access: Who may decide.
        notifier: How people are told.
        clock: The time now.
        owner: Name of this process in leases.
        wake: Starts the work of a thread in this process, without waiting for it.
        remind_after: From one reminder to the next; doubled each time.
        folded: Tells whether the card of a record leaves something out.
    """

    storage: Storage
    access: Access
    notifier: Notifier
    clock: Clock
    owner: str
    wake: Callable[[str], None]
    remind_after: timedelta
    folded: Callable[[Approval], bool]
    _flights: dict[str, _Flight] = field(default_factory=dict)
    _noted: LRUCache[str, int] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    @property
    def _nudges(self) -> Nudges:
        stores = self.storage.approvals, self.storage.audit
        return Nudges(*stores, self.notifier, self.clock, self.remind_after)

    def born(self, approval: Approval) -> Approval:
        """Give a new approval, before it is put on record, a lease of this process to draw it.

        So no claim is needed; and as its post is taken for begun, it is looked for when this
        process dies.
        """
        until_ms = self.clock() + milliseconds(LEASE)
        return replace(
            approval,
            leased_by=self.owner,
            leased_until_ms=until_ms,
            due_ms=until_ms,
            fence=1,
            post_tried=True,
        )

    async def request(self, approvals: Sequence[Approval]) -> None:
        """Show the cards of new approvals, in order: they are on record, with their requests.

        Args:
            approvals: As `born` gave them.

        Raises:
            StoreUnavailableError: Their leases end by themselves, and the work is due again.
        """
        for approval in approvals:
            hold = self._work.born(approval)
            if hold is None:
                await self._give_back(approval)
            if hold is None or not await self._visit(_Visit(hold=hold, is_born=True)):
                await self.attend(approval.approval_id)

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

    def is_noted(self, approval: Approval) -> bool:
        """Whether this process has put its decision into the audit."""
        at_ms: int | None = self._noted.get(approval.approval_id)
        return approval.decision is not None and approval.decision.at_ms == at_ms

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
            await self._tell_thread(approval)
        await self.attend(approval.approval_id, is_told=True)

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
            await self._redraw(approval_id)

    async def catch_up(self) -> None:
        """Draw the cards that Slack refused together with the app: it may let it in now.

        Raises:
            StoreUnavailableError: Each of them is due again by itself.
        """
        waiting = await self.storage.approvals.undelivered(reasons=REFUSALS, limit=MOST_AT_ONCE)
        for approval in waiting:
            await self._redraw(approval.approval_id)

    async def _redraw(self, approval_id: str) -> None:
        if await self.storage.approvals.redraw(approval_id, now_ms=self.clock()):
            await self.attend(approval_id)

    async def attend(self, approval_id: str, *, is_told: bool = False) -> None:
        """Do all that is due for one approval; nothing when another process has it.

        Of what this process does for an approval at a time, one goes on and the others wait for it:
        it sees what they came for when it gives its lease back, or else looks again.

        Args:
            approval_id: Which.
            is_told: Whether its decision is in the audit, and the thread knows of it.

        Raises:
            StoreUnavailableError: The lease ends by itself, and the work is due again.
        """
        flight = self._flights.get(approval_id)
        if flight is not None:
            flight.is_wanted = True
            await flight.over.wait()
            return
        flight = self._flights[approval_id] = _Flight(is_wanted=True)
        try:
            while flight.is_wanted:
                flight.is_wanted = False
                await self._work.do(
                    approval_id, lambda hold: self._visit(_Visit(hold=hold, is_told=is_told))
                )
        finally:
            del self._flights[approval_id]
            flight.over.set()

    @property
    def _work(self) -> ClaimedWork[Approval]:
        return ClaimedWork(
            claim=self.storage.approvals.claim,
            owner=self.owner,
            clock=self.clock,
            attendance=ATTENDANCE,
        )

    async def _give_back(self, approval: Approval) -> None:
        """End the lease that an approval was born with: what is left of it may not be enough."""
        now = self.clock()
        await self.storage.approvals.release(
            approval.approval_id,
            fence=approval.fence,
            revision=approval.revision,
            due_ms=now,
            now_ms=now,
        )

    async def _visit(self, visit: _Visit) -> bool:
        """Do what is due under a lease, and give that back; whether nothing more is due now."""
        approval = visit.hold.record
        with about(
            thread_id=approval.thread_id,
            approval_id=approval.approval_id,
            interrupt_id=approval.interrupt_id,
        ):
            outcome = await self._attend_in_time(visit)
        return await self.storage.approvals.release(
            approval.approval_id,
            fence=approval.fence,
            revision=outcome.seen.revision,
            due_ms=outcome.due_ms,
            now_ms=self.clock(),
            failed=outcome.failed,
            drawn=outcome.drawn,
        )

    async def _attend_in_time(self, visit: _Visit) -> _Outcome:
        try:
            async with asyncio.timeout_at(visit.hold.deadline):
                return await self._attend_claimed(visit.hold.record, visit)
        except TimeoutError:
            return self._later(visit.hold.record, DeliveryError("attend", "no answer in time"))

    async def _attend_claimed(self, approval: Approval, visit: _Visit) -> _Outcome:
        """Act on the record as claimed."""
        now, was_escalated = self.clock(), approval.escalated_ms is not None
        # Whoever put it on record may have died right after.
        if approval.drawn_revision == 0 and not visit.is_born:
            await note_request(self.storage.audit, approval)
        if approval.status is Status.PENDING and now >= approval.expires_ms:
            approval = await self._expire(approval, now)
        approval = await self._escalate(approval, now)
        if approval.status is Status.PENDING:
            approval = await self._look_ahead(approval, now)
        elif approval.open and not approval.run_json and not visit.is_told:
            await self._tell_thread(approval)  # what is closed, or has begun to run, knows it
        drawn: DrawnCard | None = None
        try:
            approval, drawn = await self._draw(approval, visit)
            if drawn is not None and not self._nudges.is_quiet(approval, now):
                await self._mark(approval, drawn.card_ts, drawn.revision)  # what follows may fail
                drawn = None
            due_ms = await self._nudge(approval, now, look_first=was_escalated)
            return _Outcome(approval, due_ms, drawn=drawn)
        except DeliveryError as error:
            return self._later(approval, error)

    async def _nudge(self, approval: Approval, now: int, *, look_first: bool) -> int | None:
        """See to the messages beside the card; return when it needs attention again.

        Raises:
            DeliveryError: Slack did not take one now.
        """
        if approval.status is not Status.PENDING:
            await self._nudges.conclude(approval)
            return None
        await self._nudges.take_back(approval)
        approval = await self._nudges.ask_backups(approval, look_first=look_first)
        due_ms = await self._nudges.remind(approval, now)
        again_ms = now + milliseconds(LOOK_AGAIN) if approval.stuck else due_ms
        return min(due_ms, again_ms)

    async def _look_ahead(self, approval: Approval, now: int) -> Approval:
        """Find out whether anybody can decide: at each step of the ladder, and while it is stuck.

        A look-up that fails, or takes long, changes nothing.
        """
        is_step = now >= (approval.remind_ms or now + 1) or (
            approval.escalated_ms is not None and not approval.escalation_told
        )
        if approval.kind is Kind.QUESTION or not (is_step or approval.stuck):
            return approval
        try:
            async with asyncio.timeout(LOOK_PATIENCE.total_seconds()):
                missing = await Outlook(self.access.directory).missing(approval)
        except TimeoutError:
            return approval
        stuck = str(missing) if missing is not None else ""
        if stuck == approval.stuck:
            return approval
        marked = await self.storage.approvals.mark_stuck(
            approval.approval_id, fence=approval.fence, digest=approval.digest, stuck=stuck
        )
        return marked or approval

    def _later(self, approval: Approval, error: DeliveryError) -> _Outcome:
        """Try again when the fault may have passed; escalation and expiry are never late by it."""
        logger.warning(
            "card not shown: %s",
            error,
            extra={"action": "card_failed", "approval_id": approval.approval_id},
        )
        wait_ms = CARD_RETRY.wait_ms(approval.attempts, approval.approval_id, error)
        due_ms = self.clock() + wait_ms
        if approval.status is Status.PENDING:
            due_ms = min(due_ms, replace(approval, remind_ms=None).next_ms)
        # A call that only has to wait its turn has not failed.
        return _Outcome(approval, due_ms, failed=error.retry_after is None)

    async def _expire(self, approval: Approval, now: int) -> Approval:
        decision = Decision(status=Status.EXPIRED, by="", at_ms=now)
        try:
            return await self.storage.approvals.decide(
                approval.approval_id, decision, digest=approval.digest
            )
        except RecordConflictError:
            return await self.storage.approvals.get(approval.approval_id)

    async def _escalate(self, approval: Approval, now: int) -> Approval:
        """Let the backup people decide, too, if it is time: on record before anybody is told."""
        if approval.status is Status.PENDING and now >= (approval.escalate_ms or now + 1):
            store, name = self.storage.approvals, approval.approval_id
            newest = await store.escalate(name, fence=approval.fence, now_ms=now)
            newest = newest or await store.get(name)
            approval = replace(newest, fence=approval.fence)  # never that of who took the lease
        if approval.escalated_ms is not None and not approval.escalation_told:
            # Whoever escalated it may have died right after.
            await note_escalation(self.storage.audit, approval, approval.escalated_ms)
        return approval

    async def _tell_thread(self, approval: Approval) -> None:
        """Put on record how it was decided, and wake its thread."""
        decision = approval.decision
        if decision is not None:
            await note_decision(self.storage.audit, approval, decision)
            self._noted[approval.approval_id] = decision.at_ms
        await self.storage.threads.wake(approval.thread_id, now_ms=self.clock())
        self.wake(approval.thread_id)

    async def _draw(self, approval: Approval, visit: _Visit) -> tuple[Approval, DrawnCard | None]:
        """Bring the card to what the record says; return the record, and what was drawn.

        A card that Slack will never take is marked so. It is tried again with what is due anyway:
        the next reminder, a decision, the expiry, or a click on it. One that it does not take as
        long as it refuses the app is marked, too, and tried again until it does.

        Raises:
            DeliveryError: Slack did not take it now.
        """
        if approval.drawn_revision >= approval.revision:
            return approval, None
        try:
            drawn = await self._draw_changed(approval, visit)
        except DeliveryError as error:
            if error.is_permanent:
                return await self._note_undeliverable(approval, error), None
            if error.is_refusal:
                await self._note_undeliverable(approval, error)
            raise
        card_ts = drawn.card_ts if drawn is not None else ""
        return replace(approval, undeliverable="", card_ts=card_ts), drawn

    async def _draw_changed(self, approval: Approval, visit: _Visit) -> DrawnCard | None:
        """Update the card, or post it; return what is drawn, None when the lease was lost."""

        async def newest() -> Approval:
            # Read again when it had to wait. What has changed a moment ago is drawn right after:
            # the release sees it.
            is_new = self.clock() - visit.hold.since_ms <= milliseconds(JUST_READ)
            return approval if is_new else await self.storage.approvals.get(approval.approval_id)

        look_first = approval.post_tried and not visit.is_born
        if approval.card_ts:
            drawn = await self.notifier.update_card(approval, newest=newest)
            if drawn is not None:
                return DrawnCard(card_ts=approval.card_ts, revision=drawn.revision)
            # Gone. This is recorded before another is posted, so that a crash in between
            # leaves a post that was tried, which is looked for, and not a card to be updated.
            if not await self._mark(approval, ""):
                return None
            look_first = False
        if not visit.is_born and not await self._mark(approval, None):
            return None
        drawn = await self.notifier.post_card(approval, look_first=look_first, newest=newest)
        return DrawnCard(card_ts=drawn.card_ts, revision=drawn.revision)

    async def _mark(
        self, approval: Approval, card_ts: str | None, drawn_revision: int | None = None
    ) -> bool:
        return await self.storage.approvals.mark_card(
            approval.approval_id,
            fence=approval.fence,
            card_ts=card_ts,
            drawn_revision=drawn_revision,
        )

    async def _note_undeliverable(self, approval: Approval, error: DeliveryError) -> Approval:
        if approval.undeliverable == error.reason:
            return approval
        logger.error(
            "a card cannot be shown in Slack as it is on record%s: %s",
            "; it is tried until Slack lets the app in again" if error.is_refusal else "",
            error,
            extra={"action": "card_undeliverable", "approval_id": approval.approval_id},
        )
        await note_undeliverable(
            self.storage.audit, approval, self.clock(), method=error.method, why=error.reason
        )
        await self.storage.approvals.mark_undeliverable(
            approval.approval_id, fence=approval.fence, reason=error.reason
        )
        return replace(approval, undeliverable=error.reason)

    def _check_pending(self, approval: Approval) -> None:
        if approval.status is not Status.PENDING:
            raise ApprovalClosedError(approval)
        if self.clock() >= approval.expires_ms:
            raise ApprovalClosedError(approval)

    async def _note_refusal(self, approval: Approval, by: str, error: UserFacingError) -> None:
        await note_refusal(self.storage.audit, approval, self.clock(), by=by, why=str(error))
