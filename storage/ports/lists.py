"""The lists that people are shown: what waits, what ended, which grants last. They decide nothing.

All are bounded, and read by an index. A record that cannot be read is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.records import Approval, Grant


class ListStore(Protocol):
    """Reads approvals and grants in the order in which people look at them."""

    async def waiting(
        self, *, now_ms: int, limit: int, after: tuple[int, str] = (0, "")
    ) -> Sequence[Approval]:
        """Pending approvals that expire after `now_ms`, the earliest deadline first.

        Args:
            now_ms: The time now.
            limit: How many at most.
            after: `expires_ms` and id of the last one of the page before.
        """
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

    async def grants(self, team_id: str, *, now_ms: int, limit: int) -> Sequence[Grant]:
        """Grants of a workspace that last after `now_ms`: not used up, and ended by nobody.

        By creation time; of more than `limit`, those that end first.
        """
        ...
