"""The chain of the audit, over the log of its entries: the common code of both databases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from storage.audit import AuditEntry, Link, Unsealed
from storage.chain import Head, Seal
from storage.documents import Where
from storage.ledger import STRIPPED, entry_of_row, link_of, read_entry
from storage.log import RowLog

PIECE = 500
"""Entries that are sealed, or deleted, at a time."""

IS_OPEN: Where = {"seq": None}
BY_TIME = ("at_ms", "entry_id")

_LATEST = (1 << 63) - 1


class Trail(ABC):
    """Appends to the audit, seals its entries, and reads them as they are chained.

    See `storage.audit.AuditStore`. Every method may raise `StoreUnavailableError`.

    Args:
        log: The entries.
        seal: How entries are sealed.
    """

    def __init__(self, log: RowLog, seal: Seal) -> None:
        self._log, self._seal = log, seal
        self._patient = log

    async def append(self, entry: AuditEntry) -> None:
        """See `storage.audit.AuditStore`."""
        await self.append_all([entry])

    @abstractmethod
    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        """See `storage.audit.AuditStore`."""

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        """See `storage.audit.AuditStore`."""
        rows = await self._log.read({"thread_id": thread_id}, BY_TIME, limit=limit)
        return [entry_of_row(row) for row in rows]

    @abstractmethod
    async def seal(self, *, owner: str, now_ms: int) -> int:
        """Seal what is open, in the order of time and id.

        Any number of processes may try at once: one has the lease of a workspace at a time, and
        each number is given once, also where a lease was lost. What a crash left half done is
        finished first.

        Where there is a key, an entry that was appended without it is never sealed with it. It is
        sealed without a key as long as its chain has no entry with one, and later not at all.

        Returns:
            How many entries were sealed.
        """

    @abstractmethod
    async def heads(self) -> Mapping[str, Head]:
        """The last entry of each chain, by workspace, as far as the database has noted it."""

    @abstractmethod
    async def check_key(self) -> None:
        """See to it that a chain with a key does not go on without.

        Raises:
            StoreUnavailableError: Its key is not known here.
        """

    async def unsealed(self) -> Unsealed:
        """Count what is open."""
        oldest = await self._log.read(IS_OPEN, BY_TIME, limit=1)
        if not oldest:
            return Unsealed()
        return Unsealed(await self._log.count(IS_OPEN), read_entry(oldest[0]).at_ms)

    async def open_links(self, *, limit: int) -> Sequence[Link]:
        """The first open entries of all chains, oldest first."""
        rows = await self._log.read(IS_OPEN, BY_TIME, limit=limit)
        return [link_of(row, self._seal) for row in rows]

    async def page(self, team_id: str, *, after: int, limit: int) -> Sequence[Link]:
        """Sealed entries of a chain with a greater number, in order.

        What cannot be read is there with an empty form, or one that does not fit its hash.
        """
        where: Where = {"team_id": team_id, "seq": {"$gt": after}}
        rows = await self._log.read(where, ["seq"], limit=limit)
        return [link_of(row, self._seal) for row in rows]

    async def expire(self, team_id: str, *, upto: int) -> int:
        """Delete the entries of a chain up to this number.

        A checkpoint that says so must be sealed before; see `storage.chain`. They go from the
        oldest on: what is left of them after a crash still fits the checkpoint.

        Returns:
            How many entries are gone.
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
        """Take the content out of up to `limit` entries of a thread, and mark them `erased`.

        What is chained of them stays as it is: it has a hash in place of the content.

        Returns:
            How many were stripped; 0 when nothing is left.
        """
        where: Where = {"thread_id": thread_id, "erased": False}
        rows = await self._log.read(where, ["at_ms"], limit=limit)
        for row in rows:
            await self._log.change({"entry_id": row["entry_id"]}, STRIPPED)
        return len(rows)

    async def newest_ms(self) -> int:
        """The time of the newest entry but `restored`; 0 without one. May take long."""
        newest = 0
        for operator in ("$lt", "$gt"):
            # Damaged times are texts: behind all numbers, and no newest moment.
            where: Where = {"action": {operator: "restored"}, "at_ms": {"$lte": _LATEST}}
            found = await self._patient.read(where, ["-at_ms"], limit=1)
            newest = max([newest, *(int(row["at_ms"]) for row in found)])
        return newest
