"""The port that deletes: all of a thread, in small pieces.

What is kept of a thread is its audit, and of that what `storage.retention` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class RetentionStore(Protocol):
    """Finds threads that are no longer needed, and deletes them piece by piece.

    A thread is at rest when no turn of it is open, nothing is due, and nobody has its lease.
    Everything of a thread is found by its id: in a field, or as the beginning of a key.
    """

    async def named(self, channel_id: str, thread_ts: str) -> Sequence[str]:
        """Ids of the threads at this place, of whatever workspace."""
        ...

    async def resting(
        self, *, before_ms: int, limit: int, after: tuple[int, str] = (-1, "")
    ) -> Sequence[tuple[int, str]]:
        """Threads at rest in which nothing has happened since `before_ms`, longest ago first.

        They are not read, so that one that cannot be read keeps no other.

        Args:
            before_ms: Their `active_ms` is less.
            limit: At most so many.
            after: The last of the page before.

        Returns:
            `active_ms` and id of each.
        """
        ...

    async def left(self, thread_id: str) -> Mapping[str, int]:
        """Count what is not over in a thread: nothing of it may be deleted then.

        Returns:
            By what it is, and only what there is: `requests` (open, or with a card to be drawn),
            `messages` (read by no turn), `texts` (not shown), `answers` (private, not told).
        """
        ...

    async def counts(self, thread_id: str) -> Mapping[str, int]:
        """Count what there is of a thread, by collection; only what there is."""
        ...

    async def seal(self, thread_id: str, *, owner: str, now_ms: int, until_ms: int) -> int | None:
        """Take the lease of a thread at rest, in one conditional write; it need not be readable.

        Returns:
            The fencing token; None, and nothing written, when it is not at rest.
        """
        ...

    async def erase(self, thread_id: str, *, limit: int) -> int:
        """Delete up to `limit` records of each kind; not the thread itself, and not its audit.

        A message that no turn has read stays: somebody wrote it meanwhile.

        Returns:
            How many were deleted; 0 when nothing is left.
        """
        ...

    async def strip(self, thread_id: str, *, limit: int) -> int:
        """Take the content out of up to `limit` entries of the audit, and mark them `erased`.

        What is chained of them stays as it is: it has a hash in place of the content.

        Args:
            thread_id: Whose.
            limit: At most so many.

        Returns:
            How many were stripped; 0 when nothing is left.
        """
        ...

    async def drop(self, thread_id: str, *, fence: int) -> bool:
        """Delete the thread itself, if nobody woke it since it was sealed and the lease is held."""
        ...

    async def give_back(self, thread_id: str, *, fence: int) -> None:
        """Give the lease of a sealed thread back; what woke it meanwhile is due."""
        ...

    async def erase_whispers(self, *, before_ms: int, limit: int) -> int:
        """Delete private answers that are over and older; return how many."""
        ...

    async def clear_log(self) -> bool:
        """Take deleted content out of the log that the database keeps beside its file, too.

        Returns:
            Whether that was done: not while somebody reads older data, such as for a copy. A
            database server looks after its log itself.
        """
        ...
