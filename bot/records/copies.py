"""Restore of a backup: find the work that the backup left unfinished, and mark it."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from bot.records.approval import Approval, Status
from bot.records.erasures import Collections
from bot.records.messages import Message, MessageStatus
from bot.records.thread import Thread
from storage.base import DocumentDatabase
from storage.documents import Collection, Document, Place, Spec, Where, update, update_or_none
from storage.errors import RecordConflictError, RecordFormatError, RecordNotFoundError

_PAGE = 100

_DUE: Where = {"due_ms": {"$gt": -1}}

_EPOCH = "epoch"


class EpochDocument(Document):
    """The current restore epoch. Each restore raises the number."""

    spec = Spec(name="epochs", noun="epoch")

    id: str = _EPOCH
    number: int = 0


class RestoreStore:
    """Finds and marks the work that a backup left unfinished.

    Only a restore reads these lists, once, so they need no index. An unreadable record is skipped;
    the others are still marked.

    Args:
        collections: The collections, by name.
        database: Knows whether it is a copy, and has the audit.
    """

    def __init__(self, collections: Collections, database: DocumentDatabase) -> None:
        self._collections = collections
        self._epochs = collections["epochs"]
        self._threads: Collection[Thread] = collections["threads"]
        self._messages: Collection[Message] = collections["messages"]
        self._approvals: Collection[Approval] = collections["approvals"]
        self._trail = database.trail
        self.is_copy, self.end = database.marks.is_copy, database.marks.end

    async def begin_epoch(self) -> int:
        """Begin a new epoch, and store its number in the approvals of the backup.

        Every open or due approval gets the number in `restored.epoch`, and every due start a mark.
        The number is greater than the backup's number, and random, so that two restores of one
        backup have different numbers.

        Returns:
            The number.
        """
        await self._epochs.insert(EpochDocument())
        # The step is random: two restores of one backup must not have the same number.
        step = 1 + secrets.randbelow(2**32)
        begun = await update(
            self._epochs, _EPOCH, lambda stored: stored.changed(number=stored.number + step)
        )
        epoch = int(begun.number) if begun is not None else 0
        # Every record in the database now is from the backup, so no comparison of times is needed.
        for where in ({"open": True}, _DUE):
            await _each(
                self._approvals,
                where,
                lambda key: update(
                    self._approvals,
                    key,
                    lambda stored: stored.changed(restored=stored.restored.changed(epoch=epoch)),
                ),
            )
        starts = self._collections["thread_starts"]
        await _each(
            starts,
            _DUE,
            lambda key: update(starts, key, lambda stored: stored.changed(is_restored=True)),
        )
        return epoch

    async def epoch(self) -> int:
        """Return the number of the present epoch; 0 if the database was never restored."""
        try:
            return int((await self._epochs.get(_EPOCH)).number)
        except RecordNotFoundError:
            return 0

    async def newest_ms(self) -> int:
        """Return the time of the newest record: the time to which the database was restored.

        Audit entries with the action `restored` do not count. 0 for an empty database.
        """
        newest = [await self._trail.newest_ms()]
        for name, field in (("messages", "received_ms"), ("threads", "active_ms")):
            places = await self._collections[name].places({}, sort=[f"-{field}"], limit=1)
            newest += [at_ms for at_ms, _ in places if isinstance(at_ms, int)]
        return max(newest)

    async def leased(self, *, now_ms: int) -> int:
        """Count the threads and approvals under an unexpired lease."""
        where = {"leased_until_ms": {"$gt": now_ms}}
        stores = (self._collections["threads"], self._collections["approvals"])
        return sum([await store.count(where, with_quarantined=True) for store in stores])

    async def pending(self, *, limit: int, after: str = "") -> tuple[Sequence[Approval], str]:
        """Return a page of pending approvals, by id, after the given id.

        Returns:
            The approvals, and the id to continue after; empty at the end.
        """
        page = await self._approvals.find({"open": True}, limit=limit, after=(after,))
        approvals = page.documents
        last = page.last or (approvals[-1].approval_id if approvals else "",)
        return [approval for approval in approvals if approval.status is Status.PENDING], str(
            last[-1]
        )

    async def of_programs(
        self, *, limit: int, after: Place | None = None
    ) -> tuple[Sequence[Approval], Place | None]:
        """Return a page of the approvals that programs requested, and the place to go on from."""
        where = {"asker.program": {"$gt": ""}}
        sort = ["asker.program", "created_ms"]
        page = await self._approvals.find(where, sort=sort, limit=limit, after=after)
        return page.documents, page.last

    async def unfinished(self, *, limit: int, after: str = "") -> tuple[Sequence[Thread], str]:
        """Return a page of threads with an open turn or due work; see `pending`."""
        by_id: dict[str, Thread] = {}
        for where in ({"turn_open": True}, _DUE):
            page = await self._threads.find(where, limit=limit, after=(after,))
            by_id |= {thread.thread_id: thread for thread in page.documents}
        threads = [by_id[key] for key in sorted(by_id)][:limit]
        return threads, threads[-1].thread_id if threads else ""

    async def rewrite(
        self, approval_id: str, change: Callable[[Approval], Approval | None], *, now_ms: int
    ) -> bool:
        """Change an approval, make it due at `now_ms`, and end its lease.

        Returns:
            False, without a write, if `change` returns None or the approval does not exist.
        """
        written = await update_or_none(
            self._approvals, approval_id, change, writes_due=True, releases=True
        )
        if written is not None:
            await _raise_fence(self._approvals, approval_id, now_ms=now_ms)
        return written is not None

    async def mark(self, thread_id: str, *, epoch: int, now_ms: int, to_ms: int) -> None:
        """Mark a thread as restored, make it due at `now_ms`, and end its lease.

        Its unread messages are assigned to the turn `Thread.unread_turn`. If a restore crashes, the
        repeated restore has another epoch and finds the messages there.
        """
        try:
            thread = await self._threads.get(thread_id)
        except RecordNotFoundError:
            return
        unread = {"thread_id": thread_id, "turn": 0}
        taken = {"status": MessageStatus.TAKEN, "turn": thread.unread_turn}
        # Messages first: after a crash here the thread is unmarked, and a repeated restore does
        # both.
        await _each(
            self._messages,
            unread,
            lambda key: update(self._messages, key, lambda message: message.changed(**taken)),
        )
        marked = {"epoch": epoch, "to_ms": to_ms}
        try:
            await update(
                self._threads,
                thread_id,
                lambda stored: stored.changed(
                    restored=stored.restored.changed(**marked), due_ms=now_ms
                ),
                writes_due=True,
                releases=True,
            )
        except RecordNotFoundError:
            return
        await _raise_fence(self._threads, thread_id, now_ms=now_ms)


async def _raise_fence(collection: Collection[Any], key: str, *, now_ms: int) -> None:
    """Invalidate the fencing tokens of all earlier leases of due work; it stays due."""
    lease = await collection.claim(key, owner="restore", now_ms=now_ms, until_ms=now_ms + 1)
    if lease is not None:
        await collection.release(key, fence=lease.fence, due_ms=now_ms)


async def _each(
    collection: Collection[Any], where: Where, change: Callable[[str], Awaitable[object]]
) -> None:
    """Call `change` with the key of each matching document; skip unreadable ones."""
    after = None
    while True:
        places = await collection.places(where, limit=_PAGE, after=after)
        for *_, key in places:
            try:
                await change(str(key))
            except (RecordFormatError, RecordNotFoundError, RecordConflictError):
                continue
        if len(places) < _PAGE:
            return
        after = places[-1]
