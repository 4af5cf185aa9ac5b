"""The daily digest of one person: its content, and where it was posted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.ports.people import Person
from bot.records.approval import Approval, Status
from bot.records.people import PostedDigest


@dataclass(frozen=True, slots=True, kw_only=True)
class ListItem:
    """An entry of a digest.

    Attributes:
        approval: The approval.
        waits: Whether the approval still waits for the reader.
    """

    approval: Approval
    waits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Content of a digest message.

    Attributes:
        key: Idempotency key; finds an earlier attempt.
        person: The reader.
        now_ms: The time now.
        items: The entries, the earliest expiry first.
        total: Number of pending approvals when the digest was made.
        last_ms: When the last of these approvals expires; 0 if all are entries.
        is_replaced: Whether a newer digest exists.
    """

    key: str
    person: Person
    now_ms: int
    items: Sequence[ListItem]
    total: int
    last_ms: int = 0
    is_replaced: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the digest cannot change any more."""
        pending = [one for one in self.items if one.approval.status is Status.PENDING]
        return self.is_replaced or not pending

    @property
    def mark(self) -> str:
        """Return a hash of everything that can change."""
        lines = [
            (one.approval.approval_id, one.approval.status, one.waits, one.approval.expires_ms)
            for one in self.items
        ]
        text = json.dumps([lines, self.is_replaced])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class DigestBoard(Protocol):
    """Posts and updates digests in direct messages."""

    async def show(self, shown: Digest, *, where: PostedDigest) -> PostedDigest:
        """Update a posted digest, or post a new one.

        A message of an earlier attempt is searched for and reused.

        Returns:
            The location of the message.

        Raises:
            DeliveryError: Slack refused the message.
        """
        ...
