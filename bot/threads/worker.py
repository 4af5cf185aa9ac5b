"""Process threads: store messages and let the agents work.

The owner of a thread's lease processes it. All work starts from records, so any process can
continue after a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from cachetools import LRUCache

from agents import AgentError, CheckpointClosedError
from agents.core.errors import (
    CheckpointBusyError,
    CheckpointConflictError,
    CheckpointVersionError,
    LimitReachedError,
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
from bot.clock import milliseconds
from bot.config.durations import format_duration
from bot.errors import DeliveryError, DirectoryError, RunEndedError, TurnCrashedError
from bot.leases import LEASE, THREAD_RETRY, ClaimedRecord, ClaimedWork
from bot.maintenance.thread_recovery import ThreadRecovery
from bot.observability.events import about
from bot.ports.process import Clock
from bot.ports.programs import ProgramCalls
from bot.records.messages import Message, Post
from bot.records.thread import Thread
from bot.stores import Stores
from bot.threads.closing import STOPPED, is_given_up, set_turn
from bot.threads.inbox import ThreadInbox
from bot.threads.outbox import Outbox
from bot.threads.runs.model_away import LONGEST_WAIT
from bot.threads.runs.streaming import post_id
from bot.threads.runs.task_board import end_tasks
from bot.threads.summaries import Summaries
from bot.threads.thread_pass import LeftOver, ThreadPass
from bot.threads.turns import Progress, Turns
from bot.words import say
from storage.errors import (
    RecordFormatError,
    RecordRefusedError,
    StorageError,
    StoreUnavailableError,
)

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 6
MAX_CRASHES = 3
"""Maximum number of attempts of a turn during which the process dies."""
MAX_CRASHES_AFTER_ANSWER = 5
"""Maximum number of such attempts after the agent's last answer, which people may have read."""
MAX_CRASHES_AT_END = 3
"""Number of crashes while ending a turn, after which its thread is quarantined."""
CRASH_PATIENCE_S = 30.0
"""Longest time that crashed work waits for other crashed work, in seconds."""
CRASH_PAUSE_S = 10.0
"""Seconds to wait before work whose last attempt crashed: others may be the cause."""
MAX_SILENCES = 2
"""Maximum number of calls to a model that sends nothing."""
MAX_SAID = 500
"""Characters to quote of a model's refusal."""
MAX_LOOKS = 60
"""Maximum number of checks of a run that another process continues."""
UNREADABLE = "unreadable"
"""Part of the key of the post about an unreadable thread."""
_REMEMBERED = 1_000
"""Number of threads whose last pass this process remembers."""
_OVERTAKEN = (
    CheckpointBusyError,
    CheckpointClosedError,
    CheckpointConflictError,
    NothingPendingError,
    UnknownInterruptError,
)
"""Another process has continued the run: read again, do not end the turn."""


@dataclass(slots=True)
class _WorkHere:
    """A thread that this process is working on.

    Attributes:
        is_wanted: Whether work was requested that the pass has not seen.
    """

    is_wanted: bool = True


@dataclass(frozen=True, slots=True)
class Threads:
    """Processes threads under their leases.

    Args:
        storage: The database.
        inbox: Routes messages.
        turns: Runs and resumes agents.
        outbox: Sends messages.
        clock: The time now.
        owner: Name of this process in leases.
        lease: Duration of a thread's lease, renewed during the work.
        sleep: Waits for some seconds.
        beat: Interval between renewals.
        summaries: Posts summaries; None for none.
        programs: Is told of the ends of turns; None without a door for programs.
    """

    storage: Stores
    inbox: ThreadInbox
    turns: Turns
    outbox: Outbox
    clock: Clock
    owner: str
    lease: timedelta = LEASE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    beat: Callable[[float], Awaitable[None]] = asyncio.sleep
    summaries: Summaries | None = None
    programs: ProgramCalls | None = None
    _refused: set[str] = field(default_factory=set)
    _left: LRUCache[str, LeftOver] = field(default_factory=lambda: LRUCache(_REMEMBERED))
    _here: dict[str, _WorkHere] = field(default_factory=dict)
    _cut_off: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def catch_up(self) -> list[str]:
        """Wake threads whose work stopped because Slack had refused the app.

        Returns:
            Ids of the threads.

        Raises:
            StoreUnavailableError: The threads are due again on schedule.
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
        """Process a thread while it is due, unless another process owns it.

        Within this process, no claim is needed: the running pass sees changes until its release,
        and checks again for later ones. A pass that lost its lease does not block a new one.

        Raises:
            StoreUnavailableError: The lease expires, and the thread is due again.
        """
        here = self._here.get(thread_id)
        if here is not None:
            here.is_wanted = True
            return
        here = self._here[thread_id] = _WorkHere()
        try:
            while here.is_wanted:
                here.is_wanted = False
                await self._claimed.do(thread_id, partial(self._work_and_release, here))
        finally:
            if self._here.get(thread_id) is here:
                self._leave(thread_id)

    def _leave(self, thread_id: str) -> None:
        """End the work here; restart it for requests that it has not seen."""
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

    async def _work_and_release(self, here: _WorkHere, hold: ClaimedRecord[Thread]) -> bool:
        """Work on the thread under its lease, release it; return whether nothing is due."""
        thread = hold.record
        if thread.crashes >= MAX_CRASHES + MAX_CRASHES_AT_END:
            return await self._leave_alone(thread)
        left = self._left_by_the_last(thread)
        running = left.running if left is not None else None
        work = ThreadPass(thread=thread, left=left, running=running)
        try:
            with about(thread_id=thread.thread_id):
                try:
                    retry_ms = await self._advance_under_lease(work)
                except (RecordFormatError, CheckpointVersionError) as error:
                    retry_ms = await self._set_aside(thread, error)
            here.is_wanted = False  # later requests woke the thread before this release
            return await self.storage.threads.release(
                thread.thread_id,
                fence=thread.fence,
                wakes=thread.wakes,
                now_ms=self.clock(),
                retry_ms=retry_ms,
                ends_turn=work.has_ended_turn,
                parked_by=work.parked_by if retry_ms is None else None,
                said=work.kept_text,
            )
        except asyncio.CancelledError:
            await self._hand_over(thread)
            raise
        except StoreUnavailableError:
            await self._put_off(thread)
            raise

    async def _hand_over(self, thread: Thread) -> None:
        """Release the lease of cancelled work, so another process can continue."""
        with suppress(StorageError):  # otherwise the lease expires
            await self.storage.threads.release(
                thread.thread_id, fence=thread.fence, wakes=thread.wakes - 1, now_ms=self.clock()
            )

    async def _put_off(self, thread: Thread) -> None:
        """Release the lease after a store failure, which must not count as a process crash.

        The work is due when the lease would have expired, so that late writes come first; and
        later each time, as it may ask a model again.
        """
        wait_ms = THREAD_RETRY.wait_ms(thread.attempts, thread.thread_id)
        now = self.clock()
        with suppress(StorageError):  # otherwise the lease expires
            await self.storage.threads.release(
                thread.thread_id,
                fence=thread.fence,
                wakes=thread.wakes,
                now_ms=now,
                retry_ms=now + max(wait_ms, milliseconds(self.lease)),
            )

    def _left_by_the_last(self, thread: Thread) -> LeftOver | None:
        """Return the state of the last pass, if this process made it."""
        left: LeftOver | None = self._left.pop(thread.thread_id, None)
        if thread.restored.epoch or thread.attempts:
            return None
        if thread.fence == 1:
            return LeftOver(fence=0, made_ms=thread.created_ms)  # no process has had the thread
        before = (thread.fence - 1, thread.created_ms)
        return left if left is not None and (left.fence, left.made_ms) == before else None

    async def _leave_alone(self, thread: Thread) -> bool:
        """Quarantine a thread that crashes the process even while its turn is ended."""
        why = str(TurnCrashedError(thread.crashes))
        logger.error(
            "a thread is set aside: %s",
            why,
            extra={"action": "thread_set_aside", "thread_id": thread.thread_id},
        )
        await self.storage.threads.set_aside(thread.thread_id, fence=thread.fence, why=why)
        return True

    async def _set_aside(self, thread: Thread, error: Exception) -> int | None:
        """Post that nothing more runs here, and quarantine the thread for a later release.

        Continuing without the unreadable record could request approval twice, lose decisions, or
        act without people's messages.

        Returns:
            When to try again, if Slack did not take the post; else None.
        """
        post = Post(
            post_id=f"{thread.checkpoint_id}/{UNREADABLE}",
            thread_id=thread.thread_id,
            text=say("error.unreadable"),
            created_ms=self.clock(),
        )
        try:
            with suppress(RecordFormatError):  # posted before, and unreadable, too
                await self.outbox.say(thread, post)
        except DeliveryError as failure:
            return await self._retry(thread, failure)
        logger.error(
            "quarantined an unreadable thread: %s; run `countersign doctor` for details",
            error,
            extra={"action": "thread_set_aside", "thread_id": thread.thread_id},
        )
        await self.storage.threads.set_aside(thread.thread_id, fence=thread.fence, why=str(error))
        return None

    async def _advance_under_lease(self, work: ThreadPass) -> int | None:
        """Advance while the lease is renewed; return when to retry, or None if nothing is left."""
        thread = work.thread

        async def extend(until_ms: int) -> bool:
            threads, fence = self.storage.threads, thread.fence
            is_kept = await threads.extend(thread.thread_id, fence=fence, until_ms=until_ms)
            self.turns.presence.refresh(thread.thread_id)
            await self._heed_stop(thread.thread_id)
            await self._heed_halt(thread)
            return is_kept

        def lost() -> None:
            self._leave(thread.thread_id)

        async with self._claimed.kept(thread, extend, lost=lost), self._counted(thread):
            try:
                await self._check_crashes(thread)
                await self._advance(work)
                self._left[thread.thread_id] = LeftOver(
                    fence=thread.fence, made_ms=thread.created_ms, running=work.running
                )
            except ModelRefusedError as error:
                await self._give_up(thread, error)  # another attempt would not help
            except (DeliveryError, DirectoryError, ModelError, *_OVERTAKEN) as error:
                return await self._retry(thread, error)
            except (StoreUnavailableError, RecordFormatError, CheckpointVersionError):
                raise  # due again when the lease expires, or when a release can read it
            except (AgentError, RecordRefusedError, RunEndedError, TurnCrashedError) as error:
                await self._give_up(thread, error)
            except Exception as error:  # noqa: BLE001 (a fault of ours must not stop it for ever)
                return await self._retry(thread, error)
        return None

    @asynccontextmanager
    async def _counted(self, thread: Thread) -> AsyncIterator[None]:
        """Count an attempt at crashed work, one thread at a time in this process.

        A crash interrupts all threads of a process, and one of them may be the cause. They are
        tried one after the other, and only the tried one's count rises. A pause before the last
        attempt lets unrelated causes pass.
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

    async def _check_crashes(self, thread: Thread) -> None:
        """Stop a turn during which the process died too often.

        Raises:
            TurnCrashedError: It did.
        """
        crashes = thread.crashes + thread.was_cut_off
        if crashes < MAX_CRASHES:
            return
        most = MAX_CRASHES_AFTER_ANSWER if await self.turns.has_answered(thread) else MAX_CRASHES
        if crashes >= most:
            raise TurnCrashedError(most)

    async def _advance(self, work: ThreadPass) -> None:
        """Route messages and step the turn, until people must act or nothing is left."""
        if work.thread.restored.epoch:
            work.thread = await self._comeback.settle(work.thread)
        if work.left is None:  # after an orderly release there are no partial texts or turns
            await self.turns.open_left(work)
            work.thread = await self._finish_posts(work.thread)
        while True:
            admitted = await self._sorted(work)
            work.thread = await self._tell_end(work.thread)
            was_open = work.thread.turn_open
            if not await self._may_go_on(work, admitted):
                return
            progress = await self.turns.step(work, admitted)
            if progress is Progress.WAITING:
                await self.inbox.deletions.catch_up(work.thread)
                return
            if progress is Progress.ENDED:
                await self._sum_up(work)
                # Later messages woke the thread: the release of the lease detects that.
                is_last = not (was_open and admitted) and not work.has_more
                if is_last and not work.thread.origin.key:
                    work.has_ended_turn, work.running = True, ()
                    return
                await self.turns.end(work)

    async def _tell_end(self, thread: Thread) -> Thread:
        """Tell the program that started the thread of a turn that has ended."""
        if self.programs is None or not thread.has_untold_end:
            return thread
        await self.programs.thread_ended(thread)
        await self.storage.threads.set_told(thread.thread_id, fence=thread.fence, turn=thread.turn)
        return thread.changed(told_turn=thread.turn)

    async def _may_go_on(self, work: ThreadPass, admitted: Sequence[str]) -> bool:
        """Whether a turn is open that no freeze holds; begins one if there are messages."""
        if not work.thread.turn_open:
            await self.turns.close_answered(work.thread)
            if admitted:
                self.turns.begin(work)
            elif not await self.turns.open_left(work):
                return False  # nor has a suspended process taken messages for a turn
        return not await self.turns.halts.hold(work)

    async def _sum_up(self, work: ThreadPass) -> None:
        """Post the summary, before the end of the turn is stored."""
        if self.summaries is not None:
            await self.summaries.show(work.thread, decided=work.decided)

    async def _sorted(self, work: ThreadPass) -> list[str]:
        """Route new messages; a stop message ends the open turn first."""
        admitted = await self.inbox.sort(work)
        if work.stop is not None:
            await self._stop(work, work.stop)
        return admitted

    async def _stop(self, work: ThreadPass, message: Message) -> None:
        """End the open turn because of a stop message.

        The message stays unprocessed until then, so a crash changes nothing.
        """
        thread = work.thread
        await note(
            self.storage.audit,
            Act.STOPPED,
            key=message.message_id,
            at_ms=self.clock(),
            about=thread.thread_id,
            by="" if message.sender else message.user_id,
            sender=message.sender,
            checkpoint=thread.checkpoint_id,
        )
        await self.turns.ending.stop(work, await self.inbox.stops.describe(thread, message))
        await self.inbox.done_with(message)
        work.stop = None
        await self.outbox.finish(work.thread, await self.storage.posts.unfinished(thread.thread_id))

    async def _heed_stop(self, thread_id: str) -> None:
        """Stop the run in this process if another process stored a stop message."""
        stopping = self.turns.stopping
        if stopping.is_running(thread_id) and await self.inbox.has_stop(thread_id):
            stopping.stop(thread_id)

    async def _heed_halt(self, thread: Thread) -> None:
        """Halt the run in this process if people have frozen turns."""
        stopping = self.turns.stopping
        if stopping.is_running(thread.thread_id) and await self.turns.halts.covers(thread):
            stopping.halt(thread.thread_id)

    async def _finish_posts(self, thread: Thread) -> Thread:
        """Finish after a crash: end a failed turn, post delayed texts."""
        if thread.turn_open:
            await self.turns.clear_status(thread)
        posts = await self.storage.posts.unfinished(thread.thread_id)
        for post in posts:
            await end_tasks(self.storage.posts, self.turns.board, thread, post)
            if is_given_up(thread, post):
                is_stopped = post.post_id == post_id(thread, STOPPED)
                await self.turns.ending.abandon(thread, post.text, is_stopped=is_stopped)
                thread = thread.changed(turn_open=False)
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
        wait_ms = THREAD_RETRY.wait_ms(thread.attempts, thread.thread_id, wish)
        if isinstance(error, ModelError):
            wait_ms = max(wait_ms, round(error.retry_after * 1_000))
            if wait_ms > milliseconds(LONGEST_WAIT):
                await self._give_up(thread, error)
                return None
            until_ms = self.clock() + wait_ms + _later_waits_ms(thread, error, most)
            newest = await self.storage.threads.get(thread.thread_id)  # its turn may be new
            await self.turns.ending.away.tell(newest, error, until_ms=until_ms)
        return self.clock() + wait_ms

    async def _give_up(self, thread: Thread, error: Exception) -> None:
        """End the turn with the error, and post the error."""
        newest = await self.storage.threads.get(thread.thread_id)
        current = newest.changed(fence=thread.fence)  # ours, not that of another owner
        try:
            await set_turn(  # do we still own the lease?
                self.storage.threads, current, turn=current.turn, turn_open=current.turn_open
            )
        except CheckpointConflictError:
            return
        logger.error(
            "turn failed: %s",
            error,
            extra={"action": "turn_failed", "thread_id": thread.thread_id},
        )
        if isinstance(error, TurnCrashedError):
            await self.turns.ending.drop_deadly(current)
        if current.turn_open or await self._has_new(thread) or await self._has_left(current):
            await note(
                self.storage.audit,
                Act.TURN_FAILED,
                key=current.checkpoint_id,  # once, whichever process ends the turn
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
        newest = await self.storage.threads.get(thread.thread_id)
        await self._tell_end(newest.changed(fence=thread.fence))
        # A process may have given the turn up, and died before it posted this.
        if await self._has_last_word(thread) or await self._has_new(thread):
            await self.storage.threads.wake(thread.thread_id, now_ms=self.clock())

    async def _has_new(self, thread: Thread) -> bool:
        """Whether there are unread messages."""
        return bool(await self.storage.inbox.new(thread.thread_id, limit=1))

    async def _has_left(self, thread: Thread) -> bool:
        """Whether messages were taken for a turn that was not opened."""
        return bool(await self.storage.inbox.of_turn(thread.thread_id, thread.turn + 1))

    async def _has_last_word(self, thread: Thread) -> bool:
        """Post what is left; return whether something must be posted later."""
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


def _later_waits_ms(thread: Thread, error: ModelError, most: int) -> int:
    """Return the time from the next attempt to the last one, or to the end of its silence."""
    later = range(thread.attempts + 1, most - 1)
    waits = sum(THREAD_RETRY.wait_ms(attempt, thread.thread_id) for attempt in later)
    return waits + round(getattr(error, "seconds", 0) * 1_000)


def explain(error: Exception) -> str:
    """Return an error's text for the thread: what happened, and what to do."""
    match error:
        case ModelError():
            text = _of_model(error)
        case RecordRefusedError():
            text = say("error.turn_too_large")
        case RunEndedError() | TurnCrashedError():
            text = str(error)
        case NotAnsweredError(outcome=outcome):
            text = say("error.not_answered", why=outcome)
        case LimitReachedError(used=used):
            text = say("error.limit", used=used)
        case AgentError():
            text = say("error.what", why=error)
        case _:
            text = say("error.turn_ours")
    return text


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
        case ModelError(retry_after=wait) if wait > LONGEST_WAIT.total_seconds():
            return say("error.model_busy", time=format_duration(timedelta(seconds=round(wait))))
        case _:
            return say("error.model_silent")
