"""An incoming message: its author and place; and its edits and deletion."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from bot.approvals.service import Approvals
from bot.ports.notifier import Offer
from bot.ports.process import Clock
from bot.records.approval import Approval, Status
from bot.records.approval_queries import open_of
from bot.records.messages import InboxStore, Message, MessageStatus
from bot.stores import Stores
from bot.threads.deletions import Deletions
from bot.threads.outbox import Outbox
from bot.words import say
from bot.words.decisions import looks_like_decision
from bot.words.typed import typed_text
from storage.errors import RecordFormatError
from storage.thread_ids import thread_id_of

_QUOTED = r"(?P<quoted>```.*?```|`[^`\n]+`|^&gt;[^\n]*)"
_ALL_LINES = re.DOTALL | re.MULTILINE

NO_TURN = -1
"""Turn of a message that no agent reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """The mentions and emoji of a message, from its blocks.

    Attributes:
        mentions: The people who are mentioned outside of quotes and code.
        emoji: Each name in colons, in their order, and whether it is an emoji.
    """

    mentions: frozenset[str] = frozenset()
    emoji: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message as a listener parsed it.

    Attributes:
        team_id: The workspace where the app is installed.
        channel_id: The channel.
        ts: Id of the message.
        thread_ts: Id of the thread's first message; equals `ts` for that message.
        user_id: The author.
        text: The text as sent by Slack.
        is_direct: Whether it is a direct message to the bot.
        bot_user_id: The bot's user id.
        has_files: Whether files are attached, which are not read.
        markup: What its blocks say; None without blocks.
    """

    team_id: str
    channel_id: str
    ts: str
    thread_ts: str
    user_id: str
    text: str
    is_direct: bool
    bot_user_id: str
    has_files: bool = False
    markup: Markup | None = None

    @property
    def message_id(self) -> str:
        """Return the id of the message's record."""
        return f"{self.team_id}:{self.channel_id}:{self.ts}"

    @property
    def thread_id(self) -> str:
        """Return the id of the message's thread."""
        return thread_id_of(self.team_id, self.channel_id, self.thread_ts)

    @property
    def is_mention(self) -> bool:
        """Whether the message mentions the bot, outside of quotes and code."""
        if self.markup is not None:
            return self.bot_user_id in self.markup.mentions
        return bool(self.bot_user_id) and f"<@{self.bot_user_id}" in self.text

    @property
    def words(self) -> str:
        """Return what the author typed, without the bot's mention."""
        return plain_text(self.text, self.bot_user_id, self.markup)


def written_at(incoming: Incoming, clock: Clock) -> int:
    """Return when a message was written, from its `ts`; now if that is invalid."""
    try:
        return int(Decimal(incoming.ts) * 1_000)
    except (InvalidOperation, ValueError, OverflowError):
        return clock()


async def is_repeated(inbox: InboxStore, incoming: Incoming, waiting: Sequence[Approval]) -> bool:
    """Whether the author sent such a reply before, about what is pending now.

    Only older messages count, so a repeated delivery gives the same result.
    """
    since = min(approval.created_ms for approval in waiting)
    try:
        refused = await inbox.of_turn(incoming.thread_id, NO_TURN)
    except RecordFormatError:
        return False  # fall back to the text alone
    return any(
        message.user_id == incoming.user_id
        and message.ts < incoming.ts
        and message.received_ms >= since
        and looks_like_decision(message.text)
        for message in refused
    )


def plain_text(text: str, bot_user_id: str, markup: Markup | None = None) -> str:
    """Return what a person typed, without the mention that calls the bot.

    Mentions in quotes and in code stay: they call nobody.
    """
    if bot_user_id:
        call = rf"{_QUOTED}|<@{re.escape(bot_user_id)}(?:\|[^>]*)?>"
        text = re.sub(call, lambda match: match["quoted"] or "", text, flags=_ALL_LINES)
    return typed_text(text, None if markup is None else markup.emoji).strip()


@dataclass(frozen=True, slots=True)
class Revisions:
    """Applies edits and deletions of messages."""

    storage: Stores
    receive: Callable[[Incoming], Awaitable[str | None]]
    spoken_to: Callable[[str], tuple[str, str]]
    approvals: Approvals
    outbox: Outbox
    clock: Clock

    @property
    def _deletions(self) -> Deletions:
        return Deletions(self.storage, self.approvals, self.outbox, self.clock)

    async def edited(self, incoming: Incoming, *, before: Incoming | None, edit: str) -> str | None:
        """Store the new text of an unread message; tell the author if the agent has read it.

        Args:
            incoming: The message now.
            before: The message as it was; None if Slack does not say.
            edit: Id of the edit.

        Returns:
            Id of the thread to process, or None.
        """
        _, words = self.spoken_to(incoming.words)
        speaks_now = before is not None and incoming.is_mention and not before.is_mention
        is_same = before is not None and words == self.spoken_to(before.words)[1]
        if is_same and not speaks_now:
            return None  # Slack also sends an edit for link previews
        message = await self.storage.inbox.revise(incoming.message_id, words)
        if message is None:
            # An unknown message may be one that was deleted here long ago: it starts nothing,
            # unless the edit is known to have added the mention.
            return await self.receive(incoming) if speaks_now else None
        is_shown = await self._change_cards(message, incoming, words)
        if message.status is not MessageStatus.NEW and not is_shown:
            await self._tell_late(message, incoming, edit)
        return None

    async def deleted(self, incoming: Incoming) -> str | None:
        """Drop an unread message and remove its text from cards.

        Of a message that the agent has read, tell the author what still waits, and how to take it
        back; the cards say that it was deleted. By the policy, this withdraws the requests.

        Returns:
            Id of the thread to process, or None.
        """
        message = await self.storage.inbox.delete(incoming.message_id)
        if message is None:
            return None
        await self._change_cards(message, incoming, "")
        if message.status is MessageStatus.NEW:
            await self.storage.inbox.take([message.message_id], turn=NO_TURN)
        elif message.turn != NO_TURN:
            await self._deletions.note(message)
            return message.thread_id
        return None

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
            offer=Offer(withdraw=await self._deletions.asked_by(message)),
        )
