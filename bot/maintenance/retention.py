"""Forgetting: all of a thread is deleted, and its audit keeps who, what and when.

A thread that is not over is never touched. The order is that of everything else, record and act:
the thread is sealed by its lease, the forgetting is put on record, then all is deleted in small
pieces, and the thread itself last. Cut off at any point, the thread is still at rest, and is
forgotten by whoever tries next.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.clock import milliseconds
from bot.leases import FORGETTING_LEASE
from bot.ports.process import Clock
from storage.base import Storage
from storage.errors import RecordFormatError, RecordNotFoundError, StorageError
from storage.records import Thread

logger = logging.getLogger(__name__)

PIECE = 200
"""Records of a kind that are deleted at a time: the database serves others in between."""
_UNREADABLE = "its record cannot be read: see `countersign doctor`"

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
    """The effect that forgetting a thread would have.

    Attributes:
        thread_id: Which.
        counts: How many records there are, by collection.
        refusal: Why it cannot be forgotten now; empty when it can.
    """

    thread_id: str
    counts: Mapping[str, int]
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """Deletes threads.

    Args:
        storage: Where records are kept.
        clock: The time now.
        owner: Name of this process in leases.
    """

    storage: Storage
    clock: Clock
    owner: str

    async def find(self, name: str) -> str:
        """Read which thread is meant.

        Args:
            name: The id of a thread, of an approval, or the link of a message of the thread.

        Raises:
            RecordNotFoundError: There is none, or it is not clear which.
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
        """Say what forgetting it would mean; nothing is changed.

        Raises:
            RecordNotFoundError: There is nothing of such a thread.
        """
        counts = await self.storage.retention.counts(thread_id)
        try:
            thread = await self.storage.threads.get(thread_id)
        except RecordNotFoundError:
            if not set(counts) - {"audit"}:
                raise
            return Forecast(thread_id=thread_id, counts=counts)  # what a lost thread has left
        except RecordFormatError:
            return Forecast(thread_id=thread_id, counts=counts, refusal=_UNREADABLE)
        return Forecast(thread_id=thread_id, counts=counts, refusal=await self._refusal(thread))

    async def forget(self, thread_id: str, *, how: str) -> Forecast:
        """Delete all of a thread, unless it is not over.

        Args:
            thread_id: Which.
            how: On whose wish, for the audit.

        Returns:
            What there was of it, and why it stays if it does.

        Raises:
            RecordNotFoundError: There is nothing of such a thread.
        """
        forecast = await self.forecast(thread_id)
        if forecast.refusal:
            return forecast
        now = self.clock()
        thread = await self.storage.retention.seal(
            thread_id, owner=self.owner, now_ms=now, until_ms=now + milliseconds(FORGETTING_LEASE)
        )
        if thread is None and await self._is_there(thread_id):
            return Forecast(thread_id=thread_id, counts=forecast.counts, refusal="it was woken")
        # Looked at again: something may have come between the look and the seal.
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
            refusal = await self._erase(thread_id, thread)
        if thread is not None:
            refusal = await self._end(thread, refusal)
        return Forecast(thread_id=thread_id, counts=forecast.counts, refusal=refusal)

    async def old(self, before_ms: int) -> AsyncIterator[tuple[int, str]]:
        """Threads at rest in which nothing has happened since then: since when, and their ids."""
        after = (-1, "")
        while found := await self.storage.retention.resting(
            before_ms=before_ms, limit=PIECE, after=after
        ):
            for thread in found:
                yield thread
            after = found[-1]

    async def erase_whispers(self, before_ms: int) -> int:
        """Delete private answers that are over and older; return how many."""
        total = 0
        while erased := await self.storage.retention.erase_whispers(
            before_ms=before_ms, limit=PIECE
        ):
            total += erased
        return total

    async def erase_delegations(self, before_ms: int) -> int:
        """Delete rights that were handed on, and absences, that were over before; return how many.

        The audit keeps that they were.
        """
        total = 0
        while erased := await self.storage.delegations.erase(before_ms=before_ms, limit=PIECE):
            total += erased
        return total

    async def erase_people(self, before_ms: int) -> int:
        """Delete what is kept of people who have no wishes, and were told nothing since.

        Returns:
            How many there were.
        """
        total = 0
        while erased := await self.storage.people.erase(before_ms=before_ms, limit=PIECE):
            total += erased
        return total

    async def _is_there(self, thread_id: str) -> bool:
        try:
            await self.storage.threads.get(thread_id)
        except RecordNotFoundError:
            return False
        return True

    async def _refusal(self, thread: Thread) -> str:
        if thread.leased_until_ms > self.clock():
            return "a process is working on it; try again"
        if thread.turn_open:
            return "its turn is not over"
        found = await self._unfinished(thread.thread_id)
        return found or ("there is work to be done in it" if thread.due_ms is not None else "")

    async def _unfinished(self, thread_id: str) -> str:
        left = await self.storage.retention.left(thread_id)
        return "; ".join(words for name, words in _WORDS.items() if name in left)

    async def _erase(self, thread_id: str, thread: Thread | None) -> str:
        """Delete piece by piece under the lease; return why something stays, if it does."""
        retention, half = self.storage.retention, milliseconds(FORGETTING_LEASE) // 2
        long_ms = self.clock() + half
        more = 1
        while more:
            more = await retention.erase(thread_id, limit=PIECE)
            more += await retention.strip(thread_id, limit=PIECE)
            now = self.clock()
            if thread is not None and now >= long_ms:
                long_ms = now + half
                if not await self.storage.threads.extend(
                    thread_id, fence=thread.fence, until_ms=now + milliseconds(FORGETTING_LEASE)
                ):
                    return "it took too long, and another process has it now: try again"
        return ""

    async def _end(self, thread: Thread, refusal: str) -> str:
        """Delete the thread itself, or give it back."""
        if not refusal and await self.storage.retention.drop(thread):
            return ""
        await self.storage.threads.release(
            thread.thread_id, fence=thread.fence, wakes=thread.wakes, now_ms=self.clock()
        )
        return refusal or "a new message arrived: only older data is deleted"


@dataclass(slots=True, kw_only=True)
class Retention:
    """Forgets what is older than the operator wants, a few threads at a time.

    Args:
        forgetting: Deletes threads.
        keep: How long a thread is kept after the last thing that happened in it.
        most: Threads of one step.
        pause: From when all is done to the next look.
    """

    forgetting: Forgetting
    keep: timedelta
    most: int = 5
    pause: timedelta = timedelta(minutes=10)
    _after: tuple[int, str] = (-1, "")
    _next_ms: int = 0
    _is_busy: bool = False

    async def step(self) -> None:
        """Forget a few threads.

        What cannot be forgotten now is passed over, and comes again with the next round.
        """
        now = self.forgetting.clock()
        if self._is_busy or now < self._next_ms:
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
        found = await self.forgetting.storage.retention.resting(
            before_ms=before_ms, limit=self.most, after=self._after
        )
        for place in found:
            self._after, thread_id = place, place[1]
            forecast = await self.forgetting.forget(thread_id, how="retention")
            logger.info(
                "a thread is %s",
                f"kept: {forecast.refusal}" if forecast.refusal else "deleted",
                extra={"action": "forgotten", "thread_id": thread_id},
            )
        erased = len(found)
        if len(found) < self.most:
            erased += await self.forgetting.erase_whispers(before_ms)
            erased += await self.forgetting.erase_delegations(before_ms)
            erased += await self.forgetting.erase_people(before_ms)
        if erased:
            await self.forgetting.storage.retention.clear_log()  # or with the next step
        if len(found) < self.most:
            self._after, self._next_ms = (-1, ""), now + milliseconds(self.pause)


def _place_of(name: str) -> tuple[str, str] | None:
    """Channel and `thread_ts` of a link; None when it is none."""
    match = PERMALINK.fullmatch(name)
    if match is None:
        return None
    root = re.search(r"(?:^|&)thread_ts=([0-9]+\.[0-9]+)(?:&|$)", match["query"] or "")
    ts = match["ts"]
    return match["channel"], root[1] if root else f"{ts[:-6]}.{ts[-6:]}"
