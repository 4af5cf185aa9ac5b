"""The messages beside a card without terms: reminders, and the one to backup people.

Such are questions, and what earlier releases have asked; `messages` is about all others.

Each is posted once, links to the card, and is edited when there is nothing to be decided any more.
That one is about to be posted is on record before it is, so that after a crash it is looked for.
There is one reminder of a card at a time: the next one takes its place, as an edited message would
notify nobody.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta

from bot.approvals.due.quiet_hours import DoNotDisturb, NeverQuiet
from bot.approvals.due.visit import Visit
from bot.audit.entries import note_escalation, note_reminder
from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.ports.notifier import Notifier
from bot.ports.process import Clock
from storage.ports.approvals import ApprovalStore
from storage.ports.audit import AuditStore
from storage.records import UNKNOWN_TS, Approval, Kind, Status

logger = logging.getLogger(__name__)

ESCALATION = "escalation"
"""In `Visit.fresh`: the backup people were not asked before this visit."""


@dataclass(frozen=True, slots=True)
class Reminders:
    """Asks people once more, and tells them when that is over."""

    approvals: ApprovalStore
    audit: AuditStore
    notifier: Notifier
    clock: Clock
    remind_after: timedelta
    consideration: DoNotDisturb = field(default_factory=NeverQuiet)

    async def step(self, approval: Approval, visit: Visit, now: int) -> Approval:
        """Let the backup people decide, too, if it is time: on record before anybody is told."""
        if approval.escalated_ms is None:
            visit.fresh.add(ESCALATION)
        if approval.status is Status.PENDING and now >= (approval.escalate_ms or now + 1):
            store, name = self.approvals, approval.approval_id
            newest = await store.escalate(name, fence=approval.fence, now_ms=now)
            newest = newest or await store.get(name)
            approval = replace(newest, fence=approval.fence)  # never that of who took the lease
        if approval.escalated_ms is not None and not approval.escalation_told:
            # Whoever escalated it may have died right after.
            await note_escalation(self.audit, approval, approval.escalated_ms)
        return approval

    def is_step(self, approval: Approval, visit: Visit, now: int) -> bool:  # noqa: ARG002 - see Messages
        """Whether people are told something now."""
        is_asked = approval.escalated_ms is not None and not approval.escalation_told
        return is_asked or now >= (approval.remind_ms or now + 1)

    def next_right(self, approval: Approval) -> int:
        """When the rights of people begin or end next, whether or not anybody is told."""
        return replace(approval, remind_ms=None).next_ms

    async def see_to(self, approval: Approval, visit: Visit, now: int) -> int | None:
        """See to the messages beside the card; return when it needs attention again.

        Raises:
            DeliveryError: Slack did not take one now.
        """
        if approval.status is not Status.PENDING:
            await self.conclude(approval)
            return None
        await self.take_back(approval)
        look_first = ESCALATION not in visit.fresh
        approval = await self.ask_backups(approval, look_first=look_first)
        return await self.remind(approval, now)

    async def ask_backups(self, approval: Approval, *, look_first: bool) -> Approval:
        """Post the message to the backup people that is not in the thread yet.

        While the card cannot be shown there is nothing that they could click on; it is tried again
        with what is due anyway, and so is a message that Slack will never take.

        Returns:
            The approval; as told when the message stood there before, so that a reminder that is
            due now mentions the backup people, too.

        Raises:
            DeliveryError: Slack did not take it now.
        """
        if approval.escalated_ms is None or approval.escalation_told or approval.undeliverable:
            return approval
        is_new, ts = False, ""

        async def is_wanted() -> bool:
            nonlocal is_new
            is_new = True
            return await self._is_ours(approval)

        try:
            ts = await self.notifier.escalate(approval, look_first=look_first, go=is_wanted)
        except DeliveryError as error:
            if not error.is_permanent:
                raise
            logger.warning(
                "escalation message failed: %s", error, extra={"action": "escalation_failed"}
            )
            return approval
        if ts:
            await self._mark_told(approval, ts)
        return approval if is_new else replace(approval, escalation_told=True)

    async def _mark_told(self, approval: Approval, ts: str) -> None:
        name, fence = approval.approval_id, approval.fence
        if not await self.approvals.mark_escalation_told(
            name, fence=fence, digest=approval.digest, escalation_ts=ts
        ):  # an edit came first: what was posted is taken back
            await self.approvals.mark_messages(
                name, fence=fence, reminder_ts=None, escalation_ts=ts
            )

    async def remind(self, approval: Approval, now: int) -> int:
        """Remind if it is time; return when the approval needs attention next.

        Raises:
            DeliveryError: It has to wait.
        """
        was_begun = approval.reminder_ts == UNKNOWN_TS
        is_due = approval.remind_ms is not None and now >= approval.remind_ms
        if not is_due and not was_begun:
            return approval.next_ms
        if is_due and not was_begun and approval.kind is Kind.QUESTION:
            later = await self.consideration.later(approval, approval.requester_id)
            if later:
                return min(later, approval.expires_ms)
        remind_ms = self._next(approval, now) if is_due else approval.remind_ms
        if approval.undeliverable and is_due:
            await self._count(approval, remind_ms, ts=approval.reminder_ts)
        elif not approval.undeliverable:
            await self._post(approval, now, remind_ms, was_begun=was_begun)
        return replace(approval, remind_ms=remind_ms).next_ms

    def is_quiet(self, approval: Approval, now: int) -> bool:
        """Whether nothing has to be posted, edited or removed beside the card."""
        is_told = approval.escalated_ms is None or approval.escalation_told
        has_none = not approval.reminder_ts and not approval.escalation_ts
        is_due = approval.status is Status.PENDING and now >= (approval.remind_ms or now + 1)
        return is_told and has_none and not is_due

    async def take_back(self, approval: Approval) -> None:
        """Remove what asked other people than those who are asked now: an edit has changed them.

        Raises:
            DeliveryError: Slack did not take it now.
        """
        is_old = bool(approval.reminder_ts) and not approval.reminders
        was_asked = bool(approval.escalation_ts) and approval.escalated_ms is None
        if is_old:
            await self.notifier.take_back(approval, reminder=True)
        if was_asked:
            await self.notifier.take_back(approval, reminder=False)
        if is_old or was_asked:
            await self._forget(approval, reminder=is_old, escalation=was_asked)

    async def remove(self, approval: Approval, ts: str) -> None:
        """Remove a message of ours that nobody needs; it stays where Slack does not take that."""
        try:
            await self.notifier.take_back(replace(approval, reminder_ts=ts), reminder=True)
        except DeliveryError as error:
            logger.warning(
                "could not remove a message below a card, it stays: %s",
                error,
                extra={"action": "removal_failed"},
            )

    async def conclude(self, approval: Approval) -> None:
        """Remove the messages below a card: the card says how it ended.

        Raises:
            DeliveryError: Slack did not take it now.
        """
        # Who was to be asked when the decision came may have been asked all the same.
        if approval.escalated_ms is not None and not approval.escalation_told:
            approval = replace(approval, escalation_ts=approval.escalation_ts or UNKNOWN_TS)
        if approval.reminder_ts:
            await self._end(approval, reminder=True)
        if approval.escalation_ts:
            await self._end(approval, reminder=False)

    async def _end(self, approval: Approval, *, reminder: bool) -> None:
        try:
            await self.notifier.take_back(approval, reminder=reminder)
        except DeliveryError as error:
            if not error.is_permanent:
                raise
            logger.warning(
                "could not remove a message below a card, it stays: %s",
                error,
                extra={"action": "reminder_failed"},
            )
        await self._forget(approval, reminder=reminder, escalation=not reminder)

    async def _forget(self, approval: Approval, *, reminder: bool, escalation: bool) -> None:
        await self.approvals.mark_messages(
            approval.approval_id,
            fence=approval.fence,
            reminder_ts="" if reminder else None,
            escalation_ts="" if escalation else None,
        )

    async def _post(
        self, approval: Approval, now: int, remind_ms: int | None, *, was_begun: bool
    ) -> None:
        if approval.reminder_ts and not was_begun:
            await self.notifier.take_back(approval, reminder=True)
        if was_begun:  # who counted it may have died before it was noted
            await note_reminder(self.audit, approval.reminders, approval, now)

        async def go() -> bool:
            if was_begun:  # it is counted already
                return await self._is_ours(approval)
            if not await self._count(approval, remind_ms, ts=UNKNOWN_TS):
                return False
            await note_reminder(self.audit, approval.reminders + 1, approval, now)
            return True

        ts = ""
        try:
            ts = await self.notifier.remind(approval, look_first=was_begun, go=go)
        except DeliveryError as error:
            if not error.is_permanent:
                raise
            logger.warning("reminder failed: %s", error, extra={"action": "reminder_failed"})
        await self.approvals.mark_messages(
            approval.approval_id, fence=approval.fence, reminder_ts=ts, escalation_ts=None
        )

    async def _count(self, approval: Approval, remind_ms: int | None, *, ts: str) -> bool:
        return await self.approvals.mark_reminded(
            approval.approval_id,
            fence=approval.fence,
            digest=approval.digest,
            remind_ms=remind_ms,
            reminder_ts=ts,
        )

    async def _is_ours(self, approval: Approval) -> bool:
        """Whether it still waits, for the same people, and this process has its lease."""
        newest = await self.approvals.get(approval.approval_id)
        ours = (newest.fence, newest.digest) == (approval.fence, approval.digest)
        return ours and newest.status is Status.PENDING

    def _next(self, approval: Approval, now: int) -> int | None:
        later = now + (milliseconds(self.remind_after) << (approval.reminders + 1))
        return later if later < approval.expires_ms else None
