"""The port that makes a copy's records fit the world again, after a database went back to it.

The contract is here. What is read for that is read once, by nobody but the one who goes back, so
that it needs no index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.records import Approval, Thread


class RestoreStore(Protocol):
    """Finds what a copy left unfinished, and marks it.

    A record that cannot be read is passed over: it keeps no other from being marked.
    """

    async def begin_era(self, *, now_ms: int) -> None:
        """Give this life of the database a number that none before had; see `era`."""
        ...

    async def era(self) -> int:
        """Return the time when the database last went back to a copy; 0 when it never did."""
        ...

    async def newest_ms(self) -> int:
        """Return the time of the newest thing in the database: the moment to which it went back.

        Entries of the audit with the action `restored` do not count. 0 for an empty database.
        """
        ...

    async def leased(self, *, now_ms: int) -> int:
        """Count the threads and approvals that somebody works on."""
        ...

    async def pending(self, *, limit: int, after: str = "") -> tuple[Sequence[Approval], str]:
        """Open approvals that nobody has decided, by id, of those after the given one.

        Returns:
            They, and the id to go on after; empty at the end.
        """
        ...

    async def unfinished(self, *, limit: int, after: str = "") -> tuple[Sequence[Thread], str]:
        """Threads with an open turn or with work; otherwise like `pending`."""
        ...

    async def rewrite(self, approval: Approval) -> bool:
        """Replace an approval as a whole.

        Returns:
            False, and nothing written, when its stored `revision` is not one less.
        """
        ...

    async def mark(self, thread_id: str, *, now_ms: int, to_ms: int) -> None:
        """Set `restored_ms` and `due_ms` to `now_ms`, and `restored_to_ms`; end its lease."""
        ...

    async def settle(self, thread_id: str, *, fence: int, turn: int) -> bool:
        """Set `restored_ms` to 0 and `restored_turn` to `turn`. False when the lease was lost."""
        ...
