"""Retention: delete old threads; the audit keeps who, what and when.

Only threads at rest are deleted. The thread is locked by its lease, the deletion is recorded, the
records are deleted in batches, and the thread itself last. After a crash the thread is still at
rest, and the next run deletes it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.clock import is_waiting, milliseconds
from bot.leases import FORGETTING_LEASE
from bot.ports.process import Clock
from bot.records.approval_queries import newest_of
from bot.records.thread import Thread
from bot.stores import Stores
from storage.errors import RecordFormatError, RecordNotFoundError, StorageError

logger = logging.getLogger(__name__)

PIECE = 200
"""Number of records per delete; other queries run in between."""
AT_ONCE = 8
"""Number of threads that are deleted side by side: each takes some 80 commands, one by one."""
PERMALINK = re.compile(
    r"https?://[^/\s]+/archives/(?P<channel>[A-Z0-9]+)/p(?P<ts>[0-9]{11,})(?:\?(?P<query>\S*))?"
)
_WORDS = {
    "requests": "a request waits for people, or its card has yet to be drawn",
    "messages": "a message has not been read yet",
    "texts": "a text of the agent has not been shown yet",
    "answers": "a private answer has not been told yet",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Forecast of deleting a thread.

    Attributes:
        counts: Number of records by collection.
        refusal: Why the thread cannot be deleted now; empty if it can.
    """

    thread_id: str
    counts: Mapping[str, int]
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """Deletes threads."""

    storage: Stores
    clock: Clock
    owner: str

    async def thread_id_of(self, name: str) -> str:
        """Return the id of the thread that a name or link denotes.

        Raises:
            RecordNotFoundError: No thread, or more than one, matches.
        """
        if name.startswith("apr_"):
            return (await self.storage.approvals.get(name)).thread_id
        place = _place_of(name)
        if place is None:
            return name
        threads = await self.storage.retention.named(*place)
        if len(threads) != 1:
            raise RecordNotFoundError("thread", name if not threads else f"{name} ({threads})")
        return threads[0]

    async def forecast(self, thread_id: str) -> Forecast:
        """Return what deleting a thread would do, without changes.

        Raises:
            RecordNotFoundError: There are no records of this thread.
        """
        counts = await self.storage.retention.counts(thread_id)
        try:
            thread = await self.storage.threads.get(thread_id)
        except RecordNotFoundError:
            if not set(counts) - {"audit"}:
                raise
            return Forecast(thread_id=thread_id, counts=counts)  # records of a deleted thread
        except RecordFormatError:  # no process works on it, and the seal does not read its body
            refusal = await self._unfinished(thread_id)
            return Forecast(thread_id=thread_id, counts=counts, refusal=refusal)
        return Forecast(thread_id=thread_id, counts=counts, refusal=await self._refusal(thread))

    async def forget(self, thread_id: str, *, how: str) -> Forecast:
        """Delete all records of a thread if it is at rest.

        Returns:
            What the thread had, and why it was kept, if it was.

        Raises:
            RecordNotFoundError: There are no records of this thread.
        """
        forecast = await self.forecast(thread_id)
        if forecast.refusal:
            return forecast
        now = self.clock()
        fence = await self.storage.retention.seal(
            thread_id, owner=self.owner, now_ms=now, until_ms=now + milliseconds(FORGETTING_LEASE)
        )
        if fence is None and await self._is_there(thread_id):
            return Forecast(thread_id=thread_id, counts=forecast.counts, refusal="it was woken")
        # Check again: work may have arrived before the lease was taken.
        refusal = await self._unfinished(thread_id)
        if not refusal:
            await note(
                self.storage.audit,
                Act.FORGOTTEN,
                key=f"{thread_id}:{now}",
                at_ms=now,
                about=thread_id,
                how=how,
                count=dict(forecast.counts),
            )
            refusal = await self._erase(thread_id, fence)
        if fence is not None:
            refusal = await self._end(thread_id, fence, refusal)
        return Forecast(thread_id=thread_id, counts=forecast.counts, refusal=refusal)

    async def old(self, before_ms: int) -> AsyncIterator[Sequence[tuple[int, str]]]:
        """Yield a few threads at rest without activity since a time: last activity and id.

        The requests of a program that stand in one thread are a thread, too.
        """
        after = (-1, "")
        while threads := await self.storage.retention.resting(
            before_ms=before_ms, limit=AT_ONCE, after=after
        ):
            yield threads
            after = threads[-1]
        if requests := await self.old_requests(before_ms):
            yield requests

    async def old_requests(self, before_ms: int) -> Sequence[tuple[int, str]]:
        """Return threads of programs' requests that are over, without a change since a time."""
        programs = {key.program_id for key in await self.storage.programs.all_keys()}
        old: dict[str, int] = {}
        for program in sorted(programs):
            where = {"asker.program": program, "shown_ms": {"$lt": before_ms}}
            page = await self.storage.approvals.find(where, sort=["shown_ms"], limit=AT_ONCE)
            for thread_id in dict.fromkeys(approval.thread_id for approval in page.documents):
                group = await newest_of(self.storage.approvals, thread_id, limit=AT_ONCE)
                last_ms = max(approval.shown_ms for approval in group)
                if last_ms < before_ms and not any(approval.open for approval in group):
                    old[thread_id] = last_ms
        return [(last_ms, thread_id) for thread_id, last_ms in old.items()]

    async def erase_ephemeral(self, before_ms: int) -> int:
        """Delete finished ephemeral messages older than a time; return the count."""
        total = 0
        while erased := await self.storage.retention.erase_ephemeral(
            before_ms=before_ms, limit=PIECE
        ):
            total += erased
        return total

    async def erase_delegations(self, before_ms: int) -> int:
        """Delete delegations and absences that ended before a time; return the count.

        The audit keeps them.
        """
        total = 0
        while erased := await self.storage.delegations.erase(before_ms=before_ms, limit=PIECE):
            total += erased
        return total

    async def erase_people(self) -> int:
        """Delete the records of people without preferences; return the count.

        Returns:
            The number of deleted people.
        """
        total = 0
        while erased := await self.storage.people.erase(limit=PIECE):
            total += erased
        return total

    async def _is_there(self, thread_id: str) -> bool:
        try:
            await self.storage.threads.get(thread_id)
        except RecordNotFoundError:
            return False
        except RecordFormatError:
            pass
        return True

    async def _refusal(self, thread: Thread) -> str:
        if thread.leased_until_ms > self.clock():
            return "a process is working on it; try again"
        if thread.turn_open:
            return "its turn is not over"
        reason = await self._unfinished(thread.thread_id)
        return reason or ("there is work to be done in it" if thread.due_ms is not None else "")

    async def _unfinished(self, thread_id: str) -> str:
        left = await self.storage.retention.left(thread_id)
        return "; ".join(words for name, words in _WORDS.items() if name in left)

    async def _erase(self, thread_id: str, fence: int | None) -> str:
        """Delete in batches under the lease; return why records remain, if any do."""
        retention, half = self.storage.retention, milliseconds(FORGETTING_LEASE) // 2
        long_ms = self.clock() + half
        more = 1
        while more:
            more = await retention.erase(thread_id, limit=PIECE)
            more += await retention.strip(thread_id, limit=PIECE)
            now = self.clock()
            if fence is not None and now >= long_ms:
                long_ms = now + half
                if not await self.storage.threads.extend(
                    thread_id, fence=fence, until_ms=now + milliseconds(FORGETTING_LEASE)
                ):
                    return "it took too long, and another process has it now: try again"
        return ""

    async def _end(self, thread_id: str, fence: int, refusal: str) -> str:
        """Delete the thread itself, or release it."""
        if not refusal and await self.storage.retention.drop(thread_id, fence=fence):
            return ""
        await self.storage.retention.give_back(thread_id, fence=fence)
        return refusal or "a new message arrived: only older data is deleted"


@dataclass(slots=True, kw_only=True)
class Retention:
    """Deletes threads older than the configured age, a few at a time."""

    forgetting: Forgetting
    keep: timedelta
    most: int = 5
    pause: timedelta = timedelta(minutes=10)
    _after: tuple[int, str] = (-1, "")
    _next_ms: int = 0
    _is_busy: bool = False

    async def step(self) -> None:
        """Delete a few threads.

        Threads that cannot be deleted now are tried again in the next round.
        """
        now = self.forgetting.clock()
        if self._is_busy or is_waiting(self._next_ms, now, self.pause):
            return
        self._is_busy = True
        try:
            await self._step(now)
        except StorageError as error:
            logger.warning(
                "deleting old threads failed, will retry: %s",
                error,
                extra={"action": "retention_failed"},
            )
            self._next_ms = now + milliseconds(self.pause) // 10
        finally:
            self._is_busy = False

    async def _step(self, now: int) -> None:
        before_ms = now - milliseconds(self.keep)
        places = await self.forgetting.storage.retention.resting(
            before_ms=before_ms, limit=self.most, after=self._after
        )
        for place in places:
            self._after = place
            await self._forget(place[1])
        erased = len(places)
        if len(places) < self.most:
            for _, thread_id in await self.forgetting.old_requests(before_ms):
                await self._forget(thread_id)
                erased += 1
            erased += await self.forgetting.erase_ephemeral(before_ms)
            erased += await self.forgetting.erase_delegations(before_ms)
            erased += await self.forgetting.erase_people()
        if erased:
            await self.forgetting.storage.retention.clear_log()  # or in the next step
        if len(places) < self.most:
            self._after, self._next_ms = (-1, ""), now + milliseconds(self.pause)

    async def _forget(self, thread_id: str) -> None:
        forecast = await self.forgetting.forget(thread_id, how="retention")
        logger.info(
            "a thread is %s",
            f"kept: {forecast.refusal}" if forecast.refusal else "deleted",
            extra={"action": "forgotten", "thread_id": thread_id},
        )


def _place_of(name: str) -> tuple[str, str] | None:
    """Return the channel and `thread_ts` of a link; None if it is no link."""
    match = PERMALINK.fullmatch(name)
    if match is None:
        return None
    root = re.search(r"(?:^|&)thread_ts=([0-9]+\.[0-9]+)(?:&|$)", match["query"] or "")
    ts = match["ts"]
    return match["channel"], root[1] if root else f"{ts[:-6]}.{ts[-6:]}"
