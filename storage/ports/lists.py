"""The lists that people are shown: what waits, what ended. They decide nothing.

All are bounded, and read by an index. A record that cannot be read is passed over, and keeps no
other from its list: a page says where it ended, and what has no pages is filled up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.documents import Place
from storage.records import Approval

START: Place = (0, "")
"""Before the first page."""


class ListStore(Protocol):
    """Reads approvals in the order in which people look at them."""

    async def waiting(
        self, *, now_ms: int, limit: int, after: Place = START
    ) -> tuple[Sequence[Approval], Place | None]:
        """Pending approvals that expire after `now_ms`, the earliest deadline first.

        Args:
            now_ms: The time now.
            limit: How many at most, of all that are read; what cannot be read is not among them.
            after: Where the page before ended.

        Returns:
            They, and where the page ended; None where nothing comes after it.
        """
        ...

    async def asked_by(
        self, user_id: str, *, now_ms: int, limit: int, after: Place = START
    ) -> tuple[Sequence[Approval], Place | None]:
        """The same, of those that somebody asked for: as the first, where several did."""
        ...

    async def ended_of(self, user_id: str, *, limit: int) -> Sequence[Approval]:
        """Approvals that have ended, and that somebody decided or had asked for; newest first.

        The order is that of their making. Of those that several people asked for, it is the first
        who counts.
        """
        ...

    async def named(self, prefix: str, *, limit: int) -> Sequence[Approval]:
        """Approvals whose id begins so, in the order of their ids."""
        ...

    async def calls_of(
        self, thread_id: str, *, tool: str, since_ms: int, limit: int
    ) -> Sequence[Approval]:
        """Calls of a tool that people of a thread were asked about since then; newest first."""
        ...
