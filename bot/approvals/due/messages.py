"""Send and remove the reminder messages of an approval.

Messages are stored before they are sent; see `EscalationPlanner`. After a crash, a message is
searched for before it is sent again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from bot.approvals.changes import with_places
from bot.approvals.due.approval_pass import ApprovalPass, write_held
from bot.approvals.due.batch_cards import SharedCards, stays
from bot.approvals.due.wanted import ALERT, REMINDER, Wanted, wanted
from bot.audit.entries import note_handover, note_reminded
from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.ports.notifier import Notifier
from bot.ports.people import is_person
from bot.ports.process import Clock
from bot.records.approval import Approval, ApprovalMessage, Status
from bot.records.approval_queries import ApprovalCollection
from storage.audit import AuditStore

logger = logging.getLogger(__name__)

SOON = timedelta(seconds=1)
"""Retry interval while a message is delayed."""
AGAIN = timedelta(seconds=10)
"""Interval at which a message about several approvals is checked for removal."""
_NOTES = {REMINDER: note_reminded, "handover": note_handover}


class Alarming(Protocol):
    """Sends break-glass alerts; see `BreakGlassAlert`."""

    async def __call__(self, approval: Approval) -> None:
        """Send all alerts, once per process."""
        ...

    def take_untold(self, approval: Approval) -> tuple[str, ...]:
        """Remove and return the people whose alert failed."""
        ...

    async def again(self, approval: Approval, to: str) -> None:
        """Send one alert again."""
        ...


class NoAlarm:
    """Sends no alerts."""

    async def __call__(self, approval: Approval) -> None:
        """Do nothing."""

    def take_untold(self, approval: Approval) -> tuple[str, ...]:  # noqa: ARG002 - see Alarming
        """Return no people."""
        return ()

    async def again(self, approval: Approval, to: str) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Sends, removes and finishes the messages of an approval.

    Args:
        approvals: Stored approvals.
        audit: Records who was notified.
        notifier: Sends messages.
        clock: The time now.
        alarm: Sends break-glass alerts.
        shared: Batch cards; None without batch cards.
    """

    approvals: ApprovalCollection
    audit: AuditStore
    notifier: Notifier
    clock: Clock
    alarm: Alarming
    shared: SharedCards | None = None

    async def keep_untold(self, approval: Approval) -> Approval:
        """Store the people whose break-glass alert failed, to retry it.

        A person alerted meanwhile has the message, which is searched for before another attempt.
        """
        untold = self.alarm.take_untold(approval)
        if not untold:
            return approval
        messages = (*approval.messages, *map(_untold, untold))
        await write_held(self.approvals, approval, lambda stored: stored.changed(messages=messages))
        return approval.changed(messages=messages)

    async def update_messages(self, approval: Approval, worker_pass: ApprovalPass) -> int | None:
        """Update the messages of an approval.

        Returns:
            When to check again, or None.

        Raises:
            DeliveryError: Slack refused a message for now. The release stores earlier results.
        """
        items = await self._on_card(approval)
        for message in approval.reminders:
            try:
                updated = await self._make(approval, message, worker_pass, items)
            except DeliveryError as error:
                if not error.is_permanent:
                    raise
                logger.warning(
                    "could not deliver a message about a request: %s",
                    error,
                    extra={"action": "nudge_failed"},
                )
                updated = None
            if updated != message:
                worker_pass.places[message.key] = updated
        kept = with_places(approval, worker_pass.places).reminders
        return self._retry_ms(approval, kept) if items else None

    def _retry_ms(self, approval: Approval, kept: Sequence[ApprovalMessage]) -> int | None:
        """Return when to check messages about several approvals again."""
        if any(not (message.is_posted or message.user) for message in kept):
            return self.clock() + milliseconds(SOON)
        is_over = approval.status is not Status.PENDING
        return self.clock() + milliseconds(AGAIN) if is_over and kept else None

    async def _on_card(self, approval: Approval) -> Sequence[Approval]:
        """Return all approvals on the card, if a message in their thread needs work."""
        if self.shared is None or not stays(approval):
            return ()
        in_thread = [
            message for message in approval.reminders if not message.user and message.kind != ALERT
        ]
        if all(wanted(approval, message) is Wanted.AS_IS for message in in_thread):
            return ()
        return await self.shared.on_card(approval)

    async def _make(
        self,
        approval: Approval,
        message: ApprovalMessage,
        worker_pass: ApprovalPass,
        items: Sequence[Approval],
    ) -> ApprovalMessage | None:
        """Make Slack show what is wanted; return the message, or None if it is finished."""
        match wanted(approval, message, items):
            case Wanted.AS_IS:
                return message
            case Wanted.SENT:
                return await self._send(approval, message, worker_pass, items)
            case Wanted.ALERTED:
                await self.alarm.again(approval, message.user or message.channel)
            case Wanted.DELETED:
                await self.notifier.remove(approval, message)
            case Wanted.CLOSED:
                await self.notifier.close(approval, message)
            case Wanted.DROPPED:
                pass
        return None

    async def _send(
        self,
        approval: Approval,
        message: ApprovalMessage,
        worker_pass: ApprovalPass,
        items: Sequence[Approval],
    ) -> ApprovalMessage:
        """Send a message; in the thread of a batch card, it is about all pending approvals."""
        about = first = approval
        if self.shared is not None and items and not message.user:
            about = await self.shared.as_one(approval, items)
            if approval.status is not Status.PENDING:
                first = next(other for other in items if other.status is Status.PENDING)
        look_first = not worker_pass.is_first(approval, message.key)
        may_post = self._may_post(first, message)
        return (
            await self.notifier.nudge(about, message, look_first=look_first, may_post=may_post)
            or message
        )

    def _may_post(
        self, approval: Approval, message: ApprovalMessage
    ) -> Callable[[], Awaitable[bool]]:
        async def may_post() -> bool:
            newest = await self.approvals.get(approval.approval_id)
            ours = (newest.fence, newest.digest, newest.schedule_ms)
            if ours != (approval.fence, approval.digest, approval.schedule_ms):
                return False
            if newest.status is not Status.PENDING:
                return False
            if note := _NOTES.get(message.kind):
                await note(self.audit, approval, message.key, self.clock())
            return True

        return may_post


def _untold(name: str) -> ApprovalMessage:
    user = name if is_person(name) else ""
    channel = "" if user else name
    key = f"{ALERT}:{name}"
    return ApprovalMessage(key=key, kind=ALERT, user=user, channel=channel)


class Stepping(Protocol):
    """Reminds and escalates; see `EscalationPlanner`."""

    async def take_step(self, approval: Approval, now_ms: int) -> tuple[Approval, frozenset[str]]:
        """Store the due step."""
        ...

    def next_ms(self, approval: Approval) -> int:
        """Return when the next step is due."""
        ...

    async def next_look_ms(self, approval: Approval) -> int:
        """Return when to check again."""
        ...


@dataclass(frozen=True, slots=True)
class TermsSteps:
    """The reminders and the escalation in one pass over an approval."""

    planner: Stepping
    messages: Messages
    clock: Clock

    async def step(self, approval: Approval, worker_pass: ApprovalPass, now_ms: int) -> Approval:
        """Store the due step; the caller sends its messages."""
        if approval.status is not Status.PENDING:
            return approval
        stepped, fresh = await self.planner.take_step(approval, now_ms)
        worker_pass.fresh.update(fresh)
        worker_pass.is_step = stepped is not approval
        return stepped

    def next_right(self, approval: Approval) -> int:
        """Return when rights change next; soon if a message must be sent."""
        return max(self.planner.next_ms(approval), self.clock() + milliseconds(SOON))

    async def update_messages(self, approval: Approval, worker_pass: ApprovalPass) -> int | None:
        """Update the messages; return when to check again.

        Raises:
            DeliveryError: Slack refused a message for now. The release stores earlier results.
        """
        again_ms = await self.messages.update_messages(approval, worker_pass)
        if approval.status is not Status.PENDING:
            return again_ms
        next_ms = await self.planner.next_look_ms(approval)
        return next_ms if again_ms is None else min(next_ms, again_ms)
