"""The use cases of threads: keep a message, and let the thread's agent work.

A thread is worked on by whoever holds its lease. All of what is done here starts from records, so
any process can go on where another one was cut off.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import timedelta

from agents import (
    AgentError,
    CheckpointBusyError,
    CheckpointClosedError,
    CheckpointConflictError,
    ModelError,
    NothingPendingError,
    UnknownInterruptError,
)
from bot.errors import DeliveryError, DirectoryError
from bot.inbox import Inbox
from bot.ports import Clock, Notifier
from bot.timing import milliseconds
from bot.turns import Progress, Turns
from storage.base import Storage
from storage.errors import RecordFormatError, StoreUnavailableError
from storage.records import Post, Thread

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=15)
"""Prolonged while the work lasts; another process takes over when it ends."""
RETRY = timedelta(seconds=5)
MAX_ATTEMPTS = 6
_OVERTAKEN = (
    CheckpointBusyError,
    CheckpointClosedError,
    CheckpointConflictError,
    NothingPendingError,
    UnknownInterruptError,
)
"""Another process has gone on with the run: look again, do not end its turn."""


@dataclass(frozen=True, slots=True)
class Threads:
    """Works on threads, one lease at a time.

    Args:
        storage: Where records are kept.
        inbox: Sorts people's messages.
        turns: Runs and resumes the agent.
        notifier: How people are told.
        clock: The time now.
        owner: Name of this process in leases.
        lease: How long a thread is taken for; prolonged while the work lasts.
    """

    storage: Storage
    inbox: Inbox
    turns: Turns
    notifier: Notifier
    clock: Clock
    owner: str
    lease: timedelta = LEASE

    async def work(self, thread_id: str) -> None:
        """Do all that is due in a thread; nothing when another process has it.

        Raises:
            StoreUnavailableError: The lease ends by itself, and the work is due again.
        """
        while True:
            now = self.clock()
            thread = await self.storage.threads.claim(
                thread_id, owner=self.owner, now_ms=now, until_ms=now + milliseconds(self.lease)
            )
            if thread is None:
                return
            retry_ms = await self._work_claimed(thread)
            if await self.storage.threads.release(
                thread_id,
                fence=thread.fence,
                wakes=thread.wakes,
                now_ms=self.clock(),
                retry_ms=retry_ms,
            ):
                return

    async def _work_claimed(self, thread: Thread) -> int | None:
        """Work under the lease; return when to try again, None when nothing is left to do."""
        beat = asyncio.create_task(self._keep_lease(thread, asyncio.current_task()))
        try:
            await self._advance(thread)
        except (DeliveryError, DirectoryError, ModelError, *_OVERTAKEN) as error:
            return await self._retry(thread, error)
        except AgentError as error:
            await self._give_up(thread, error)
        except (StoreUnavailableError, RecordFormatError):
            raise  # the lease ends by itself, and the work is due again
        except Exception as error:  # noqa: BLE001 (a fault of ours must not stop a thread for ever)
            return await self._retry(thread, error)
        finally:
            beat.cancel()
        return None

    async def _keep_lease(self, thread: Thread, worker: asyncio.Task[None] | None) -> None:
        """Prolong the lease while the work lasts; stop the work when the lease is lost."""
        held_until_ms = thread.leased_until_ms
        while True:
            await asyncio.sleep(self.lease.total_seconds() / 3)
            until_ms = self.clock() + milliseconds(self.lease)
            try:
                kept = await self.storage.threads.extend(
                    thread.thread_id, fence=thread.fence, until_ms=until_ms
                )
            except StoreUnavailableError:
                kept = self.clock() < held_until_ms
            else:
                held_until_ms = until_ms
            if not kept and worker is not None:
                worker.cancel("the lease was lost")
                return

    async def _advance(self, thread: Thread) -> None:
        await self._finish_posts(thread)
        while True:
            admitted = await self.inbox.sort(thread)
            if not thread.turn_open:
                thread = await self.turns.close_answered(thread)
                if not admitted:
                    return
                thread = await self.turns.begin(thread)
            progress = await self.turns.step(thread, admitted)
            if progress is Progress.WAITING:
                return
            if progress is Progress.ENDED:
                thread = await self.turns.end(thread)

    async def _finish_posts(self, thread: Thread) -> None:
        """Show texts that a crash kept back; a text that was still growing comes with its run."""
        for post in await self.storage.posts.unfinished(thread.thread_id):
            if post.text:
                ts = await self.notifier.say(thread, post, look_first=True)
                await self.storage.posts.finish(post.post_id, ts=ts)

    async def _retry(self, thread: Thread, error: Exception) -> int | None:
        logger.warning(
            "thread work failed, will be repeated: %s",
            error,
            extra={"action": "thread_failed", "thread_id": thread.thread_id},
        )
        is_slack = isinstance(error, DeliveryError | DirectoryError)
        if not is_slack and thread.attempts + 1 >= MAX_ATTEMPTS:
            await self._give_up(thread, error)
            return None
        return self.clock() + (milliseconds(RETRY) << min(thread.attempts, 5))

    async def _give_up(self, thread: Thread, error: Exception) -> None:
        """End the turn in which the error came, and say so in the thread."""
        logger.error(
            "turn ended by an error: %s",
            error,
            extra={"action": "turn_failed", "thread_id": thread.thread_id},
        )
        newest = await self.storage.threads.get(thread.thread_id)
        current = replace(newest, fence=thread.fence)  # ours: not that of who may have taken over
        try:
            await self.turns.abandon(current)
        except CheckpointConflictError:
            return
        post = Post(
            post_id=f"{current.checkpoint_id}:failed",
            thread_id=thread.thread_id,
            text=f"I could not finish this, and nothing more will run. {explain(error)}",
            created_ms=self.clock(),
        )
        await self.storage.posts.add(post)
        try:
            await self._finish_posts(thread)
        except DeliveryError as failure:
            logger.warning("not told: %s", failure, extra={"action": "post_failed"})


def explain(error: Exception) -> str:
    """An error in words for the thread: what happened, and what to do."""
    if isinstance(error, ModelError):
        return "The model did not answer, also when asked again. Please try later."
    if not isinstance(error, AgentError):
        return "Something is wrong on my side; the log says what. Please tell whoever runs me."
    return f"What happened: {error}"
