"""Handle edited and deleted messages: update what is unread or displayed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.approvals.model import Status
from bot.approvals.queries import open_of
from bot.approvals.service import Approvals
from bot.ports.process import Clock
from bot.stores import Stores
from bot.threads.message_event import NO_TURN, Incoming, plain_text, written_at
from bot.threads.messages import Message, MessageStatus
from bot.threads.outbox import Outbox
from bot.words import say


@dataclass(frozen=True, slots=True)
class Revisions:
    """Applies edits of messages that the agent has not read."""

    storage: Stores
    receive: Callable[[Incoming], Awaitable[str | None]]
    spoken_to: Callable[[str], tuple[str, str]]
    approvals: Approvals
    outbox: Outbox
    clock: Clock

    async def edited(self, incoming: Incoming, *, before: str, edit: str) -> str | None:
        """Store the new text of an unread message; tell the author if the agent has read it.

        Returns:
            Id of the thread to process, or None.
        """
        _, words = self.spoken_to(plain_text(incoming.text, incoming.bot_user_id))
        is_same = words == self.spoken_to(plain_text(before, incoming.bot_user_id))[1]
        if is_same and not _speaks_now(incoming, before):
            return None  # Slack also sends an edit for link previews
        message = await self.storage.inbox.revise(incoming.message_id, words)
        if message is None:
            return await self.receive(incoming) if _speaks_now(incoming, before) else None
        is_shown = await self._change_cards(message, incoming, words)
        if message.status is not MessageStatus.NEW and not is_shown:
            await self._tell_late(message, incoming, edit)
        return None

    async def deleted(self, incoming: Incoming) -> None:
        """Drop an unread message and remove its text from cards."""
        message = await self.storage.inbox.revise(incoming.message_id, "")
        if message is None:
            return
        await self._change_cards(message, incoming, "")
        if message.status is MessageStatus.NEW:
            await self.storage.inbox.take([message.message_id], turn=NO_TURN)

    async def _change_cards(self, message: Message, incoming: Incoming, words: str) -> bool:
        """Update a message on pending cards; return whether a card showed it."""
        is_shown = False
        at_ms = written_at(incoming, self.clock)
        for approval in await open_of(self.storage.approvals, message.thread_id):
            if approval.status is not Status.PENDING:
                continue
            if await self.approvals.withdrawals.change_words(
                approval, by=message.user_id, text=words, at_ms=at_ms
            ):
                is_shown = True
                self.outbox.spawn(self.approvals.attendance.attend(approval.approval_id))
        return is_shown

    async def _tell_late(self, message: Message, incoming: Incoming, edit: str) -> None:
        await self.outbox.send_ephemeral(
            channel_id=incoming.channel_id,
            thread_ts=incoming.thread_ts,
            user_id=message.user_id,
            text=say("message.edited_late"),
            key=f"{incoming.ts}:{edit}",
        )


def _speaks_now(incoming: Incoming, before: str) -> bool:
    """Whether an edit turns a message into one for the agent."""
    return incoming.is_mention and f"<@{incoming.bot_user_id}" not in before
