"""The port that shows records to people: cards, nudges, the agent's texts, private answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.approvals.model import Approval, SideMessage
from bot.threads.messages import Post
from bot.threads.model import Thread

Newest = Callable[[], Awaitable[Approval]]
"""Reads a record again right before it is drawn, so that the card shows its newest state."""


Begins = Callable[[], Awaitable[bool]]
"""Stores that the display of a text begins. Returns False if it began before."""
Began = Callable[[str], Awaitable[None]]
"""Receives the `ts` of a message as soon as Slack returns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The buttons of a private answer; each is checked at the click, like those of cards.

    Attributes:
        withdraw: What its reader asked for and can take back.
        decide: What waits, with the buttons of its card.
    """

    withdraw: Sequence[Approval] = ()
    decide: Sequence[Approval] = ()


NO_OFFER = Offer()


class Stream(Protocol):
    """One text of the agent that grows while people read it."""

    async def append(self, text: str) -> None:
        """Add a piece. What Slack does not take is no error here: it comes with the finish."""
        ...

    async def finish(self, text: str) -> str:
        """Show the whole text; return the `ts` of its (first) message."""
        ...

    async def abandon(self) -> None:
        """The run was cut: leave what is shown, end the stream. Never raises."""
        ...


class Notifier(Protocol):
    """Shows records to people. Raises `DeliveryError` when Slack refuses or does not answer."""

    async def post_card(self, approval: Approval, *, look_first: bool, newest: Newest) -> Approval:
        """Post the card of a record.

        With `look_first`, a card that an earlier try may have posted is searched, and taken.

        Returns:
            The record as drawn, with the `ts` of its card.
        """
        ...

    async def update_card(self, approval: Approval, *, newest: Newest) -> Approval | None:
        """Draw the card again.

        Returns:
            The record as drawn; None when the message is gone.
        """
        ...

    async def ask_back(
        self, approval: Approval, *, key: str, by: str, text: str, mentions: Sequence[str]
    ) -> str:
        """Ask in the thread what somebody wants to know of the requesters, or of the agent.

        Args:
            approval: What it is about.
            key: The name of the question; one that an earlier try posted is searched by it.
            by: Slack user id of who asks.
            text: The question.
            mentions: Slack user ids of who is to answer; none where the agent is.

        Returns:
            The `ts` of the message.
        """
        ...

    async def close_question(
        self, approval: Approval, *, ts: str, by: str, text: str, is_answered: bool
    ) -> None:
        """Say in such a message that no answer is needed any more; nothing when it is gone.

        Args:
            approval: What it is about.
            ts: Of the message.
            by: Slack user id of who asked.
            text: The question.
            is_answered: Whether it was answered; else what it is about is over.
        """
        ...

    async def post_copy(
        self, approval: Approval, copy: SideMessage, *, look_first: bool, newest: Newest
    ) -> SideMessage:
        """Post one more card of a record, in a direct message or another channel. See `post_card`.

        Returns:
            The copy, with its channel and `ts`.
        """
        ...

    async def update_copy(self, copy: SideMessage, *, newest: Newest) -> bool:
        """Draw such a card again; False when the message is gone."""
        ...

    async def nudge(
        self,
        approval: Approval,
        message: SideMessage,
        *,
        look_first: bool,
        go: Callable[[], Awaitable[bool]],
    ) -> SideMessage | None:
        """Tell people that a card waits for them, below it or in a direct message. See `remind`.

        Returns:
            The message, with its channel and `ts`; None when it was not wanted.
        """
        ...

    async def remove(self, approval: Approval, message: SideMessage) -> None:
        """Remove a nudge; nothing when it is gone."""
        ...

    async def close(self, approval: Approval, message: SideMessage) -> None:
        """Write in a direct message that no decision is needed; do nothing if it was deleted."""
        ...

    async def say(self, thread: Thread, post: Post, *, look_first: bool) -> str:
        """Show a text of the agent, whole; return its `ts`. Goes on where a stream was cut."""
        ...

    def stream(self, thread: Thread, key: str, *, begins: Begins, began: Began) -> Stream:
        """Make a text that may grow. One that is over at once is not sent before its end.

        Args:
            thread: In which thread.
            key: Of its record.
            begins: Asked before the first piece is sent, once; without its yes none is.
            began: Told the `ts` of its message.
        """
        ...

    async def end_stream(self, thread: Thread, ts: str, record_id: str) -> None:
        """A text will not grow any more: leave what is shown, marked as ours. Never raises."""
        ...

    async def lose(self, place: Approval | Thread, reason: str) -> None:
        """Tell whoever asked there, once, that nothing can be written into a thread any more.

        Args:
            place: The thread, or something that is asked in it.
            reason: Slack's word for why not.
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
    ) -> None:
        """Tell one person something that nobody else sees, with buttons."""
        ...

    async def respond(
        self,
        address: str,
        text: str,
        *,
        thread_ts: str = "",
        instead: Sequence[Mapping[str, object]] | None = None,
    ) -> None:
        """Tell whoever clicked, by the address that came with the click: it needs no token.

        Args:
            address: That address.
            text: Escaped mrkdwn.
            thread_ts: Where it is to stand.
            instead: Blocks that replace the message that was clicked in; None for a new message.
        """
        ...

    @property
    def is_refused(self) -> bool:
        """Whether Slack refused the app when it was last called."""
        ...
