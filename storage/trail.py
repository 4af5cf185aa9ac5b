"""The audit chain, stored in a log: the code shared by both databases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from storage.audit import AuditEntry, Link, Unsealed
from storage.chain import Head, Seal
from storage.documents import Where
from storage.ledger import STRIPPED, entry_of_row, link_of, read_entry
from storage.log import RowLog

PIECE = 500
"""Number of entries that are sealed or deleted in one batch."""

IS_OPEN: Where = {"seq": None}
BY_TIME = ("at_ms", "entry_id")

_LATEST = (1 << 63) - 1


class Trail(ABC):
    """Appends audit entries, seals them, and reads them in chain order.

    See `storage.audit.AuditStore`. Every method may raise `StoreUnavailableError`.

    Args:
        log: The entries.
        seal: Seals entries.
    """

    def __init__(self, log: RowLog, seal: Seal) -> None:
        self._log, self._seal = log, seal

    @abstractmethod
    async def append(self, *entries: AuditEntry) -> None:
        """See `storage.audit.AuditStore`."""

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        """See `storage.audit.AuditStore`."""
        rows = await self._log.read({"thread_id": thread_id}, BY_TIME, limit=limit)
        return [entry_of_row(row) for row in rows]

    @abstractmethod
    async def seal(self, *, owner: str, now_ms: int) -> int:
        """Seal the open entries, ordered by time and id.

        Any number of processes may call this at the same time. Only one has the lease of a
        workspace, and each number is used once, even if a lease is lost. A batch that a crash
        interrupted is completed first.

        With a key, an entry that was appended without the key is never sealed with it. While the
        chain has no entry with a key, such an entry is sealed without one. Afterwards it stays
        unsealed.

        Returns:
            Number of entries sealed.
        """

    @abstractmethod
    async def heads(self) -> Mapping[str, Head]:
        """Return the last entry of each chain, by workspace, as the database has recorded it."""

    @abstractmethod
    async def check_key(self) -> None:
        """Refuse to continue a chain whose key is unknown.

        Raises:
            StoreUnavailableError: The key of a chain is unknown here.
        """

    async def unsealed(self) -> Unsealed:
        """Count the open entries."""
        oldest = await self._log.read(IS_OPEN, BY_TIME, limit=1)
        if not oldest:
            return Unsealed()
        return Unsealed(await self._log.count(IS_OPEN), read_entry(oldest[0]).at_ms)

    async def open_links(self, *, limit: int) -> Sequence[Link]:
        """Return the first open entries of all chains, oldest first."""
        rows = await self._log.read(IS_OPEN, BY_TIME, limit=limit)
        return [link_of(row, self._seal) for row in rows]

    async def page(self, team_id: str, *, after: int, limit: int) -> Sequence[Link]:
        """Return the sealed entries of a chain after a number, in order.

        An unreadable entry has an empty form, or a form that does not match its hash.
        """
        where: Where = {"team_id": team_id, "seq": {"$gt": after}}
        rows = await self._log.read(where, ["seq"], limit=limit)
        return [link_of(row, self._seal) for row in rows]

    async def expire(self, team_id: str, *, upto: int) -> int:
        """Delete the entries of a chain up to this number.

        A checkpoint with this number must be sealed first; see `storage.chain`. The oldest entries
        are deleted first, so that the rest still matches the checkpoint after a crash.

        Returns:
            Number of entries deleted.
        """
        where: Where = {"team_id": team_id, "seq": {"$gt": 0, "$lte": upto}}
        total = 0
        while gone := await self._log.delete(where, sort=["seq"], limit=PIECE):
            total += gone
        return total

    async def count(self, thread_id: str) -> int:
        """Count the entries of a thread."""
        return await self._log.count({"thread_id": thread_id})

    async def strip(self, thread_id: str, *, limit: int) -> int:
        """Delete the content of up to `limit` entries of a thread and mark them `erased`.

        The chained part does not change, because it only contains the hash of the content.

        Returns:
            Number of entries changed; 0 if no entry has content left.
        """
        where: Where = {"thread_id": thread_id, "erased": False}
        rows = await self._log.read(where, ["at_ms"], limit=limit)
        for row in rows:
            await self._log.change({"entry_id": row["entry_id"]}, STRIPPED)
        return len(rows)

    async def newest_ms(self) -> int:
        """Return the time of the newest entry except `restored`; 0 if there is none."""
        # Damaged times are texts: behind all numbers, and no newest moment.
        where: Where = {"action": {"$ne": "restored"}, "at_ms": {"$lte": _LATEST}}
        rows = await self._log.read(where, ["-at_ms"], limit=1)
        return int(rows[0]["at_ms"]) if rows else 0
