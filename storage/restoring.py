"""Going back to a copy, written once: what the copy left unfinished is found, and marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from storage.documents import Document, Spec, Where, update
from storage.erasing import Collections
from storage.errors import RecordConflictError, RecordFormatError, RecordNotFoundError
from storage.flat import FlatRecords
from storage.ports.restoring import epoch_step
from storage.records.approvals import Approval, Status
from storage.records.threads import Message, MessageStatus, Thread

_PAGE = 100

_DUE: Where = {"due_ms": {"$gt": -1}}

_EPOCH = "epoch"


class EpochDocument(Document):
    """The number of the present epoch; one greater with each return to a copy, or more."""

    spec = Spec(name="epochs", noun="epoch")

    id: str = _EPOCH
    number: int = 0


class CopyMarks(Protocol):
    """The state of a database that is a restored copy."""

    async def is_copy(self) -> bool:
        """See `RestoreStore.is_copy`."""
        ...

    async def end(self) -> None:
        """See `RestoreStore.end`."""
        ...

    async def newest_entry_ms(self) -> int:
        """Return the time of the newest entry of the audit but `restored`; 0 without one."""
        ...


class RestoreRecords:
    """See `storage.ports.restoring.RestoreStore`.

    Args:
        collections: The collections, by name.
        marks: What the database knows of being a copy.
    """

    def __init__(self, collections: Collections, marks: CopyMarks) -> None:
        self._collections = collections
        self._epochs = collections["epochs"]
        self._threads = FlatRecords(collections["threads"], Thread)
        self._approvals = FlatRecords(collections["approvals"], Approval)
        self._marks = marks
        self.is_copy, self.end = marks.is_copy, marks.end

    async def begin_epoch(self) -> int:
        await self._epochs.insert(EpochDocument())
        step = epoch_step()
        begun = await update(
            self._epochs, _EPOCH, lambda one: one.changed(number=one.number + step)
        )
        epoch = int(begun.number) if begun is not None else 0
        # Of the copy is all that stands in the database now: no clock is asked.
        for where in ({"open": True}, _DUE):
            await self._change_all(
                self._approvals, where, lambda one: replace(one, restored_epoch=epoch)
            )
        return epoch

    async def epoch(self) -> int:
        try:
            return int((await self._epochs.get(_EPOCH)).number)
        except RecordNotFoundError:
            return 0

    async def newest_ms(self) -> int:
        newest = [await self._marks.newest_entry_ms()]
        for name, field in (("messages", "received_ms"), ("threads", "active_ms")):
            places = await self._collections[name].places({}, sort=[f"-{field}"], limit=1)
            newest += [one for one, _ in places if isinstance(one, int)]
        return max(newest)

    async def leased(self, *, now_ms: int) -> int:
        where = {"leased_until_ms": {"$gt": now_ms}}
        stores = (self._collections["threads"], self._collections["approvals"])
        return sum([await one.count(where, with_quarantined=True) for one in stores])

    async def pending(self, *, limit: int, after: str = "") -> tuple[Sequence[Approval], str]:
        page = await self._approvals.find({"open": True}, limit=limit, after=(after,))
        last = page.last or (page.records[-1].approval_id if page.records else "",)
        return [one for one in page.records if one.status is Status.PENDING], str(last[-1])

    async def unfinished(self, *, limit: int, after: str = "") -> tuple[Sequence[Thread], str]:
        found: dict[str, Thread] = {}
        for where in ({"turn_open": True}, _DUE):
            page = await self._threads.find(where, limit=limit, after=(after,))
            found |= {one.thread_id: one for one in page.records}
        threads = [found[key] for key in sorted(found)][:limit]
        return threads, threads[-1].thread_id if threads else ""

    async def rewrite(self, approval: Approval) -> bool:
        def rewrite(one: Approval) -> Approval | None:
            return approval if one.revision == approval.revision - 1 else None

        key = approval.approval_id
        return await self._approvals.changed(key, rewrite, writes_due=True) is not None

    async def mark(self, thread_id: str, *, epoch: int, now_ms: int, to_ms: int) -> None:
        unread = {"thread_id": thread_id, "turn": 0}
        await self._change_all(
            FlatRecords(self._collections["messages"], Message),
            unread,
            lambda one: replace(one, status=MessageStatus.TAKEN, turn=-epoch),
        )
        await self._threads.changed(
            thread_id,
            lambda one: replace(one, restored_epoch=epoch, restored_to_ms=to_ms, due_ms=now_ms),
            writes_due=True,
            releases=True,
        )
        # Whoever works on it by an old token has lost it.
        lease = await self._threads.claim(
            thread_id, owner="restore", now_ms=now_ms, until_ms=now_ms + 1
        )
        if lease is not None:
            threads = self._collections["threads"]
            await threads.release(thread_id, fence=lease.fence, due_ms=now_ms)

    async def settle(self, thread_id: str, *, fence: int, turn: int) -> bool:
        def settle(one: Thread) -> Thread:
            return replace(one, restored_epoch=0, restored_turn=turn)

        return await self._threads.changed(thread_id, settle, fence=fence) is not None

    async def _change_all(
        self, records: FlatRecords[Any], where: Where, change: Callable[[Any], Any]
    ) -> None:
        collection, after = records.collection, None
        while True:
            places = await collection.places(where, limit=_PAGE, after=after)
            for *_, key in places:
                try:
                    await records.change(str(key), change)
                except (RecordFormatError, RecordNotFoundError, RecordConflictError):
                    continue
            if len(places) < _PAGE:
                return
            after = places[-1]
