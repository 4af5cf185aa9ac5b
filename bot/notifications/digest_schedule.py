"""The plans for lists: for whom the next one is due when, and which reminders are left to it.

A list comes at the beginning of a person's day, or when five wait for them by name; once a day of
theirs, and never within an hour of a reminder that mentions them: the list waits where the reminder
was first, and the reminder leaves them out where the list is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from bot.approvals.due.escalation_state import since_of
from bot.clock import milliseconds
from bot.errors import DirectoryError
from bot.notifications.preferences import NotificationPreferences, is_loud, new_person
from bot.notifications.working_hours import WorkingDay, own_hours
from bot.people.delegated import absent_of, delegations_of
from bot.people.progress import progress_of
from bot.people.recipient_ids import asked_groups, audience_of, is_person, is_usergroup
from bot.people.requesters import all_requesters
from bot.people.terms_of import steps_of, terms_of
from bot.people.waiting import Waits
from bot.policy.eligibility import REQUESTERS
from bot.policy.terms import QuietHours, Terms, TermsError
from bot.ports.people import Actor
from bot.ports.process import Clock
from storage.base import Storage
from storage.errors import StorageError
from storage.ports.lists import START, Place
from storage.records import Approval, Kind, PersonRecord

logger = logging.getLogger(__name__)

APART = timedelta(hours=1)
"""The least time between a list and a reminder for the same person."""
MANY = 5
"""So many that wait by name make a list due at once."""
LATE = timedelta(minutes=5)
"""A first mention that comes so long after the request is one of many."""
_SPARE = timedelta(minutes=5)
"""The least time that a list must leave before a deadline, to take the place of a reminder."""
_PAGE = 100
_MOST = 100
"""Approvals that are looked at for one person, those that expire first."""
_MOST_MARKED = 100


@dataclass(slots=True, kw_only=True)
class DigestSchedule:
    """The plans of a workspace.

    Attributes:
        storage: Where records are kept.
        wishes: Who wants no list, and when; its directory may be a minute behind.
        team_id: The workspace.
        clock: The time now.
    """

    storage: Storage
    wishes: NotificationPreferences
    team_id: str
    clock: Clock
    _few: dict[str, frozenset[str]] = field(default_factory=dict)

    async def plan(self) -> None:
        """Put on record when the next list is due, for each whom something waits for by name."""
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
        """The day of somebody, as far as messages about some approvals go.

        Raises:
            TermsError: A zone of the policy is not known here.
        """
        zone = await self.wishes.zone(person)
        return WorkingDay(zone=zone, own=own_hours(person, zone), house=_house(approvals))

    async def covered(
        self, approval: Approval, people: Collection[str], *, is_first: bool = False
    ) -> Mapping[str, int]:
        """Find out for whom a list takes the place of a reminder; the others count as reminded.

        What comes through whatever people wish is never left to a list.

        Args:
            approval: What they would be reminded of.
            people: Slack user ids.
            is_first: Whether it would be the first that they hear of it.

        Returns:
            By user id, when they are to be reminded instead: 0 where the list has it.
        """
        now, found = self.clock(), dict[str, int]()
        if is_first and now - since_of(approval) < milliseconds(LATE):
            return found
        try:
            loud = is_loud(terms_of(approval))
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
        """Find out when to remind somebody of what is on no list; 0 for now: they are marked so."""
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
        """Mark somebody as reminded, and return None; else when they are to be, in place of now."""
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
        """Whether so many wait for somebody, judged as their votes would be."""
        directory, policy = self.wishes.access.directory, self.wishes.policy
        waits = Waits(directory, policy, self.clock, self.storage.delegations)
        look = await waits.look(Actor(user_id=user_id, team_id=""), self.team_id)
        return len(await look.among(approvals)) >= MANY

    async def _named(self) -> dict[str, list[Approval]]:
        """All whom something waits for by name, each with the first of what that is."""
        now, found = self.clock(), dict[str, list[Approval]]()
        records = await self.storage.delegations.current(self.team_id, now_ms=now)
        handed, away = delegations_of(records), absent_of(records)
        groups: dict[str, frozenset[str]] = {}
        async for approval in self._pending(now):
            try:
                terms = terms_of(approval)
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
        """All that waits for a decision, the earliest deadline first."""
        after: Place | None = START
        while after:
            page, after = await self.storage.lists.waiting(now_ms=now, limit=_PAGE, after=after)
            for approval in page:
                if approval.kind is not Kind.QUESTION and approval.team_id == self.team_id:
                    yield approval
            await asyncio.sleep(0)  # others have their turn

    async def _people(
        self, approval: Approval, terms: Terms, known: dict[str, frozenset[str]]
    ) -> set[str]:
        """The people whom an approval names, alone or by a user group, and who have no say yet."""
        groups = asked_groups(terms, approval.stage, steps_of(approval))
        found: set[str] = set()
        for name in audience_of(terms, groups, self.clock()):
            if is_person(name):
                found.add(name)
            elif is_usergroup(name):
                if name not in known:
                    known[name] = await self._members(name)
                found |= known[name]
        found -= {one.by for one in progress_of(approval).votes}
        return found - all_requesters(approval) if REQUESTERS in terms.exclude else found

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
    """Judge whether a list takes the place of a reminder that is due now.

    Args:
        person: Who would be reminded.
        approval: Of what.
        now: The time now.

    Returns:
        None where they are reminded; 0 where the list has it; else when they are to be reminded.
    """
    apart = milliseconds(APART)
    if person.digest_ms and now - person.digest_ms < apart:
        posted = person.posted
        ids = posted.ids if posted is not None else ()
        if approval.approval_id in ids or since_of(approval) <= person.digest_ms:
            return 0
        later = person.digest_ms + apart
        return later if later < approval.expires_ms else None
    if not person.has_digest or person.next_ms is None or person.attempts:
        return None
    comes_ms = max(person.next_ms, now)
    is_in_time = comes_ms + milliseconds(_SPARE) < approval.expires_ms
    return 0 if comes_ms - now < apart and is_in_time else None


def _soon(day: WorkingDay, person: PersonRecord, now: int) -> int | None:
    """The first moment of this day at which a list may come; None when there is none."""
    soon = day.free_ms(max(now, person.reminded_ms + milliseconds(APART)))
    return soon if soon is not None and day.of(soon) == day.of(now) else None


def _house(approvals: Iterable[Approval]) -> QuietHours | None:
    """The quiet hours of the policy, as what waits was asked under it."""
    for approval in approvals:
        terms = terms_of(approval)
        if terms.quiet is not None and not terms.urgent:
            return terms.quiet
    return None
