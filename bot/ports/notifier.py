"""The port to messages in Slack: cards, batch cards, reminders, agents' texts, private messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.records.approval import Approval, ApprovalMessage
from bot.records.messages import Post
from bot.records.thread import Thread

Newest = Callable[[], Awaitable[Approval]]
"""Reads the newest version of an approval. Called right before its card is rendered."""


Begins = Callable[[], Awaitable[bool]]
"""Stores that the display of a text begins. Returns False if it began before."""
Began = Callable[[str], Awaitable[None]]
"""Receives the `ts` of a message as soon as Slack returns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Approvals whose buttons a private message shows. Every click is checked again.

    Attributes:
        withdraw: Requests that the reader can withdraw.
        decide: Pending approvals, with the buttons of their cards; used if `withdraw` is empty.
    """

    withdraw: Sequence[Approval] = ()
    decide: Sequence[Approval] = ()


NO_OFFER = Offer()


class Stream(Protocol):
    """A text of an agent that is shown while the agent writes it."""

    async def append(self, text: str) -> None:
        """Add a piece. Slack's refusals are ignored here: `finish` shows the whole text."""
        ...

    async def finish(self, text: str) -> str:
        """Show the whole text; return the `ts` of its first message."""
        ...

    async def abandon(self) -> None:
        """End the stream after an interrupted run and keep the shown text. Never raises."""
        ...


class Notifier(Protocol):
    """Posts and updates messages. Raises `DeliveryError` if Slack refuses or does not respond.

    With `look_first`, a method searches for a message that an earlier attempt may have posted, and
    updates or keeps that message instead of posting a second one.
    """

    async def post_card(
        self, approval: Approval, message: ApprovalMessage, *, look_first: bool, newest: Newest
    ) -> ApprovalMessage:
        """Post a card of an approval: in its thread, in a direct message or another channel.

        Returns:
            The message, with its channel and `ts`.
        """
        ...

    async def update_card(self, message: ApprovalMessage, *, newest: Newest) -> bool:
        """Update a card of an approval; return False if the message is deleted."""
        ...

    async def ask_back(
        self, approval: Approval, *, key: str, by: str, text: str, mentions: Sequence[str]
    ) -> str:
        """Post a person's question to the requesters or the agent in the thread.

        Args:
            approval: The approval that the question is about.
            key: Id of the question, by which an earlier attempt's message is found.
            by: Slack user id of the asking person.
            text: The question.
            mentions: Slack user ids of the people who are asked; empty if the agent is asked.

        Returns:
            The `ts` of the message.
        """
        ...

    async def close_question(
        self, approval: Approval, *, ts: str, by: str, text: str, is_answered: bool
    ) -> None:
        """Mark the message of `ask_back` as closed; do nothing if the message is deleted.

        Args:
            approval: The approval that the question is about.
            ts: The `ts` of the message.
            by: Slack user id of the asking person.
            text: The question.
            is_answered: Whether the question was answered. If not, the approval is closed.
        """
        ...

    async def nudge(
        self,
        approval: Approval,
        message: ApprovalMessage,
        *,
        look_first: bool,
        may_post: Callable[[], Awaitable[bool]],
    ) -> ApprovalMessage | None:
        """Post a reminder or escalation, below the card or in a direct message.

        Args:
            approval: The pending approval.
            message: The message to post.
            look_first: See `Notifier`.
            may_post: Called right before the post, after any wait for a rate limit. The message is
                not posted if it returns False.

        Returns:
            The message, with its channel and `ts`; None if `may_post` returned False.
        """
        ...

    async def remove(self, approval: Approval, message: ApprovalMessage) -> None:
        """Delete a message, if it exists."""
        ...

    async def close(self, approval: Approval, message: ApprovalMessage) -> None:
        """Write in a direct message that no decision is needed; do nothing if it was deleted."""
        ...

    async def say(self, thread: Thread, post: Post, *, look_first: bool) -> str:
        """Show an agent's whole text; return the `ts` of its first message.

        If `post.ts` is the message of an interrupted stream, this message is completed.
        """
        ...

    def stream(self, thread: Thread, key: str, *, begins: Begins, began: Began) -> Stream:
        """Create a text that can grow. A text that is complete at once is posted as a whole.

        Args:
            thread: The thread of the text.
            key: Id of the text's record.
            begins: Called once, before the first piece is sent. If it returns False, no piece is
                sent before `Stream.finish`.
            began: Receives the `ts` of the message.
        """
        ...

    async def end_stream(self, thread: Thread, ts: str, record_id: str) -> None:
        """End the stream of a message; keep its text and its metadata. Never raises."""
        ...

    async def lose(self, place: Approval | Thread, reason: str) -> None:
        """Notify the requester, once, that the bot can no longer write to a thread.

        Args:
            place: The thread, or an approval of the thread.
            reason: Slack's error code.
        """
        ...

    async def send_ephemeral(
        self,
        channel_id: str,
        user_id: str,
        text: str,
        *,
        thread_ts: str = "",
        offer: Offer = NO_OFFER,
        blocks: Sequence[Mapping[str, object]] = (),
    ) -> None:
        """Post a message that only one person sees, with the buttons of `offer`.

        Args:
            channel_id: The channel; the reader's user id for a direct message.
            user_id: The reader.
            text: Escaped mrkdwn.
            thread_ts: The thread; empty for the channel itself.
            offer: Its buttons.
            blocks: What to show instead of the text; may be empty.
        """
        ...

    async def respond(
        self,
        address: str,
        text: str,
        *,
        thread_ts: str = "",
        instead: Sequence[Mapping[str, object]] | None = None,
    ) -> None:
        """Respond to a click, visibly to its sender only. Slack requires no token for this.

        Args:
            address: The click's `response_url`.
            text: Escaped mrkdwn.
            thread_ts: The thread to respond in; empty for the channel.
            instead: Blocks that replace the clicked message; None for a new message.
        """
        ...

    @property
    def is_refused(self) -> bool:
        """Whether Slack refused the app, and has accepted no call since."""
        ...


Items = Callable[[], Awaitable[Sequence[Approval]]]
"""Reads all approvals of a batch. Called right before the card is rendered."""


class BatchCards(Protocol):
    """Shows several approvals on one card. Raises `DeliveryError` like a `Notifier`."""

    def takes(self, approval: Approval) -> bool:
        """Whether one line of a batch card can show everything about an approval."""
        ...

    async def title_of(self, items: Sequence[Approval]) -> str:
        """Return the card's title: the tool's title for several calls, or a default."""
        ...

    async def post_batch(
        self, card_owner: Approval, message: ApprovalMessage, *, look_first: bool, items: Items
    ) -> ApprovalMessage:
        """Post the card in the thread or in a direct message.

        With `look_first`, update a card of an earlier attempt instead.

        Returns:
            The message, with its channel and `ts`.
        """
        ...

    async def update_batch(self, message: ApprovalMessage, *, items: Items) -> bool:
        """Update the card; return False if the message was deleted."""
        ...
