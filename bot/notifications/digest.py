"""The list of all that waits for one person, as one message: what it says, and where it stands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.ports.people import Person
from storage.records import Approval, PostedDigest, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class ListItem:
    """A line of a list.

    Attributes:
        approval: What it is about.
        waits: Whether it still waits for the reader.
    """

    approval: Approval
    waits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A list as it is drawn.

    Attributes:
        key: Its name: an earlier try is found by it.
        person: Its reader.
        now_ms: The time now.
        items: Its lines, the earliest deadline first.
        total: How many waited when it was made.
        last_ms: When the last of all these expires; 0 where all are lines of it.
        is_replaced: Whether a newer list is below.
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
        """Whether nothing on it will change any more."""
        pending = [one for one in self.items if one.approval.status is Status.PENDING]
        return self.is_replaced or not pending

    @property
    def mark(self) -> str:
        """A digest of what can change on it."""
        lines = [
            (one.approval.approval_id, one.approval.status, one.waits, one.approval.expires_ms)
            for one in self.items
        ]
        text = json.dumps([lines, self.is_replaced])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class DigestBoard(Protocol):
    """Shows lists in direct messages."""

    async def show(self, shown: Digest, *, where: PostedDigest) -> PostedDigest:
        """Show a list over the message where it stands, or as a new one.

        One that an earlier try may have posted is searched, and taken.

        Args:
            shown: The list.
            where: Where it stands; one that is not posted stands nowhere.

        Returns:
            Where it stands now.

        Raises:
            DeliveryError: Slack did not take it.
        """
        ...
