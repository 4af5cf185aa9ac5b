"""Effects of a deleted message on the requests that it led to."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from bot.approvals.changes import with_ask_deleted
from bot.approvals.service import Approvals
from bot.errors import UserFacingError
from bot.ports.notifier import NO_OFFER, Offer
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.records.approval import Approval, Kind, Status
from bot.records.approval_queries import open_of
from bot.records.messages import Message
from bot.records.thread import Thread
from bot.stores import Stores
from bot.threads.outbox import Outbox
from bot.words import say
from storage.documents import update_or_none
from storage.errors import RecordFormatError
from storage.thread_ids import turn_id_of


@dataclass(frozen=True, slots=True)
class Deletions:
    """Marks or withdraws the requests of deleted messages, and tells their authors."""

    storage: Stores
    approvals: Approvals
    outbox: Outbox
    clock: Clock

    async def catch_up(self, thread: Thread) -> None:
        """Apply the deletions that happened before the turn had requests.

        A deletion wakes the thread, so there is a pass after the requests are stored.
        """
        if thread.deleted_turn != thread.turn:
            return
        with suppress(RecordFormatError):
            for message in await self.storage.inbox.of_turn(thread.thread_id, thread.turn):
                if message.is_deleted:
                    await self.apply(message)

    async def note(self, message: Message) -> None:
        """Apply a deletion to requests that are stored; wake the thread for later ones."""
        now_ms = self.clock()
        await self.storage.threads.wake_deleted(message.thread_id, turn=message.turn, now_ms=now_ms)
        await self.apply(message)

    async def apply(self, message: Message) -> None:
        """Mark the pending requests of a deleted message, or withdraw them by their policy.

        The author is told what still waits, and how to withdraw it.
        """
        own = [request for request in await self.asked_by(message) if not request.ask_deleted]
        over = [request for request in own if request.terms.on_delete == "withdraw"]
        left = [request for request in own if request not in over]
        for approval in over:
            await self._withdraw(approval, message)
        for approval in left:
            write = partial(with_ask_deleted, by=message.user_id, now_ms=self.clock())
            store = self.storage.approvals
            if await update_or_none(store, approval.approval_id, write, writes_due=True):
                self.outbox.spawn(self.approvals.attendance.attend(approval.approval_id))
        if over:
            await self._tell(over[0], message, say("message.ask_deleted_withdrawn"))
        if left:
            offer = Offer(withdraw=left)
            await self._tell(left[0], message, say("message.ask_deleted"), offer=offer)

    async def asked_by(self, message: Message) -> list[Approval]:
        """Return the pending requests of a message's turn that its author can withdraw."""
        waiting = await open_of(self.storage.approvals, message.thread_id)
        return [
            approval
            for approval in waiting
            if approval.status is Status.PENDING
            and approval.kind is not Kind.DOUBT
            and approval.checkpoint_id == turn_id_of(message.thread_id, message.turn)
            and message.user_id in approval.all_requesters
        ]

    async def _withdraw(self, approval: Approval, message: Message) -> None:
        """Withdraw a request for the author of its message; one that ended meanwhile stays."""
        actor = Actor(user_id=message.user_id, team_id=approval.team_id)
        reason = say("message.ask_deleted_reason")
        with suppress(UserFacingError):
            withdrawn = await self.approvals.withdrawals.withdraw(
                approval.approval_id, actor, reason=reason
            )
            self.outbox.spawn(self.approvals.follow_up(withdrawn))

    async def _tell(
        self, approval: Approval, message: Message, text: str, *, offer: Offer = NO_OFFER
    ) -> None:
        """Tell the author of a deleted message, where it was."""
        is_root = message.ts == approval.thread_ts
        await self.outbox.send_ephemeral(
            channel_id=approval.channel_id,
            thread_ts="" if is_root else approval.thread_ts,
            user_id=message.user_id,
            text=text,
            key=message.ts,
            offer=offer,
        )
