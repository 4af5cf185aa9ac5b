"""The port that makes a copy's records fit the world again, after a database went back to it.

The contract is here. What is read for that is read once, by nobody but the one who goes back, so
that it needs no index.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Protocol

from storage.records import Approval, Thread


class RestoreStore(Protocol):
    """Finds what a copy left unfinished, and marks it.

    A record that cannot be read is passed over: it keeps no other from being marked.
    """

    async def begin_epoch(self) -> int:
        """Begin a new epoch, and stamp the approvals of the copy with its number.

        Stamped (`restored_epoch`) is each approval that is open, or due. The number is greater than
        that of the copy, and never the same for two returns to one copy.

        Returns:
            The number.
        """
        ...

    async def epoch(self) -> int:
        """Return the number of the present epoch; 0 when the database never went back to a copy."""
        ...

    async def is_copy(self) -> bool:
        """Whether this is a copy that was put in place, and not made ready yet; see `end`.

        The embedded database knows a file that `countersign backup` made. MongoDB knows collections
        that were made anew, as `mongorestore --drop` does, where the server has ids of them.
        """
        ...

    async def end(self) -> None:
        """Note that all of the copy is marked: from now on it is the database."""
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

    async def mark(self, thread_id: str, *, epoch: int, now_ms: int, to_ms: int) -> None:
        """Set `restored_epoch`, `restored_to_ms`, and `due_ms` to `now_ms`; end its lease.

        Its unread messages are taken by the turn `-epoch`.
        """
        ...

    async def settle(self, thread_id: str, *, fence: int, turn: int) -> bool:
        """Set `restored_epoch` to 0, `restored_turn` to `turn`. False when the lease was lost."""
        ...


def epoch_step() -> int:
    """Draw by how much a new epoch's number is greater: no two lives of one copy share a number."""
    return 1 + secrets.randbelow(2**32)
