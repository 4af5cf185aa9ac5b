"""The use cases of threads: keep a message, and let the thread's agent work.

Whoever holds a thread's lease works on it. All work here starts from records, so
any process can go on where another one was cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from cachetools import LRUCache

from agents import AgentError, CheckpointClosedError
from agents.core.errors import (
    CheckpointBusyError,
    CheckpointConflictError,
    CheckpointVersionError,
    ModelAnswerError,
    ModelError,
    ModelRefusedError,
    ModelTimeoutError,
    NothingPendingError,
    UnknownInterruptError,
)
from agents.graph import NotAnsweredError
from bot.audit.acts import Act
from bot.audit.entries import note
from bot.config.durations import format_duration
from bot.errors import DeliveryError, DirectoryError, RunEndedError, TurnCrashedError
from bot.leases import LEASE, THREAD_RETRY, ClaimedRecord, ClaimedWork
from bot.maintenance.thread_recovery import ThreadRecovery
from bot.observability.context import about
from bot.people.thread_pass import LeftOver, ThreadPass
from bot.ports.process import Clock
from bot.threads.closing import STOPPED, is_given_up
from bot.threads.inbox import ThreadInbox
from bot.threads.outbox import Outbox
from bot.threads.runs.streaming import post_id
from bot.threads.runs.task_board import end_tasks
from bot.threads.summaries import Summaries
from bot.threads.turns import Progress, Turns
from bot.words import say
from storage.base import Storage
from storage.errors import (
    RecordFormatError,
    RecordRefusedError,
    StorageError,
    StoreUnavailableError,
)
from storage.records import Message, Post, Thread

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 6
MAX_CRASHES = 3
"""Maximum number of attempts of a turn during which the process dies."""
MAX_CRASHES_AT_END = 3
"""A thread is set aside if the process ended so often while its turn was given up, too."""
CRASH_PATIENCE_S = 30.0
"""The longest that work which was cut off waits for other work which was cut off."""
CRASH_PAUSE_S = 10.0
"""The wait before work is tried whose last try was cut off as well: others may be the cause."""
MAX_SILENCES = 2
"""A model that sends nothing is asked so often: each time takes as long as it may be silent."""
MAX_SAID = 500
"""Characters that are told of a model's words when it declines."""
MAX_LOOKS = 60
"""Maximum number of looks at a run that another process continues."""
UNREADABLE = "unreadable"
"""Part of the key of the post that says that a thread stands still."""
_REMEMBERED = 1_000
"""Threads of which this process knows what its last pass left; of others it is looked up."""
_OVERTAKEN = (
    CheckpointBusyError,
    CheckpointClosedError,
    CheckpointConflictError,
    NothingPendingError,
    UnknownInterruptError,
)
"""Another process has gone on with the run: look again, do not end its turn."""


@dataclass(slots=True)
class _WorkHere:
    """The work of this process on one thread, while it has its lease.

    Attributes:
        is_wanted: Whether somebody came for more than its pass has seen.
    """

    is_wanted: bool = True


@dataclass(frozen=True, slots=True)
class Threads:
    """Works on threads, one lease at a time.

    Args:
        storage: Where records are kept.
        inbox: Sorts people's messages.
        turns: Runs and resumes the agent.
        outbox: How people are told.
        clock: The time now.
        owner: Name of this process in leases.
        lease: How long a thread is taken for; prolonged while the work lasts.
        sleep: Waits for some seconds.
        beat: Waits before a lease is prolonged.
        summaries: Sum up what became of a thread's requests; None for never.
    """

    storage: Storage
    inbox: ThreadInbox
    turns: Turns
    outbox: Outbox
    clock: Clock
    owner: str
    lease: timedelta = LEASE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    beat: Callable[[float], Awaitable[None]] = asyncio.sleep
    summaries: Summaries | None = None
    _refused: set[str] = field(default_factory=set)
    _left: LRUCache[str, LeftOver] = field(default_factory=lambda: LRUCache(_REMEMBERED))
    _here: dict[str, _WorkHere] = field(default_factory=dict)
    _cut_off: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def catch_up(self) -> list[str]:
        """Wake the threads whose work stopped here as Slack refused the app: it lets it in again.

        Returns:
            Their ids.

        Raises:
            StoreUnavailableError: They are due again by themselves.
        """
        waiting = list(self._refused)
        self._refused.clear()
        for thread_id in waiting:
            await self.storage.threads.wake(thread_id, now_ms=self.clock())
        return waiting

    @property
    def _comeback(self) -> ThreadRecovery:
        return ThreadRecovery(self.storage, self.turns.ending, self.clock, self.turns.spawn)

    async def work(self, thread_id: str) -> None:
        """Do all that is due in a thread; nothing when another process has it.

        Where this process is at it, nothing is claimed: what woke the thread before its lease is
        given back is seen by that, and what came after is looked for once more. Work that has lost
        its lease, and only takes its time to end, keeps nobody from the thread.

        Raises:
            StoreUnavailableError: The lease ends by itself, and the work is due again.
        """
        here = self._here.get(thread_id)
        if here is not None:
            here.is_wanted = True
            return
        here = self._here[thread_id] = _WorkHere()
        try:
            while here.is_wanted:
                here.is_wanted = False
                await self._claimed.do(thread_id, partial(self._visit, here))
        finally:
            if self._here.get(thread_id) is here:
                self._leave(thread_id)

    def _leave(self, thread_id: str) -> None:
        """End the work here; who came for more, and was not seen to, begins anew."""
        here = self._here.pop(thread_id, None)
        if here is not None and here.is_wanted:
            self.turns.spawn(self.work(thread_id))

    @property
    def _claimed(self) -> ClaimedWork[Thread]:
        return ClaimedWork(
            claim=self.storage.threads.claim,
            owner=self.owner,
            clock=self.clock,
            lease=self.lease,
            sleep=self.beat,
        )

    async def _visit(self, here: _WorkHere, hold: ClaimedRecord[Thread]) -> bool:
        """Work under the lease, and give it back; whether nothing more is due now."""
        thread = hold.record
        if thread.crashes >= MAX_CRASHES + MAX_CRASHES_AT_END:
            return await self._leave_alone(thread)
        work = ThreadPass(thread=thread, left=self._left_by_the_last(thread))
        try:
            with about(thread_id=thread.thread_id):
                retry_ms = await self._work_on_what_is_read(work)
        except asyncio.CancelledError:
            await self._hand_over(thread)
            raise
        here.is_wanted = False  # who wanted more has woken it before this release
        return await self.storage.threads.release(
            thread.thread_id,
            fence=thread.fence,
            wakes=thread.wakes,
            now_ms=self.clock(),
            retry_ms=retry_ms,
            ends_turn=work.has_ended_turn,
        )

    async def _hand_over(self, thread: Thread) -> None:
        """Release the lease of work that a stop has cut off, so that another process goes on."""
        with suppress(StorageError):  # else it ends by itself
            await self.storage.threads.release(
                thread.thread_id, fence=thread.fence, wakes=thread.wakes - 1, now_ms=self.clock()
            )

    def _left_by_the_last(self, thread: Thread) -> LeftOver | None:
        """Return what the last pass left, if this process made it and nobody came between."""
        left: LeftOver | None = self._left.pop(thread.thread_id, None)
        if thread.restored_era or thread.attempts:
            return None
        if thread.fence == 1:
            return LeftOver(fence=0, made_ms=thread.created_ms)  # nobody has ever worked on it
        before = (thread.fence - 1, thread.created_ms)
        return left if left is not None and (left.fence, left.made_ms) == before else None

    async def _work_on_what_is_read(self, work: ThreadPass) -> int | None:
        """Work under the lease; when something of the thread cannot be read, it stands still."""
        thread = work.thread
        try:
            return await self._work_claimed(work)
        except (RecordFormatError, CheckpointVersionError) as error:
            try:
                await self._set_aside(thread, error)
            except DeliveryError as failure:
                return await self._retry(thread, failure)
        return None

    async def _leave_alone(self, thread: Thread) -> bool:
        """Quarantine a thread that ends the process even while its turn is given up."""
        why = str(TurnCrashedError(thread.crashes))
        logger.error(
            "a thread is set aside: %s",
            why,
            extra={"action": "thread_set_aside", "thread_id": thread.thread_id},
        )
        await self.storage.threads.set_aside(thread.thread_id, fence=thread.fence, why=why)
        return True

    async def _set_aside(self, thread: Thread, error: Exception) -> None:
        """Say that nothing more runs here, and leave the thread to a release that can read it.

        To go on without what cannot be read would be to ask twice, to lose what people decided, or
        to act without their words.
        """
        post = Post(
            post_id=f"{thread.checkpoint_id}/{UNREADABLE}",
            thread_id=thread.thread_id,
            text=say("error.unreadable"),
            created_ms=self.clock(),
        )
        with suppress(RecordFormatError):  # said before, and that cannot be read either
            await self.outbox.say(thread, post)
        logger.error(
            "quarantined an unreadable thread: %s; run `countersign doctor` for details",
            error,
            extra={"action": "thread_set_aside", "thread_id": thread.thread_id},
        )
        await self.storage.threads.set_aside(thread.thread_id, fence=thread.fence, why=str(error))

    async def _work_claimed(self, work: ThreadPass) -> int | None:
        """Work under the lease; return when to try again, None when nothing is left to do."""
        thread = work.thread

        async def extend(until_ms: int) -> bool:
            threads, fence = self.storage.threads, thread.fence
            is_kept = await threads.extend(thread.thread_id, fence=fence, until_ms=until_ms)
            self.turns.presence.refresh(thread.thread_id)
            await self._heed_stop(thread.thread_id)
            return is_kept

        def lost() -> None:
            self._leave(thread.thread_id)

        async with self._claimed.kept(thread, extend, lost=lost), self._counted(thread):
            try:
                await self._attempt(work)
            except ModelRefusedError as error:
                await self._give_up(thread, error)  # asking again does not help
            except (DeliveryError, DirectoryError, ModelError, *_OVERTAKEN) as error:
                return await self._retry(thread, error)
            except (StoreUnavailableError, RecordFormatError, CheckpointVersionError):
                raise  # it is due again: when the lease ends, or when somebody can read it
            except (AgentError, RecordRefusedError, RunEndedError, TurnCrashedError) as error:
                await self._give_up(thread, error)
            except Exception as error:  # noqa: BLE001 (a fault of ours must not stop it for ever)
                return await self._retry(thread, error)
        return None

    @asynccontextmanager
    async def _counted(self, thread: Thread) -> AsyncIterator[None]:
        """Count an attempt at work that was cut off, while no other such work goes on here.

        A process that dies cuts off all of its threads, and one of them may be the cause. So they
        are tried one after the other, and only the count of the one that is tried rises. It waits
        before its last try, so that other causes, which end several processes in a row, count less.
        """
        if not thread.was_cut_off:
            yield
            return
        logger.warning(
            "work on a thread was cut off, and is begun again",
            extra={"action": "thread_cut_off", "thread_id": thread.thread_id},
        )
        if thread.crashes == 1:
            await self.sleep(CRASH_PAUSE_S)
        async with AsyncExitStack() as stack:
            with suppress(TimeoutError):
                async with asyncio.timeout(CRASH_PATIENCE_S):
                    await stack.enter_async_context(self._cut_off)
            await self.storage.threads.count_crash(thread.thread_id, fence=thread.fence)
            yield

    async def _attempt(self, work: ThreadPass) -> None:
        thread = work.thread
        if thread.crashes + thread.was_cut_off >= MAX_CRASHES:
            raise TurnCrashedError(MAX_CRASHES)
        await self._advance(work)
        self._left[thread.thread_id] = LeftOver(
            fence=thread.fence, made_ms=thread.created_ms, running=work.running
        )

    async def _advance(self, work: ThreadPass) -> None:
        if work.thread.restored_era:
            work.thread = await self._comeback.settle(work.thread)
        if work.left is None:  # who left it in order left no text behind, and no turn half begun
            await self.turns.open_left(work)
            work.thread = await self._finish_posts(work.thread)
        while True:
            admitted = await self._sorted(work)
            was_open = work.thread.turn_open
            if not await self._has_turn(work, admitted):
                return
            progress = await self.turns.step(work, admitted)
            if progress is Progress.WAITING:
                return
            if progress is Progress.ENDED:
                await self._sum_up(work)
                # What came meanwhile woke the thread: the release of the lease knows that.
                if not (was_open and admitted) and not work.has_more:
                    work.has_ended_turn, work.running = True, ()
                    return
                await self.turns.end(work)

    async def _has_turn(self, work: ThreadPass, admitted: Sequence[str]) -> bool:
        """Whether a turn is open; the next one begins where there is something for it."""
        if work.thread.turn_open:
            return True
        await self.turns.close_answered(work.thread)
        if admitted:
            self.turns.begin(work)
            return True
        return await self.turns.open_left(work)  # who slept may just have taken messages for it

    async def _sum_up(self, work: ThreadPass) -> None:
        """Show what became of the thread's requests, before its turn is over on record."""
        if self.summaries is not None:
            await self.summaries.show(work.thread, decided=work.decided)

    async def _sorted(self, work: ThreadPass) -> list[str]:
        """Sort what is new; whoever wants the open turn to end has it ended first."""
        admitted = await self.inbox.sort(work)
        if work.stop is not None:
            await self._stop(work, work.stop)
        return admitted

    async def _stop(self, work: ThreadPass, message: Message) -> None:
        """End the open turn as the writer of a message wants it.

        The message stays new until that is done, so that a crash in between changes nothing.
        """
        thread = work.thread
        await note(
            self.storage.audit,
            Act.STOPPED,
            key=message.message_id,
            at_ms=self.clock(),
            about=thread.thread_id,
            by=message.user_id,
            checkpoint=thread.checkpoint_id,
        )
        await self.turns.ending.stop(work, await self.inbox.stops.told(thread, message))
        await self.inbox.done_with(message)
        work.stop = None
        await self.outbox.finish(work.thread, await self.storage.posts.unfinished(thread.thread_id))

    async def _heed_stop(self, thread_id: str) -> None:
        """Stop the run that goes on here when somebody has told another process so."""
        stopping = self.turns.stopping
        if stopping.is_running(thread_id) and await self.inbox.has_stop(thread_id):
            stopping.stop(thread_id)

    async def _finish_posts(self, thread: Thread) -> Thread:
        """Do what a crash left: end a turn that was given up, show texts that were kept back."""
        if thread.turn_open:
            await self.turns.clear_status(thread)
        posts = await self.storage.posts.unfinished(thread.thread_id)
        for post in posts:
            await end_tasks(self.storage.posts, self.turns.board, thread, post)
            if is_given_up(thread, post):
                is_stopped = post.post_id == post_id(thread, STOPPED)
                await self.turns.ending.abandon(thread, post.text, is_stopped=is_stopped)
                thread = replace(thread, turn_open=False)
        await self.outbox.finish(thread, posts)
        return thread

    async def _retry(self, thread: Thread, error: Exception) -> int | None:
        logger.warning(
            "thread processing failed, will retry: %s",
            error,
            extra={"action": "thread_failed", "thread_id": thread.thread_id},
        )
        is_slack = isinstance(error, DeliveryError | DirectoryError)
        most = MAX_LOOKS if isinstance(error, _OVERTAKEN) else MAX_ATTEMPTS
        most = MAX_SILENCES if isinstance(error, ModelTimeoutError) else most
        if not is_slack and thread.attempts + 1 >= most:
            await self._give_up(thread, error)
            return None
        if isinstance(error, DeliveryError) and error.is_refusal:
            self._refused.add(thread.thread_id)
        wish = error.retry_after if isinstance(error, DeliveryError) else None
        return self.clock() + THREAD_RETRY.wait_ms(thread.attempts, thread.thread_id, wish)

    async def _give_up(self, thread: Thread, error: Exception) -> None:
        """End the turn in which the error came, and say so in the thread."""
        logger.error(
            "turn failed: %s",
            error,
            extra={"action": "turn_failed", "thread_id": thread.thread_id},
        )
        newest = await self.storage.threads.get(thread.thread_id)
        current = replace(newest, fence=thread.fence)  # ours: not that of who may have taken over
        if not (current.turn_open or await self._has_new(thread) or await self._has_left(current)):
            return  # nobody waits for anything
        await note(
            self.storage.audit,
            Act.TURN_FAILED,
            key=current.checkpoint_id,  # once, whoever gives it up
            at_ms=self.clock(),
            about=thread.thread_id,
            checkpoint=current.checkpoint_id,
            why=explain(error),
            error=type(error).__name__,
        )
        text = say("error.given_up", why=explain(error))
        try:
            if not await self.turns.ending.give_up(current, text):
                await self.inbox.set_aside(current)
        except CheckpointConflictError:
            return
        if await self._has_last_word(thread) or await self._has_new(thread):
            await self.storage.threads.wake(thread.thread_id, now_ms=self.clock())

    async def _has_new(self, thread: Thread) -> bool:
        """Whether people wrote something that nobody has read."""
        return bool(await self.storage.inbox.new(thread.thread_id, limit=1))

    async def _has_left(self, thread: Thread) -> bool:
        """Whether messages were taken for a turn that was not opened yet."""
        return bool(await self.storage.inbox.of_turn(thread.thread_id, thread.turn + 1))

    async def _has_last_word(self, thread: Thread) -> bool:
        """Say what is left to be said; whether some of it has to be said later."""
        posts = await self.storage.posts.unfinished(thread.thread_id)
        try:
            await self.outbox.finish(thread, posts)
        except DeliveryError as error:
            logger.warning(
                "could not post the outcome to the thread: %s",
                error,
                extra={"action": "post_failed"},
            )
            return True
        return False


def explain(error: Exception) -> str:
    """An error in words for the thread: what happened, and what to do."""
    match error:
        case ModelError():
            told = _of_model(error)
        case RecordRefusedError():
            told = say("error.turn_too_large")
        case RunEndedError() | TurnCrashedError():
            told = str(error)
        case NotAnsweredError(outcome=outcome):
            told = say("error.not_answered", why=outcome)
        case AgentError():
            told = say("error.what", why=error)
        case _:
            told = say("error.turn_ours")
    return told


def _of_model(error: ModelError) -> str:
    match error:
        case ModelRefusedError(model=model, fault=fault, said=said):
            name = say("error.model_name", name=model) if model else say("error.the_model")
            key = "error.model_declined" if said else f"error.model_{fault}"
            return say(key, model=name, said=said[:MAX_SAID])
        case ModelTimeoutError(seconds=seconds):
            time = format_duration(timedelta(seconds=max(seconds, 1)))
            return say("error.model_timeout", time=time)
        case ModelAnswerError():
            return say("error.model_unreadable")
        case _:
            return say("error.model_silent")
