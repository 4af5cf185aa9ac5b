"""The scheduler: find due work and start it.

APScheduler runs one job; the due times are in the records. Records are claimed by conditional
writes, so any number of processes may run it at once.

APScheduler waits by the wall clock. If that clock is put back by an hour, it starts no job for an
hour. A guard measures the time since the last tick by a clock that nobody sets, and starts the
jobs again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bot.approvals.due.frozen_cards import FrozenCards
from bot.approvals.due.worker import ApprovalWorker
from bot.approvals.grants import Grants
from bot.clock import steady_clock
from bot.freezes.alerts import FreezeAlerts
from bot.leases import ThreadWorker
from bot.maintenance.audit_sealer import Sealer
from bot.maintenance.clocks import ClockWatch
from bot.maintenance.retention import Retention
from bot.ports.process import Clock, Spawn
from bot.ports.programs import ProgramCalls
from bot.stores import Stores
from bot.tasks import Tasks
from bot.threads.outbox import Outbox
from bot.threads.parked import ParkedThreads
from bot.triggers.schedules import Schedules
from bot.triggers.starting import ThreadStarts
from storage.errors import StorageError

logger = logging.getLogger(__name__)

BETWEEN_TICKS = timedelta(seconds=5)
BETWEEN_SEALS = timedelta(seconds=4)
"""Interval between seals: an audit entry is sealed within five seconds."""
BETWEEN_LOOKS = timedelta(seconds=10)
Watch = Callable[[], Awaitable[object]]
"""Checks whether something outside the database has changed."""
STILL = 2
"""Number of intervals without a tick after which the guard starts the jobs again."""
LATE = 3
"""Number of intervals without a tick after which the process is not ready."""
BATCH = 100
"""Maximum number of due records of a kind that one search starts."""
REST_PATIENCE = timedelta(seconds=5)
"""Longest time to wait for running work to end."""
_FAR_MS = 1 << 52


@dataclass(frozen=True, slots=True)
class DueWork:
    """Finds due work and starts it.

    Args:
        storage: The database.
        attendance: Processes approvals: reminders, expiries, cards.
        threads: Processes threads.
        outbox: Sends ephemeral messages.
        clock: The time now.
        spawn: Starts a task.
        retention: Deletes old threads; None to keep all.
        sealer: Seals the audit; None if the database does.
        grants: Updates the messages of standing grants, if any.
        lists: Updates displayed lists, if any.
        parked: Finds threads whose calls waited for the end of a freeze, if any.
        frozen: Shows freezes on pending cards, if any.
        alerts: Tells people about freezes, if any.
        starts: Begins threads that no person starts, if any.
        schedules: Starts agents at due times, if any.
        clocks: Compares clocks with the database server, if necessary.
        programs: Delivers events to programs, if any.
    """

    storage: Stores
    attendance: ApprovalWorker
    threads: ThreadWorker
    outbox: Outbox
    clock: Clock
    spawn: Spawn
    retention: Retention | None = None
    sealer: Sealer | None = None
    grants: Grants | None = None
    lists: Callable[[], Coroutine[Any, Any, None]] | None = None
    parked: ParkedThreads | None = None
    frozen: FrozenCards | None = None
    alerts: FreezeAlerts | None = None
    starts: ThreadStarts | None = None
    schedules: Schedules | None = None
    clocks: ClockWatch | None = None
    programs: ProgramCalls | None = None
    failing: dict[str, Exception] = field(default_factory=dict, init=False)

    async def seal(self) -> None:
        """Seal new audit entries."""
        if self.sealer is not None and self.storage.may_claim:
            await self.sealer.step()

    async def tick(self) -> int:
        """Start all due work; return the number of records.

        Each kind is searched separately, so an error in one kind does not block the others.

        Raises:
            StorageError: A kind could not be read; the next tick retries.
        """
        now = self.clock()
        looks: dict[str, Callable[[int], Awaitable[int]]] = {
            "requests": self._attend,
            "threads": self._work,
            "starts": self._start,
            "schedules": self._start_on_time,
            "private answers": self._tell,
            "standing grants": self._attend_grants,
            "parked": self._go_on,
            "frozen": self._show_freezes,
            "alerts": self._tell_of_freezes,
            "webhooks": self._deliver,
        }
        count, faults = 0, {}
        for kind, look in looks.items():
            try:
                count += await look(now)
            except Exception as error:  # noqa: BLE001 - raised below, when all were looked at
                faults[kind] = error
                logger.warning(
                    "due %s cannot be read: %s", kind, error, extra={"action": "tick_failed"}
                )
        self.failing.clear()
        self.failing.update(faults)
        self._tend()
        for fault in faults.values():
            raise fault
        return count

    async def _attend(self, now: int) -> int:
        approvals = await self.storage.approvals.due(now_ms=now, limit=BATCH)
        for approval in approvals:
            self.spawn(self.attendance.attend(approval.approval_id))
        return len(approvals)

    async def _work(self, now: int) -> int:
        threads = await self.storage.threads.due(now_ms=now, limit=BATCH)
        for thread in threads:
            self.spawn(self.threads.work(thread.thread_id))
        return len(threads)

    async def _start(self, now: int) -> int:
        if self.starts is None:
            return 0
        starts = await self.storage.starts.due(now_ms=now, limit=BATCH)
        for start in starts:
            self.spawn(self.starts.work(start.id))
        return len(starts)

    async def _start_on_time(self, _: int) -> int:
        return 0 if self.schedules is None else await self.schedules.start_due()

    async def _tell(self, now: int) -> int:
        whispers = await self.storage.ephemeral_messages.due(now_ms=now, limit=BATCH)
        for ephemeral in whispers:
            self.spawn(self.outbox.tell(ephemeral.message_id))
        return len(whispers)

    async def _attend_grants(self, now: int) -> int:
        """Start updates of grant messages; they are not counted as due work."""
        if self.grants is not None:
            for grant in await self.storage.grants.due(now_ms=now, limit=BATCH):
                self.spawn(self.grants.attend(grant))
        return 0

    async def _go_on(self, now: int) -> int:
        """Wake threads whose freeze was lifted."""
        unfrozen = await self.parked.unfrozen() if self.parked is not None else ()
        for thread_id in unfrozen:
            await self.storage.threads.wake(thread_id, now_ms=now)
            self.spawn(self.threads.work(thread_id))
        return len(unfrozen)

    async def _show_freezes(self, _: int) -> int:
        """Start updates of cards that a freeze covers, or covers no more."""
        return 0 if self.frozen is None else await self.frozen.update_cards()

    async def _tell_of_freezes(self, _: int) -> int:
        """Start messages about freezes; they are not counted as due work."""
        if self.alerts is not None:
            await self.alerts.post_due()
        return 0

    async def _deliver(self, now: int) -> int:
        """Start the delivery of events to programs."""
        return 0 if self.programs is None else await self.programs.deliver_due(now)

    def _tend(self) -> None:
        """Start periodic maintenance."""
        if self.retention is not None:
            self.spawn(self.retention.step())
        if self.lists is not None:
            self.spawn(self.lists())
        if self.clocks is not None:
            self.spawn(self.clocks.step())


class Scheduler:
    """Runs a function periodically until it is stopped.

    Args:
        sweep: Called at each tick.
        every: Interval between ticks.
        watch: Called every `BETWEEN_LOOKS` to check for a new policy; None for no check.
        steady: A clock that is never set, in milliseconds.
    """

    def __init__(
        self,
        sweep: DueWork,
        *,
        every: timedelta = BETWEEN_TICKS,
        watch: Watch | None = None,
        steady: Clock = steady_clock,
    ) -> None:
        self._sweep = sweep
        self._watch = watch
        self._every = every
        self._steady = steady
        self._ticked_ms = steady()
        self._guarding: asyncio.Task[None] | None = None
        self._scheduler = AsyncIOScheduler(timezone="UTC")
        self._plan()

    def _plan(self) -> None:
        """Add the jobs, each an interval from now; replaces them if they exist."""
        jobs = [
            (self.tick, self._every.total_seconds()),
            (self._seal, min(self._every, BETWEEN_SEALS).total_seconds()),
        ]
        if self._watch is not None:
            jobs.append((self._reload_policy, BETWEEN_LOOKS.total_seconds()))
        for work, seconds in jobs:
            self._scheduler.add_job(
                self._until_stopped,
                "interval",
                args=[work],
                seconds=seconds,
                id=work.__name__,
                name=work.__qualname__,
                replace_existing=True,
                max_instances=1,
                coalesce=True,
                misfire_grace_time=None,
            )

    async def _until_stopped(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a job. `stop` cancels it, which APScheduler would log as an error."""
        with suppress(asyncio.CancelledError):
            await work()

    def start(self) -> None:
        """Start ticking in the running event loop."""
        self._scheduler.start()
        self._guarding = asyncio.create_task(self._guard())

    def stop(self) -> None:
        """Stop ticking, also in the middle of a tick; started work continues."""
        if self._guarding is not None:
            self._guarding.cancel()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def is_late(self) -> bool:
        """Whether the last tick is older than it should ever be."""
        return self._age() > LATE * self._every

    def _age(self) -> timedelta:
        return timedelta(milliseconds=self._steady() - self._ticked_ms)

    async def _guard(self) -> None:
        """Tick, and start the jobs again, whenever they stand still."""
        while True:
            left = STILL * self._every - self._age()
            await asyncio.sleep(max(left, self._every / 10).total_seconds())
            if self._age() >= STILL * self._every:
                logger.warning(
                    "the last tick is %.0f s old: the clock was set, or the machine is busy; "
                    "ticking again",
                    self._age().total_seconds(),
                    extra={"action": "tick_failed"},
                )
                self._plan()
                await self.tick()

    async def tick(self) -> None:
        """Search for due work once; failures are logged and shown by `DueWork.failing`."""
        try:
            await self._sweep.tick()
        except StorageError as error:
            logger.warning("tick failed: %s", error, extra={"action": "tick_failed"})
        except Exception:  # an error must not stop the scheduler
            logger.exception("tick failed", extra={"action": "tick_failed"})
        finally:
            self._ticked_ms = self._steady()

    async def _seal(self) -> None:
        try:
            await self._sweep.seal()
        except Exception:
            logger.exception("the audit is not sealed", extra={"action": "seal_failed"})

    async def _reload_policy(self) -> None:
        try:
            if self._watch is not None:
                await self._watch()
        except StorageError as error:
            logger.warning("policy reload failed: %s", error, extra={"action": "tick_failed"})
        except Exception:
            logger.exception("policy reload failed", extra={"action": "tick_failed"})


@dataclass(frozen=True, slots=True)
class TimeLapse:
    """Runs the bot on a simulated clock; see `bot.clock.ClockFollower`."""

    sweep: DueWork
    tasks: Tasks
    patience: timedelta = REST_PATIENCE

    async def rest(self) -> bool:
        """Wait until running work has ended; see `ClockFollower`."""
        try:
            async with asyncio.timeout(self.patience.total_seconds()):
                await self.tasks.idle()
        except TimeoutError:
            return False
        return len(self.tasks) == 0

    async def run_due(self) -> None:
        """Do the due work and its consequences.

        Raises:
            StorageError: The database did not answer.
        """
        await self.sweep.tick()
        await self.rest()

    async def next_due_ms(self) -> int | None:
        """Return when work is due next; see `ClockFollower`.

        Raises:
            StorageError: The database did not answer.
        """
        storage = self.sweep.storage
        approvals = await storage.approvals.due(now_ms=_FAR_MS, limit=1)
        threads = await storage.threads.due(now_ms=_FAR_MS, limit=1)
        whispers = await storage.ephemeral_messages.due(now_ms=_FAR_MS, limit=1)
        starts = await storage.starts.due(now_ms=_FAR_MS, limit=1)
        times = [approval.due_ms for approval in approvals] + [thread.due_ms for thread in threads]
        times += [message.due_ms for message in whispers] + [start.due_ms for start in starts]
        return min((at_ms for at_ms in times if at_ms is not None), default=None)
