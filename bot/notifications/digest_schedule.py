"""Schedule of digests, which reminders a digest replaces, and whether to notify a person now.

A digest is due at the start of a person's day, or when five approvals wait for them by name: once a
day, and never within an hour of a reminder that mentions them. If the reminder came first, the
digest is delayed; if the digest came first, the reminder leaves the person out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from bot.clock import milliseconds
from bot.errors import DirectoryError
from bot.notifications.preferences import NotificationPreferences, is_loud, new_person
from bot.notifications.working_hours import WorkingDay, own_hours
from bot.people.lookup import absent_of, delegations_of
from bot.people.recipient_ids import asked_groups, audience_of, is_person, is_usergroup
from bot.people.terms_of import progress_of, requesters_of
from bot.people.waiting import Waits
from bot.policy.eligibility import REQUESTERS
from bot.policy.escalation import Due, Notice
from bot.policy.hours import quiet_end
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.records.approval import Approval, Kind
from bot.records.approval_queries import START, waiting
from bot.records.people import PersonRecord
from bot.records.terms import QuietHours, Terms, TermsError
from bot.stores import Stores
from storage.documents import Place
from storage.errors import StorageError

logger = logging.getLogger(__name__)

APART = timedelta(hours=1)
"""Minimum time between a digest and a reminder of the same person."""
MANY = 5
"""Number of approvals waiting by name that makes a digest due at once."""
LATE = timedelta(minutes=5)
"""Age of a request from which its first mention can be left to a digest."""
_SPARE = timedelta(minutes=5)
"""Minimum time between a digest and an expiry, to replace a reminder."""
_PAGE = 100
_MOST = 100
"""Limit of approvals to check per person, the earliest expiry first."""
_MOST_MARKED = 100


@dataclass(slots=True, kw_only=True)
class DigestSchedule:
    """Schedules the digests of a workspace."""

    storage: Stores
    wishes: NotificationPreferences
    team_id: str
    clock: Clock
    _few: dict[str, frozenset[str]] = field(default_factory=dict)

    async def plan(self) -> None:
        """Store when the next digest is due, for each person named by a pending approval."""
        named = await self._named()
        known = await self.storage.people.of(self.team_id, named.keys())
        for user_id, approvals in named.items():
            person = known.get(user_id) or new_person(self.team_id, user_id)
            try:
                await self._plan(person, approvals)
            except (DirectoryError, TermsError) as error:
                logger.info("daily list not planned: %s", error, extra={"action": "digest_failed"})
        self._few = {name: ids for name, ids in self._few.items() if name in named}

    async def day(self, person: PersonRecord, approvals: Iterable[Approval]) -> WorkingDay:
        """Return the working day of a person, given the approvals to notify about.

        Raises:
            TermsError: A time zone of the policy is unknown here.
        """
        zone = await self.wishes.zone(person)
        return WorkingDay(zone=zone, own=own_hours(person, zone), house=_house(approvals))

    async def covered(
        self, approval: Approval, people: Collection[str], *, is_first: bool = False
    ) -> Mapping[str, int]:
        """Find people whose reminder a digest replaces; mark the others as reminded.

        Urgent and high-risk approvals are never left to a digest.

        Args:
            approval: The subject of the reminder.
            people: Slack user ids.
            is_first: Whether this would be the first message about the approval.

        Returns:
            By user id, when to remind instead; 0 if the digest has the approval.
        """
        now, found = self.clock(), dict[str, int]()
        if is_first and now - approval.schedule_ms < milliseconds(LATE):
            return found
        try:
            loud = is_loud(approval.terms)
            for user_id in sorted(people)[:_MOST_MARKED]:
                later = await self._reminded(approval, user_id, now, loud=loud)
                if later is not None:
                    found[user_id] = later
        except (StorageError, TermsError) as error:
            logger.warning(
                "could not read notification preferences, reminding everyone: %s",
                error,
                extra={"action": "digest_failed"},
            )
        return found

    async def reminded_later(self, approval: Approval, user_id: str) -> int:
        """Return when to send a reminder that no digest replaces; 0 for now.

        With 0, the person is marked as reminded.
        """
        now, later = self.clock(), 0

        def change(before: PersonRecord) -> PersonRecord | None:
            nonlocal later
            end = before.digest_ms + milliseconds(APART)
            later = end if before.digest_ms and now < end < approval.expires_ms else 0
            return None if later else before.changed(reminded_ms=now)

        try:
            await self.storage.people.change(self.team_id, user_id, change)
        except StorageError as error:
            logger.warning("reminded all the same: %s", error, extra={"action": "digest_failed"})
        return later

    async def _reminded(
        self, approval: Approval, user_id: str, now: int, *, loud: bool
    ) -> int | None:
        """Mark a person as reminded and return None, or return when to remind instead."""
        later: int | None = None

        def change(before: PersonRecord) -> PersonRecord | None:
            nonlocal later
            later = None if loud else left_to_list(before, approval, now)
            return before.changed(reminded_ms=now) if later is None else None

        await self.storage.people.change(self.team_id, user_id, change)
        return later

    async def _plan(self, person: PersonRecord, approvals: Sequence[Approval]) -> None:
        now, next_ms = self.clock(), person.next_ms
        ids = frozenset(one.approval_id for one in approvals)
        is_news = len(approvals) >= MANY and self._few.get(person.user_id) != ids
        is_planned = next_ms is not None and (next_ms <= now or not is_news)
        if not person.has_digest or is_planned:
            return
        day, soon = await self.day(person, approvals), None
        if is_news and day.of(now).isoformat() > person.digest_day:
            self._few[person.user_id] = ids
            if await self._are_many(person.user_id, approvals):
                soon = _soon(day, person, now)
        at_ms = soon or day.next_ms(now, after=person.digest_day)
        if at_ms is None or (next_ms is not None and at_ms >= next_ms):
            return

        def change(before: PersonRecord) -> PersonRecord | None:
            if not before.has_digest or before.next_ms != next_ms:
                return None
            due_ms = at_ms if before.due_ms is None else min(before.due_ms, at_ms)
            return before.changed(next_ms=at_ms, due_ms=due_ms, timezone=day.zone)

        await self.storage.people.change(self.team_id, person.user_id, change)

    async def _are_many(self, user_id: str, approvals: Sequence[Approval]) -> bool:
        """Whether many approvals wait for a person, judged as their votes would be."""
        directory, policy = self.wishes.access.directory, self.wishes.policy
        waits = Waits(directory, policy, self.clock, self.storage.delegations)
        look = await waits.look(Actor(user_id=user_id, team_id=""), self.team_id)
        return len(await look.among(approvals)) >= MANY

    async def _named(self) -> dict[str, list[Approval]]:
        """Return the people named by pending approvals, each with their approvals."""
        now, found = self.clock(), dict[str, list[Approval]]()
        records = await self.storage.delegations.current(self.team_id, now_ms=now)
        handed, away = delegations_of(records), absent_of(records)
        groups: dict[str, frozenset[str]] = {}
        async for approval in self._pending(now):
            terms = approval.terms
            try:
                people = await self._people(approval, terms, groups)
            except TermsError:
                continue
            lending = [one for one in handed if one.is_for(approval.approval_id)]
            lent = {one.delegate for one in lending if terms.delegation and one.owner in people}
            for user_id in sorted((people | lent) - away.keys()):
                if len(of_person := found.setdefault(user_id, [])) < _MOST:
                    of_person.append(approval)
        return found

    async def _pending(self, now: int) -> AsyncIterator[Approval]:
        """Yield all pending approvals, the earliest expiry first."""
        after: Place | None = START
        while after:
            page, after = await waiting(
                self.storage.approvals, now_ms=now, limit=_PAGE, after=after
            )
            for approval in page:
                if approval.kind is not Kind.QUESTION and approval.team_id == self.team_id:
                    yield approval
            await asyncio.sleep(0)  # let other tasks run

    async def _people(
        self, approval: Approval, terms: Terms, known: dict[str, frozenset[str]]
    ) -> set[str]:
        """Return the named people and user group members who have not voted yet."""
        groups = asked_groups(terms, approval.stage, approval.escalation.steps)
        found: set[str] = set()
        for name in audience_of(terms, groups, self.clock()):
            if is_person(name):
                found.add(name)
            elif is_usergroup(name):
                if name not in known:
                    known[name] = await self._members(name)
                found |= known[name]
        found -= {one.by for one in progress_of(approval).votes}
        return found - {*requesters_of(approval)} if REQUESTERS in terms.exclude else found

    async def _members(self, name: str) -> frozenset[str]:
        try:
            return await self.wishes.access.directory.group_members(name)
        except DirectoryError as error:
            logger.info(
                "could not look up a group, its members get no daily list now: %s",
                error,
                extra={"action": "digest_failed"},
            )
            return frozenset()


def left_to_list(person: PersonRecord, approval: Approval, now: int) -> int | None:
    """Return whether a digest replaces a reminder that is due now.

    Returns:
        None if the person is reminded; 0 if the digest has the approval; else when to remind.
    """
    apart = milliseconds(APART)
    if person.digest_ms and now - person.digest_ms < apart:
        posted = person.posted
        ids = posted.ids if posted is not None else ()
        if approval.approval_id in ids or approval.schedule_ms <= person.digest_ms:
            return 0
        later = person.digest_ms + apart
        return later if later < approval.expires_ms else None
    if not person.has_digest or person.next_ms is None or person.attempts:
        return None
    comes_ms = max(person.next_ms, now)
    is_in_time = comes_ms + milliseconds(_SPARE) < approval.expires_ms
    return 0 if comes_ms - now < apart and is_in_time else None


def _soon(day: WorkingDay, person: PersonRecord, now: int) -> int | None:
    """Return the first moment of this day at which a digest may be sent, or None."""
    soon = day.free_ms(max(now, person.reminded_ms + milliseconds(APART)))
    return soon if soon is not None and day.of(soon) == day.of(now) else None


def _house(approvals: Iterable[Approval]) -> QuietHours | None:
    """Return the policy's quiet hours from the approvals' terms."""
    for approval in approvals:
        terms = approval.terms
        if terms.quiet is not None and not terms.urgent:
            return terms.quiet
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalDoNotDisturb:
    """Applies quiet hours, digests and preferences to notifications.

    Attributes:
        wishes: Notification preferences.
        plans: The digest schedule; None if digests are off.
    """

    wishes: NotificationPreferences
    plans: DigestSchedule | None = None

    async def quiet(self, approval: Approval, people: Collection[str]) -> Mapping[str, int]:
        """Return the people who are in quiet hours now, and until when."""
        return await self.wishes.quiet(approval, people)

    async def direct(self, approval: Approval, people: Collection[str]) -> frozenset[str]:
        """Return the people who want cards by direct message."""
        return await self.wishes.direct(approval, people)

    async def left_out(
        self, approval: Approval, found: Due, people: Collection[str]
    ) -> Mapping[str, int]:
        """Return the people whose message a digest replaces; see `DigestSchedule.covered`.

        A digest replaces reminders, first mentions that quiet hours delayed, and messages that a
        person's own quiet hours delayed. It never replaces escalation steps or messages that the
        person asked for.
        """
        if self.plans is None:
            return {}
        match found.notice:
            case Notice.REMINDER:
                return await self.plans.covered(approval, people)
            case Notice.MENTION:
                return await self.plans.covered(approval, people, is_first=True)
            case Notice.SNOOZE_OVER:
                slept = [one for one in people if await self._has_slept(approval, one)]
                return await self.plans.covered(approval, slept)
            case _:
                return {}

    async def later(self, approval: Approval, user_id: str) -> int:
        """Return when to remind a person of their own question; digests do not list it.

        Returns:
            The end of their quiet hours, or one hour after their digest; 0 for now, which
            counts as a reminder.
        """
        held = (await self.quiet(approval, [user_id])).get(user_id, 0)
        if held or self.plans is None:
            return held
        return await self.plans.reminded_later(approval, user_id)

    async def _has_slept(self, approval: Approval, user_id: str) -> bool:
        """Whether a person's own quiet hours, not a snooze, delayed the message."""
        until_ms = approval.snoozes.get(user_id)
        person = await self.wishes.of(user_id, team_id=approval.team_id)
        hours = await self.wishes.hours(person)
        if until_ms is None or hours is None:
            return False
        return quiet_end(hours, until_ms - 1) == until_ms
