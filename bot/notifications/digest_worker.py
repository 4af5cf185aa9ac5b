"""Send each person one digest a day, and keep it up to date.

Due times are stored, and the day is stored before the digest is sent. Of two processes one sends
it, and after a crash the message is searched for before it is sent again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from bot.approvals.overview import HomeDataReader
from bot.clock import milliseconds
from bot.errors import DeliveryError, DirectoryError, NotApproverError
from bot.leases import ATTENDANCE, LEASE, Retry
from bot.notifications.digest import Digest, DigestBoard, ListItem
from bot.notifications.digest_schedule import APART, MANY, DigestSchedule
from bot.notifications.working_hours import WorkingDay
from bot.people.waiting import Waits
from bot.ports.people import Actor, Person
from bot.ports.process import Clock
from bot.records.approval import Approval, Status
from bot.records.people import PersonRecord, PostedDigest
from bot.records.terms import TermsError
from bot.stores import Stores
from storage.errors import RecordFormatError, RecordNotFoundError, StorageError

logger = logging.getLogger(__name__)

MOST_LINES = 10
"""Maximum number of entries of a digest. It gives the number of the others."""
BETWEEN_PLANS = timedelta(minutes=1)
LOOK_AGAIN = timedelta(minutes=1)
"""Interval between updates of a sent digest with pending entries."""
RETRY = Retry(timedelta(seconds=15), timedelta(minutes=15))
MOST_TRIES = 30
"""Maximum number of attempts to send a digest; the next is due the day after."""
_AT_ONCE = 50


@dataclass(slots=True, kw_only=True)
class DigestWorker:
    """Sends and updates the digests of a workspace."""

    storage: Stores
    overviews: HomeDataReader
    plans: DigestSchedule
    board: DigestBoard
    team_id: str
    clock: Clock
    _planned_ms: int | None = field(default=None)
    _is_busy: bool = False

    async def step(self) -> None:
        """Send and update due digests; periodically, schedule new ones."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            await self._plan()
            for person in await self.storage.people.due(now_ms=self.clock(), limit=_AT_ONCE):
                await self.attend(person)
        except StorageError as error:
            logger.warning("daily lists not sent: %s", error, extra={"action": "digest_failed"})
        finally:
            self._is_busy = False

    async def attend(self, person: PersonRecord) -> None:
        """Process one person if they are due and no other process does."""
        now = self.clock()
        if person.team_id != self.team_id:
            return
        held = await self.storage.people.take(person, until_ms=now + milliseconds(LEASE))
        if held is None:
            return
        person = held
        try:
            async with asyncio.timeout(ATTENDANCE.total_seconds()):  # shorter than the lease
                person = await self._correct(person)
                is_due = person.next_ms is not None and person.next_ms <= now
                done = await self._send(person) if is_due else person
        except TimeoutError:
            await self._fail(person, DeliveryError("chat.postMessage", "no answer in time"))
        except (DeliveryError, DirectoryError, TermsError) as error:
            await self._fail(person, error)
        else:
            if done is not None:
                await self._release(done)

    async def _plan(self) -> None:
        now, last = self.clock(), self._planned_ms
        if last is None or not 0 <= now - last < milliseconds(BETWEEN_PLANS):
            await self.plans.plan()
            self._planned_ms = now

    async def _send(self, person: PersonRecord) -> PersonRecord | None:
        """Send the due digest, unless it is delayed; return the person's record.

        None means that our lease expired and another process sends it.

        Raises:
            DeliveryError: Slack refused the digest.
            DirectoryError: The person could not be looked up.
        """
        now, actor = self.clock(), Actor(user_id=person.user_id, team_id="")
        try:
            overview = await self.overviews.of(actor, team_id=self.team_id)
        except NotApproverError as error:
            logger.info("daily list not sent: %s", error, extra={"action": "digest_failed"})
            return await self._keep(person, next_ms=None)
        waiting = overview.waiting
        day = await self.plans.day(person, waiting)
        today = day.of(now).isoformat()
        later = later_of(person, day, waiting, now)
        if later is None and is_begun(person, person.digest_day):
            person = await self._keep(person, posted=None)
        if later != now:
            return await self._keep(person, next_ms=later, timezone=day.zone)
        if not is_begun(person, today):
            await self._retire(person, overview.person)
            claimed = await self._claim(person, today, now)
            if claimed is None:
                return await self._unclaimed(person, today, now)
            person = claimed
        lines = waiting[:MOST_LINES]
        shown = Digest(
            key=f"{person.person_id}:{today}",
            person=overview.person,
            now_ms=now,
            items=[ListItem(approval=one) for one in lines],
            total=len(waiting),
            last_ms=waiting[-1].expires_ms if len(waiting) > len(lines) else 0,
        )
        posted = await self.board.show(shown, where=PostedDigest())
        return await self._keep(person, posted=posted, digest_ms=now, next_ms=None, attempts=0)

    async def _claim(self, person: PersonRecord, today: str, now: int) -> PersonRecord | None:
        """Store that a digest is sent on this day; None if it is not to be sent."""

        def change(before: PersonRecord) -> PersonRecord | None:
            is_near = now - before.reminded_ms < milliseconds(APART)
            if is_near or before.digest_day >= today or not before.has_digest:
                return None
            return before.changed(
                digest_day=today, digest_ms=now, posted=PostedDigest(), attempts=0
            )

        return await self.storage.people.change(self.team_id, person.user_id, change)

    async def _unclaimed(self, person: PersonRecord, today: str, now: int) -> PersonRecord | None:
        """Return the record of a digest that could not be claimed; see `_send`."""
        newest = (await self.storage.people.of(self.team_id, [person.user_id])).get(person.user_id)
        if newest is None or newest.digest_day >= today:
            return None
        # A reminder came first, or the digest was switched off: check again at once.
        return await self._keep(newest, next_ms=now if newest.has_digest else None)

    async def _correct(self, person: PersonRecord) -> PersonRecord:
        """Update the entries of the last digest.

        Raises:
            DirectoryError: The person could not be looked up.
        """
        posted = person.posted
        if posted is None or not posted.is_posted:
            return person
        reader = await self.overviews.directory.person(person.user_id)
        shown = await self._list(person, posted, reader)
        is_gone = False
        if shown.mark != posted.mark:
            posted, is_gone = await self._redraw(shown, posted)
        is_done = is_gone or (shown.is_over and shown.mark == posted.mark)
        left = None if is_done else posted
        return person if left == person.posted else await self._keep(person, posted=left)

    async def _retire(self, person: PersonRecord, reader: Person) -> None:
        """Mark the last digest as replaced by a newer one."""
        posted = person.posted
        if posted is None or not posted.is_posted:
            return
        shown = replace(await self._list(person, posted, reader), is_replaced=True)
        await self._redraw(shown, posted)

    async def _redraw(self, shown: Digest, posted: PostedDigest) -> tuple[PostedDigest, bool]:
        """Update a digest; return its location, and whether the message is gone for good."""
        try:
            return await self.board.show(shown, where=posted), False
        except DeliveryError as error:
            logger.warning("a list is not corrected: %s", error, extra={"action": "digest_failed"})
            return posted, error.is_permanent

    async def _list(self, person: PersonRecord, posted: PostedDigest, reader: Person) -> Digest:
        """Return the last digest with its current content."""
        approvals = [one for name in posted.ids if (one := await self._approval(name))]
        overviews = self.overviews
        delegations = self.storage.delegations
        waits = Waits(overviews.directory, overviews.policy, self.clock, delegations)
        look = await waits.look(Actor(user_id=person.user_id, team_id=""), self.team_id)
        approvals = [one for one in approvals if await look.may_see(one)]
        pending = [one for one in approvals if one.status is Status.PENDING]
        waiting = {one.approval_id for one in await look.among(pending)}
        return Digest(
            key=f"{person.person_id}:{person.digest_day}",
            person=reader,
            now_ms=self.clock(),
            items=[ListItem(approval=one, waits=one.approval_id in waiting) for one in approvals],
            total=posted.total,
        )

    async def _approval(self, approval_id: str) -> Approval | None:
        """Read an approval; None if it was deleted or cannot be read."""
        with suppress(RecordNotFoundError, RecordFormatError):
            return await self.storage.approvals.get(approval_id)
        return None

    async def _fail(self, person: PersonRecord, error: Exception) -> None:
        """Schedule a retry. A digest that Slack refuses for good is not retried."""
        logger.warning("a list has to wait: %s", error, extra={"action": "digest_failed"})
        tries = person.attempts + 1
        is_hopeless = isinstance(error, DeliveryError) and error.is_permanent
        if is_hopeless or tries > MOST_TRIES:
            # Reminders must not rely on this digest.
            done = await self._keep(person, next_ms=None, posted=None, digest_ms=0, attempts=0)
            await self._release(done)
            return
        wish = error.retry_after if isinstance(error, DeliveryError) else None
        wait_ms = RETRY.wait_ms(person.attempts, person.person_id, wish)
        await self._keep(person, attempts=tries, due_ms=self.clock() + wait_ms)

    async def _release(self, person: PersonRecord) -> None:
        """Release the person's lease; due for the next digest or the next update."""
        again = self.clock() + milliseconds(LOOK_AGAIN)

        def change(before: PersonRecord) -> PersonRecord:
            posted = before.posted
            times = [before.next_ms, again if posted is not None and posted.is_posted else None]
            due_ms = min((one for one in times if one is not None), default=None)
            return before.changed(due_ms=due_ms)

        await self.storage.people.change(self.team_id, person.user_id, change)

    async def _keep(self, person: PersonRecord, **changes: Any) -> PersonRecord:
        """Update fields, retrying on conflicts."""
        kept = await self.storage.people.change(
            self.team_id, person.user_id, lambda before: before.changed(**changes)
        )
        return kept or person


def is_begun(person: PersonRecord, today: str) -> bool:
    """Whether a day's digest is stored, but not known to be posted."""
    posted = person.posted
    return person.digest_day == today and posted is not None and not posted.is_posted


def later_of(
    person: PersonRecord, day: WorkingDay, waiting: Sequence[Approval], now: int
) -> int | None:
    """Return when to send a due digest: now or later; None if there are no entries.

    Raises:
        TermsError: A time zone is unknown here.
    """
    if not waiting or not person.has_digest:
        return None
    today = day.of(now)
    if person.digest_day >= today.isoformat() and not is_begun(person, today.isoformat()):
        return day.next_ms(now, after=person.digest_day)
    begin = day.begins_ms(today)
    if len(waiting) < MANY and (
        begin is None or now < begin
    ):  # the person moved to another time zone
        return day.next_ms(now, after=person.digest_day)
    return day.free_ms(max(now, person.reminded_ms + milliseconds(APART)))
