"""Retention: find old threads by an index, and delete their documents in small batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storage.base import DocumentDatabase
from storage.documents import Collection, Where
from storage.errors import RecordFormatError, RecordNotFoundError
from storage.retention import key_ranges, place_of

Collections = Mapping[str, Collection[Any]]

_DUE: Where = {"due_ms": {"$gt": -1}}


class RetentionStore:
    """Finds threads that are no longer needed, and deletes them piece by piece.

    Documents of a thread have its id in a field, or at the beginning of their key. Its audit stays,
    as far as `storage.retention` says.

    Args:
        collections: The collections, by name.
        database: Has what is kept beside them.
    """

    def __init__(self, collections: Collections, database: DocumentDatabase) -> None:
        self._collections = collections
        self._threads = collections["threads"]
        self._ledgers = database.ledgers
        self.strip, self.clear_log = database.trail.strip, database.clear_log

    async def named(self, channel_id: str, thread_ts: str) -> Sequence[str]:
        """Ids of the threads at this place, of whatever workspace."""
        found: list[str] = []
        for team_id in await teams_of(self._threads):
            thread_id = f"{team_id}:{channel_id}:{thread_ts}"
            if await self._threads.count({"id": thread_id}, with_quarantined=True):
                found.append(thread_id)
        return found

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
        where = {"turn_open": False, "due_ms": None, "active_ms": {"$lt": before_ms}}
        places = await self._threads.places(
            where, sort=["active_ms"], limit=max(limit, 0), after=after
        )
        return [(int(str(active_ms)), str(key)) for active_ms, key in places]

    async def left(self, thread_id: str) -> Mapping[str, int]:
        """Count what is not over in a thread: nothing of it may be deleted then.

        Returns:
            By what it is, and only what there is: `requests` (open, or with a card to be drawn),
            `messages` (read by no turn), `texts` (not shown), `answers` (private, not told).
        """
        here = {"thread_id": thread_id}
        requests = self._collections["approvals"]
        found = {
            "requests": await _all(requests, {**here, "open": True})
            + await _all(requests, {**here, "open": False, **_DUE}),
            "messages": await _all(self._collections["messages"], {**here, "turn": 0}),
            "texts": await _all(
                self._collections["posts"], {**here, "posted": False, "failure": ""}
            ),
            "answers": await _all(
                self._collections["ephemeral_messages"], {**place_of(thread_id), **_DUE}
            ),
        }
        return {name: number for name, number in found.items() if number}

    async def counts(self, thread_id: str) -> Mapping[str, int]:
        """Count what there is of a thread, by collection; only what there is."""
        found = {
            name: sum([await _all(self._collections[name], where) for where in wheres])
            for name, wheres in wheres_of(thread_id).items()
        }
        found |= await self._ledgers.counts(thread_id)
        return {name: number for name, number in found.items() if number}

    async def seal(self, thread_id: str, *, owner: str, now_ms: int, until_ms: int) -> int | None:
        """Take the lease of a thread at rest, in one conditional write; it need not be readable.

        Returns:
            The fencing token; None, and nothing written, when it is not at rest.
        """
        try:
            await self._threads.get(thread_id)
        except RecordFormatError as error:  # nothing works on it, whether it is due or not
            await self._threads.quarantine(thread_id, why=str(error))
        except RecordNotFoundError:
            return None
        return await self._threads.claim_at_rest(
            thread_id, {"turn_open": False}, owner=owner, now_ms=now_ms, until_ms=until_ms
        )

    async def erase(self, thread_id: str, *, limit: int) -> int:
        """Delete up to `limit` records of each kind; not the thread itself, and not its audit.

        A message that no turn has read stays: somebody wrote it meanwhile.

        Returns:
            How many were deleted; 0 when nothing is left.
        """
        erased = await self._ledgers.erase(thread_id, limit=limit)
        for name, wheres in wheres_of(thread_id).items():
            for where in wheres:
                erased += await self._collections[name].delete(where, limit=limit)
        return erased

    async def drop(self, thread_id: str, *, fence: int) -> bool:
        """Delete the thread itself, if nobody woke it since it was sealed and the lease is held."""
        sealed = {"id": thread_id, "fence": fence, "due_ms": None, "leased_until_ms": {"$gt": 0}}
        return bool(await self._threads.delete(sealed, limit=1))

    async def give_back(self, thread_id: str, *, fence: int) -> None:
        """Give the lease of a sealed thread back; what woke it meanwhile is due."""
        await self._threads.release(thread_id, fence=fence)

    async def erase_ephemeral(self, *, before_ms: int, limit: int) -> int:
        """Delete private answers that are over and older; return how many."""
        where = {"created_ms": {"$lt": before_ms}, "due_ms": None}
        return await self._collections["ephemeral_messages"].delete(where, limit=limit)


def wheres_of(thread_id: str) -> dict[str, list[Where]]:
    """The conditions of all documents that belong to a thread, by collection.

    A message that no turn has read stays, and so does the thread itself.
    """
    here = {"thread_id": thread_id}
    keys = [{"id": {"$gte": first, "$lt": end}} for first, end in key_ranges(thread_id)]
    return {
        "approvals": [here],
        "messages": [{**here, "turn": {"$ne": 0}}],
        "ephemeral_messages": [place_of(thread_id)],
        "grants": [here],
        "posts": [*keys],
    }


async def teams_of(threads: Collection[Any]) -> list[str]:
    """The workspaces that have threads; all ids of one are skipped at once."""
    found: list[str] = []
    while places := await threads.places(
        {"id": {"$gte": f"{found[-1]};" if found else ""}}, limit=1
    ):
        found.append(str(places[0][-1]).partition(":")[0])
    return found


async def _all(collection: Collection[Any], where: Where) -> int:
    return await collection.count(where, with_quarantined=True)
