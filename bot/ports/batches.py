"""The port that shows several approvals on one card."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from bot.approvals.model import Approval, SideMessage

Items = Callable[[], Awaitable[Sequence[Approval]]]
"""Reads all that is on one card, as late as possible."""


class BatchCards(Protocol):
    """Shows several approvals on one card. Raises `DeliveryError` like a `Notifier`."""

    def takes(self, approval: Approval) -> bool:
        """Whether one line of such a card shows all of an approval."""
        ...

    async def title_of(self, items: Sequence[Approval]) -> str:
        """The words for all of them; the tool's, where it has some."""
        ...

    async def post_batch(self, keeper: Approval, items: Items, *, look_first: bool) -> str:
        """Post the card; with `look_first`, one that an earlier try may have posted is taken.

        Returns:
            Its `ts`.
        """
        ...

    async def update_batch(self, keeper: Approval, items: Items) -> bool:
        """Draw the card at `batch_ts` again; False when the message is gone."""
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
        """Draw one in a direct message again; False when the message is gone."""
        ...

    async def remove_batch(self, keeper: Approval, ts: str) -> None:
        """Remove a card that was posted twice; it stays where Slack does not take that."""
        ...
