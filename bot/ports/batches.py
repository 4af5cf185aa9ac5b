"""The port that shows several approvals on one card."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from bot.approvals.model import Approval, SideMessage

Items = Callable[[], Awaitable[Sequence[Approval]]]
"""Reads all approvals on a card, right before the card is drawn."""


class BatchCards(Protocol):
    """Shows several approvals on one card. Raises `DeliveryError` like a `Notifier`."""

    def takes(self, approval: Approval) -> bool:
        """Whether one line of such a card shows all of an approval."""
        ...

    async def title_of(self, items: Sequence[Approval]) -> str:
        """Return the card's title: the tool's title for several calls, or a default."""
        ...

    async def post_batch(self, keeper: Approval, items: Items, *, look_first: bool) -> str:
        """Post the card; with `look_first`, one that an earlier try may have posted is taken.

        Returns:
            Its `ts`.
        """
        ...

    async def update_batch(self, keeper: Approval, items: Items) -> bool:
        """Update the card at `batch_ts`; return False if the message was deleted."""
        ...

    async def post_copy(
        self, keeper: Approval, copy: SideMessage, items: Items, *, look_first: bool
    ) -> SideMessage:
        """Post the card in a direct message; see `post_batch`.

        Returns:
            Where it stands.
        """
        ...

    async def update_copy(self, keeper: Approval, copy: SideMessage, items: Items) -> bool:
        """Update a card in a direct message; return False if the message was deleted."""
        ...

    async def remove_batch(self, keeper: Approval, ts: str) -> None:
        """Remove a card that was posted twice; it stays where Slack does not take that."""
        ...
