"""Reminders and escalation of approvals without terms, such as questions.

`messages` handles all others. Each message is posted once, links to the card, and is edited when it
is obsolete. A post is stored before it is attempted, so it can be searched for after a crash. A new
reminder replaces the previous message, because an edited message sends no notification.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from bot.approvals.changes import backups_told, opened_to_backups, reminded
from bot.approvals.due.quiet_hours import DoNotDisturb, NeverQuiet
from bot.approvals.due.visit import Visit, write_held
from bot.approvals.model import UNKNOWN_TS, Approval, Kind, Status
from bot.approvals.queries import ApprovalCollection
from bot.audit.entries import note_escalation, note_reminder
from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.ports.notifier import Notifier
from bot.ports.process import Clock
from storage.audit import AuditStore

logger = logging.getLogger(__name__)

ESCALATION = "escalation"
"""Marker in `Visit.fresh`: the escalation began in this pass."""


@dataclass(frozen=True, slots=True)
class Reminders:
    """Reminds and escalates, and removes the messages at the end."""

    approvals: ApprovalCollection
    audit: AuditStore
    notifier: Notifier
    clock: Clock
    remind_after: timedelta
    consideration: DoNotDisturb = field(default_factory=NeverQuiet)

    async def step(self, approval: Approval, visit: Visit, now: int) -> Approval:
        """Store the escalation to backup people if it is due, before notifying them."""
        if approval.escalated_ms is None:
            visit.fresh.add(ESCALATION)
        if approval.status is Status.PENDING and now >= (approval.escalate_ms or now + 1):
            write = partial(opened_to_backups, now_ms=now)
            newest = await write_held(self.approvals, approval, write)
            if newest is None:  # the lease may be lost: keep our token, not that of its holder
                newest = await self.approvals.get(approval.approval_id)
                newest = newest.changed(fence=approval.fence)
            approval = newest
        if approval.escalated_ms is not None and not approval.escalation_told:
            # The process that escalated may have crashed before this.
            await note_escalation(self.audit, approval, approval.escalated_ms)
        return approval

    def is_step(self, approval: Approval, visit: Visit, now: int) -> bool:  # noqa: ARG002 - see Messages
        """Whether people are notified now."""
        is_asked = approval.escalated_ms is not None and not approval.escalation_told
        return is_asked or now >= (approval.remind_ms or now + 1)

    def next_right(self, approval: Approval) -> int:
        """Return when rights change next, with or without a message."""
        return approval.changed(remind_ms=None).next_ms

    async def see_to(self, approval: Approval, visit: Visit, now: int) -> int | None:
        """Update the messages of an approval; return when to check again.

        Raises:
            DeliveryError: Slack refused a message for now.
        """
        if approval.status is not Status.PENDING:
            await self.conclude(approval)
            return None
        await self.take_back(approval)
        look_first = ESCALATION not in visit.fresh
        approval = await self.ask_backups(approval, look_first=look_first)
        return await self.remind(approval, now)

    async def ask_backups(self, approval: Approval, *, look_first: bool) -> Approval:
        """Post the missing message to the backup people.

        Without a card there is no button to click, so the message waits for the card. A message
        that Slack refuses for good is retried with the next due work.

        Returns:
            The approval; marked as notified if the message existed before, so that a due
            reminder mentions the backup people, too.

        Raises:
            DeliveryError: Slack refused the message for now.
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
        return approval if is_new else approval.changed(escalation_told=True)

    async def _mark_told(self, approval: Approval, ts: str) -> None:
        write = partial(backups_told, digest=approval.digest, escalation_ts=ts)
        if not await write_held(self.approvals, approval, write):
            # An edit came first: remove the message.
            await write_held(self.approvals, approval, lambda one: one.changed(escalation_ts=ts))

    async def remind(self, approval: Approval, now: int) -> int:
        """Send a due reminder; return when to check again.

        Raises:
            DeliveryError: Slack refused the message for now.
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
        return approval.changed(remind_ms=remind_ms).next_ms

    def is_quiet(self, approval: Approval, now: int) -> bool:
        """Whether no message must be posted, edited or removed."""
        is_told = approval.escalated_ms is None or approval.escalation_told
        has_none = not approval.reminder_ts and not approval.escalation_ts
        is_due = approval.status is Status.PENDING and now >= (approval.remind_ms or now + 1)
        return is_told and has_none and not is_due

    async def take_back(self, approval: Approval) -> None:
        """Remove messages to people who are no longer asked after an edit.

        Raises:
            DeliveryError: Slack refused the removal for now.
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
        """Remove an obsolete message; ignore Slack's refusal."""
        try:
            await self.notifier.take_back(approval.changed(reminder_ts=ts), reminder=True)
        except DeliveryError as error:
            logger.warning(
                "could not remove a message below a card, it stays: %s",
                error,
                extra={"action": "removal_failed"},
            )

    async def conclude(self, approval: Approval) -> None:
        """Remove the messages below an ended card, which shows the outcome.

        Raises:
            DeliveryError: Slack refused the removal for now.
        """
        # Backups may have been asked while the decision arrived.
        if approval.escalated_ms is not None and not approval.escalation_told:
            approval = approval.changed(escalation_ts=approval.escalation_ts or UNKNOWN_TS)
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
        gone = {"reminder_ts": reminder, "escalation_ts": escalation}
        changes = {name: "" for name, is_gone in gone.items() if is_gone}
        await write_held(self.approvals, approval, lambda one: one.changed(**changes))

    async def _post(
        self, approval: Approval, now: int, remind_ms: int | None, *, was_begun: bool
    ) -> None:
        if approval.reminder_ts and not was_begun:
            await self.notifier.take_back(approval, reminder=True)
        if was_begun:  # the process may have crashed before recording it
            await note_reminder(self.audit, approval.reminders, approval, now)

        async def go() -> bool:
            if was_begun:  # counted already
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
        await write_held(self.approvals, approval, lambda one: one.changed(reminder_ts=ts))

    async def _count(self, approval: Approval, remind_ms: int | None, *, ts: str) -> bool:
        digest = approval.digest
        write = partial(reminded, digest=digest, remind_ms=remind_ms, reminder_ts=ts)
        return await write_held(self.approvals, approval, write) is not None

    async def _is_ours(self, approval: Approval) -> bool:
        """Whether it is pending for the same people, under this process's lease."""
        newest = await self.approvals.get(approval.approval_id)
        ours = (newest.fence, newest.digest) == (approval.fence, approval.digest)
        return ours and newest.status is Status.PENDING

    def _next(self, approval: Approval, now: int) -> int | None:
        later = now + (milliseconds(self.remind_after) << (approval.reminders + 1))
        return later if later < approval.expires_ms else None
