"""The messages of the ladder beside the cards: sent once, and gone when they have no use any more.

All of them are on record before they are sent: see `EscalationPlanner`. One that a crash left open
is looked for before it is sent again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from bot.approvals.due.batch_cards import SharedCards, stays
from bot.approvals.due.escalation_state import since_of
from bot.approvals.due.visit import Visit, at_message, read_beside, write_beside
from bot.audit.entries import note_handover, note_reminded
from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.people.recipient_ids import is_person
from bot.ports.notifier import Notifier, SideMessage
from bot.ports.process import Clock
from storage.ports.approvals import ApprovalStore
from storage.ports.audit import AuditStore
from storage.records import UNKNOWN_TS, Approval, Status

logger = logging.getLogger(__name__)

SOON = timedelta(seconds=1)
"""While a message has to wait, what is due by the clock is looked at again so soon."""
AGAIN = timedelta(seconds=10)
"""While a message about several stays, it is looked at again after this: all may be over."""
REMINDER = "reminder"
ALERT = "alert"
_NOTES = {REMINDER: note_reminded, "handover": note_handover}


class Alarming(Protocol):
    """Tells people that somebody let a call run without them: see `BreakGlassAlert`."""

    async def __call__(self, approval: Approval) -> None:
        """Tell all of them, once in this process."""
        ...

    def take_untold(self, approval: Approval) -> tuple[str, ...]:
        """Those whom this process could not tell."""
        ...

    async def again(self, approval: Approval, to: str) -> None:
        """Tell one of them."""
        ...


class NoAlarm:
    """There is nobody to be told."""

    async def __call__(self, approval: Approval) -> None:
        """See `Alarming`."""

    def take_untold(self, approval: Approval) -> tuple[str, ...]:  # noqa: ARG002 - see Alarming
        """See `Alarming`."""
        return ()

    async def again(self, approval: Approval, to: str) -> None:
        """See `Alarming`."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Sends, removes and concludes the nudges of an approval.

    Args:
        approvals: Where records are kept.
        audit: Where it is noted who was told.
        notifier: How people are told.
        clock: The time now.
        alarm: Tells people of an emergency.
        shared: The cards of several; None where each approval has one of its own.
    """

    approvals: ApprovalStore
    audit: AuditStore
    notifier: Notifier
    clock: Clock
    alarm: Alarming
    shared: SharedCards | None = None

    def is_quiet(self, approval: Approval) -> bool:
        """Whether nothing has to be sent, changed or removed beside the cards."""
        messages = read_beside(approval.messages_json)
        if approval.status is not Status.PENDING:
            return not messages
        return not any(self._is_open(approval, one, messages) for one in messages)

    async def keep_untold(self, approval: Approval) -> Approval:
        """Put on record who has not heard of an emergency: they are told as long as Slack refuses.

        Whoever is told meanwhile has the message, which is searched before it is sent again.
        """
        untold = self.alarm.take_untold(approval)
        if not untold:
            return approval
        beside = [*read_beside(approval.messages_json), *map(_untold, untold)]
        text = write_beside(beside)
        await self.approvals.mark_beside(
            approval.approval_id, fence=approval.fence, messages_json=text
        )
        return replace(approval, messages_json=text)

    async def see_to(self, approval: Approval, visit: Visit) -> int | None:
        """See to the messages beside the cards.

        Returns:
            When to look again at one that waits for others, or stays for them.

        Raises:
            DeliveryError: Slack did not take one now. What was done before is on record.
        """
        messages = read_beside(approval.messages_json)
        kept, fault = list(messages), None
        items = await self._on_card(approval, messages)
        for message in messages:
            if not self._is_open(approval, message, messages):
                continue
            try:
                found = await self._handle_any(approval, message, messages, visit, items)
            except DeliveryError as error:
                if not error.is_permanent:
                    fault = error
                    break
                logger.warning(
                    "could not deliver a message about a request: %s",
                    error,
                    extra={"action": "nudge_failed"},
                )
                found = None
            place = kept.index(message)
            kept[place : place + 1] = [] if found is None else [found]
        if tuple(kept) != messages:
            await self.approvals.mark_beside(
                approval.approval_id, fence=approval.fence, messages_json=write_beside(kept)
            )
        if fault is not None:
            raise fault
        return self._again(approval, kept) if items else None

    def _again(self, approval: Approval, kept: Sequence[SideMessage]) -> int | None:
        """When to look again at messages about several."""
        if any(one.ts in {"", UNKNOWN_TS} and not one.user for one in kept):
            return self.clock() + milliseconds(SOON)
        is_over = approval.status is not Status.PENDING
        return self.clock() + milliseconds(AGAIN) if is_over and kept else None

    async def _on_card(
        self, approval: Approval, messages: tuple[SideMessage, ...]
    ) -> Sequence[Approval]:
        """All that is on one card with it, where a message in their thread needs something."""
        in_thread = [one for one in messages if not one.user and one.kind != ALERT]
        is_open = any(self._is_open(approval, one, messages) for one in in_thread)
        if self.shared is None or not stays(approval) or not is_open:
            return ()
        return await self.shared.on_card(approval)

    async def _handle_any(
        self,
        approval: Approval,
        message: SideMessage,
        messages: tuple[SideMessage, ...],
        visit: Visit,
        items: Sequence[Approval],
    ) -> SideMessage | None:
        if items and not message.user and message.kind != ALERT:
            return await self._handle_shared(approval, message, messages, visit, items)
        return await self._handle(approval, message, messages, visit)

    async def _handle_shared(
        self,
        approval: Approval,
        message: SideMessage,
        messages: tuple[SideMessage, ...],
        visit: Visit,
        items: Sequence[Approval],
    ) -> SideMessage | None:
        """See to a message in the thread about one card of several: one of them speaks for all.

        That is the first that waits. What it has sent stays until nothing on the card waits. What
        it was to send when it was decided is sent all the same: the others rely on it.
        """
        assert self.shared is not None  # noqa: S101 - there are items
        waiting = [one for one in items if one.status is Status.PENDING]
        is_old = message.since_ms != since_of(approval) or not self._is_last(message, messages)
        about = await self.shared.as_one(approval, items)
        if is_old or not waiting:
            return await self._handle(approval if is_old else about, message, messages, visit)
        if message.ts not in {"", UNKNOWN_TS}:
            return message
        first = waiting[0]
        if approval.status is Status.PENDING and first.approval_id != approval.approval_id:
            return None if _has_come_as_far(first, approval) else message
        is_new = message.key in visit.fresh or visit.is_born
        go = self._go(approval if first.approval_id == approval.approval_id else first, message)
        sent = await self.notifier.nudge(about, message, look_first=not is_new, go=go)
        return at_message(message, sent) if sent is not None else message

    async def _handle(
        self,
        approval: Approval,
        message: SideMessage,
        messages: tuple[SideMessage, ...],
        visit: Visit,
    ) -> SideMessage | None:
        """Send, remove or conclude a message; return it as it is then, None when it is over."""
        if message.kind == ALERT:
            await self.alarm.again(approval, message.user or message.channel)
            return None
        if not self._is_wanted(approval, message, messages):
            is_over = approval.status is not Status.PENDING and self._is_last(message, messages)
            if not (is_over and message.user):  # in a thread, its card says how it ended
                await self.notifier.remove(approval, message)
            else:
                await self.notifier.close(approval, message)
            return None
        is_new = message.key in visit.fresh or visit.is_born
        sent = await self.notifier.nudge(
            approval, message, look_first=not is_new, go=self._go(approval, message)
        )
        return at_message(message, sent) if sent is not None else message

    def _go(self, approval: Approval, message: SideMessage) -> Callable[[], Awaitable[bool]]:
        async def go() -> bool:
            newest = await self.approvals.get(approval.approval_id)
            ours = (newest.fence, newest.digest, since_of(newest))
            if ours != (approval.fence, approval.digest, since_of(approval)):
                return False
            if newest.status is not Status.PENDING:
                return False
            if note := _NOTES.get(message.kind):
                await note(self.audit, approval, message.key, self.clock())
            return True

        return go

    def _is_open(
        self, approval: Approval, message: SideMessage, messages: tuple[SideMessage, ...]
    ) -> bool:
        """Whether there is something to be done with a message."""
        if not self._is_wanted(approval, message, messages):
            return True
        return message.ts in {"", UNKNOWN_TS} and not approval.undeliverable

    @staticmethod
    def _is_wanted(
        approval: Approval, message: SideMessage, messages: tuple[SideMessage, ...]
    ) -> bool:
        """Whether a message still asks those who are asked now, and is the last of its kind."""
        if approval.status is not Status.PENDING or message.since_ms != since_of(approval):
            return False
        return Messages._is_last(message, messages)

    @staticmethod
    def _is_last(message: SideMessage, messages: tuple[SideMessage, ...]) -> bool:
        """Whether it is no reminder that a newer one has replaced."""
        moments = [one.moment for one in messages if one.kind == REMINDER]
        return message.kind != REMINDER or message.moment == moments[-1]


def _has_come_as_far(first: Approval, approval: Approval) -> bool:
    """Whether the steps of an approval are on record for the first of its card, too."""
    if since_of(first) != since_of(approval):
        return False
    return first.steps >= approval.steps and first.reminders >= approval.reminders


def _untold(name: str) -> SideMessage:
    user = name if is_person(name) else ""
    channel = "" if user else name
    key = f"{ALERT}:{name}"
    return SideMessage(key=key, kind=ALERT, user=user, channel=channel, ts=UNKNOWN_TS)


class Climbing(Protocol):
    """A ladder: see `EscalationPlanner`."""

    async def climb(self, approval: Approval, now_ms: int) -> tuple[Approval, frozenset[str]]:
        """Do the step that is due."""
        ...

    def next_ms(self, approval: Approval) -> int:
        """When it goes on."""
        ...

    async def next_look_ms(self, approval: Approval) -> int:
        """When it is looked at again."""
        ...


@dataclass(frozen=True, slots=True)
class TermsSteps:
    """The steps of what people decide under terms; `Reminders` has those of all else."""

    ladder: Climbing
    messages: Messages
    clock: Clock

    async def step(self, approval: Approval, visit: Visit, now_ms: int) -> Approval:
        """Do what is due, on record; what is sent by it is still to be sent."""
        if approval.status is not Status.PENDING:
            return approval
        approval, fresh = await self.ladder.climb(approval, now_ms)
        visit.fresh.update(fresh)
        return approval

    def is_step(self, approval: Approval, visit: Visit, now_ms: int) -> bool:  # noqa: ARG002
        """Whether people are told something now."""
        return bool(visit.fresh)

    def next_right(self, approval: Approval) -> int:
        """When the rights of people begin or end next; soon, when something has to be sent."""
        return max(self.ladder.next_ms(approval), self.clock() + milliseconds(SOON))

    def is_quiet(self, approval: Approval, now_ms: int) -> bool:  # noqa: ARG002
        """Whether nothing has to be sent, changed or removed beside the cards."""
        return self.messages.is_quiet(approval)

    async def see_to(self, approval: Approval, visit: Visit, now_ms: int) -> int | None:  # noqa: ARG002
        """See to the messages beside the cards; return when they need attention again.

        Raises:
            DeliveryError: Slack did not take one now. What was done before is on record.
        """
        again_ms = await self.messages.see_to(approval, visit)
        if approval.status is not Status.PENDING:
            return again_ms
        next_ms = await self.ladder.next_look_ms(approval)
        return next_ms if again_ms is None else min(next_ms, again_ms)
