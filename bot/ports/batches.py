"""The port that shows several approvals on one card."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from bot.approvals.model import Approval, SideMessage

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

    async def post_batch(self, keeper: Approval, items: Items, *, look_first: bool) -> str:
        """Post the card. With `look_first`, update a card of an earlier attempt instead.

        Returns:
            The `ts` of the card.
        """
        ...

    async def update_batch(self, keeper: Approval, items: Items) -> bool:
        """Update the card at `batch.ts`; return False if the message was deleted."""
        ...

    async def post_copy(
        self, keeper: Approval, copy: SideMessage, items: Items, *, look_first: bool
    ) -> SideMessage:
        """Post the card in a direct message; see `post_batch`.

        Returns:
            The copy, with its channel and `ts`.
        """
        ...

    async def update_copy(self, keeper: Approval, copy: SideMessage, items: Items) -> bool:
        """Update a card in a direct message; return False if the message was deleted."""
        ...

    async def remove_batch(self, keeper: Approval, ts: str) -> None:
        """Delete a card that was posted twice. If Slack refuses, the duplicate stays."""
        ...
