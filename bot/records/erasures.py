"""Retention: find old threads by an index, and delete their documents in small batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storage.base import DocumentDatabase
from storage.documents import Collection, Where
from storage.errors import RecordFormatError, RecordNotFoundError
from storage.thread_ids import ids_after, key_ranges, place_of, team_of, thread_id_of

Collections = Mapping[str, Collection[Any]]

_DUE: Where = {"due_ms": {"$gt": -1}}


class RetentionStore:
    """Finds old threads and deletes them in batches.

    A thread's documents have its id in a field or at the start of their key. Audit entries stay, as
    `storage.ledger` describes.

    Args:
        collections: The collections, by name.
        database: Has the logs, the checkpoints and the audit.
    """

    def __init__(self, collections: Collections, database: DocumentDatabase) -> None:
        self._collections = collections
        self._threads = collections["threads"]
        self._ledgers = database.ledgers
        self.strip, self.clear_log = database.trail.strip, database.clear_log

    async def named(self, channel_id: str, thread_ts: str) -> Sequence[str]:
        """Return the ids of the threads with this channel and `thread_ts`, in all workspaces."""
        thread_ids: list[str] = []
        for team_id in await teams_of(self._threads):
            thread_id = thread_id_of(team_id, channel_id, thread_ts)
            if await self._threads.count({"id": thread_id}, with_quarantined=True):
                thread_ids.append(thread_id)
        return thread_ids

    async def resting(
        self, *, before_ms: int, limit: int, after: tuple[int, str] = (-1, "")
    ) -> Sequence[tuple[int, str]]:
        """Return threads at rest without activity since `before_ms`, the oldest first.

        The documents are not read, so an unreadable one does not block the others.

        Args:
            before_ms: Upper limit of `active_ms`, exclusive.
            limit: Maximum number of threads.
            after: The last item of the previous page.

        Returns:
            `active_ms` and id of each thread.
        """
        where = {"turn_open": False, "due_ms": None, "active_ms": {"$lt": before_ms}}
        places = await self._threads.places(
            where, sort=["active_ms"], limit=max(limit, 0), after=after
        )
        return [(int(str(active_ms)), str(key)) for active_ms, key in places]

    async def left(self, thread_id: str) -> Mapping[str, int]:
        """Count a thread's unfinished records. With any of them, nothing may be deleted.

        Returns:
            The counts above zero by kind: `requests` (open, or with a card to update), `messages`
                (not read by a turn), `texts` (not posted), `answers` (ephemeral messages not sent).
        """
        here = {"thread_id": thread_id}
        requests = self._collections["approvals"]
        counts = {
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
        return {name: number for name, number in counts.items() if number}

    async def counts(self, thread_id: str) -> Mapping[str, int]:
        """Count a thread's records by collection, without zeros."""
        counts = {
            name: sum([await _all(self._collections[name], where) for where in wheres])
            for name, wheres in wheres_of(thread_id).items()
        }
        counts |= await self._ledgers.counts(thread_id)
        return {name: number for name, number in counts.items() if number}

    async def seal(self, thread_id: str, *, owner: str, now_ms: int, until_ms: int) -> int | None:
        """Acquire the lease of a thread at rest, in one conditional write.

        An unreadable thread is quarantined and can be sealed, too.

        Returns:
            The fencing token; None, without a write, if the thread is not at rest.
        """
        try:
            await self._threads.get(thread_id)
        except RecordFormatError as error:  # no process works on an unreadable thread
            await self._threads.quarantine(thread_id, why=str(error))
        except RecordNotFoundError:
            return None
        return await self._threads.claim_at_rest(
            thread_id, {"turn_open": False}, owner=owner, now_ms=now_ms, until_ms=until_ms
        )

    async def erase(self, thread_id: str, *, limit: int) -> int:
        """Delete up to `limit` records of each kind, except the thread and its audit entries.

        A message that no turn has read is kept: it arrived after the thread was sealed.

        Returns:
            The number of deleted records; 0 if none remain.
        """
        erased = await self._ledgers.erase(thread_id, limit=limit)
        for name, wheres in wheres_of(thread_id).items():
            for where in wheres:
                erased += await self._collections[name].delete(where, limit=limit)
        return erased

    async def drop(self, thread_id: str, *, fence: int) -> bool:
        """Delete the thread itself, if it is still at rest and the lease is valid."""
        sealed = {"id": thread_id, "fence": fence, "due_ms": None, "leased_until_ms": {"$gt": 0}}
        return bool(await self._threads.delete(sealed, limit=1))

    async def give_back(self, thread_id: str, *, fence: int) -> None:
        """Release the lease of a sealed thread. If new work arrived, the thread is due."""
        await self._threads.release(thread_id, fence=fence)

    async def erase_ephemeral(self, *, before_ms: int, limit: int) -> int:
        """Delete older ephemeral messages that were sent, and starts that began no thread."""
        where = {"created_ms": {"$lt": before_ms}, "due_ms": None}
        erased = await self._collections["ephemeral_messages"].delete(where, limit=limit)
        starts = self._collections["thread_starts"]
        unbegun = {"thread_id": "", "created_ms": {"$lt": before_ms}}
        return erased + await starts.delete(unbegun, limit=limit)


def wheres_of(thread_id: str) -> dict[str, list[Where]]:
    """Return the conditions of all documents of a thread, by collection.

    Unread messages and the thread itself are excluded.
    """
    here = {"thread_id": thread_id}
    keys = [{"id": {"$gte": first, "$lt": end}} for first, end in key_ranges(thread_id)]
    return {
        "approvals": [here],
        "messages": [{**here, "turn": {"$ne": 0}}],
        "ephemeral_messages": [place_of(thread_id)],
        "grants": [here],
        "posts": [*keys],
        "thread_starts": [here],
        "webhook_deliveries": [here],
        "webhook_queues": [here],
    }


async def teams_of(threads: Collection[Any]) -> list[str]:
    """Return the workspaces that have threads. Each query skips all ids of a workspace."""
    teams: list[str] = []
    while places := await threads.places(
        {"id": {"$gte": ids_after(teams[-1] if teams else "")}}, limit=1
    ):
        teams.append(team_of(str(places[0][-1])))
    return teams


async def _all(collection: Collection[Any], where: Where) -> int:
    return await collection.count(where, with_quarantined=True)
