"""Notification preferences: quiet hours, and cards by direct message.

Urgent and high-risk requests ignore preferences. A preference that cannot be looked up is ignored,
too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import time, timedelta

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.clock import milliseconds
from bot.errors import DirectoryError, InvalidInputError, reason_of
from bot.people.access import Access
from bot.people.lookup import PATIENCE_S
from bot.policy.hours import quiet_end, zone_of
from bot.ports.people import Actor
from bot.ports.policy import CurrentPolicy
from bot.ports.process import Clock
from bot.records.approval import Approval
from bot.records.people import PersonRecord
from bot.records.terms import QuietHours, Terms, TermsError
from bot.stores import Stores
from storage.errors import StorageError

logger = logging.getLogger(__name__)

_LOUD = frozenset({"high", "critical"})
_UTC = "Etc/UTC"
_KNOWN_FOR = timedelta(seconds=20)
"""Time for which a process caches who has preferences."""


def is_loud(terms: Terms) -> bool:
    """Whether requests under these terms ignore preferences."""
    return terms.urgent or terms.risk in _LOUD


def new_person(team_id: str, user_id: str) -> PersonRecord:
    """Return an empty record of a person."""
    return PersonRecord(person_id=f"{team_id}:{user_id}", team_id=team_id, user_id=user_id)


@dataclass(slots=True, kw_only=True)
class NotificationPreferences:
    """Reads and writes the notification preferences of a workspace.

    Attributes:
        storage: The database.
        access: Looks people up; results may be a minute old.
        policy: The policy in force; its time zone is the default.
        clock: The time now.
    """

    storage: Stores
    access: Access
    policy: CurrentPolicy
    clock: Clock
    _known: dict[str, tuple[int, Mapping[str, PersonRecord]]] = field(default_factory=dict)

    async def of(self, user_id: str, *, team_id: str) -> PersonRecord:
        """Read a person's preferences."""
        records = await self.storage.people.of(team_id, [user_id])
        return records.get(user_id) or new_person(team_id, user_id)

    async def set(
        self,
        actor: Actor,
        *,
        team_id: str,
        quiet: tuple[str, str] | None = None,
        has_copies: bool | None = None,
    ) -> PersonRecord:
        """Store a person's preferences and record the change.

        Args:
            actor: The person.
            team_id: The workspace.
            quiet: Start and end of quiet hours, such as `22:00`; two empty texts for none, None for
                no change.
            has_copies: Whether they want cards by direct message; None for no change.

        Returns:
            The preferences as stored.

        Raises:
            NotApproverError: The person is not a member of the workspace.
            DirectoryError: The person could not be looked up.
            InvalidInputError: A time is invalid, or both are equal.
        """
        person = await self.access.check_person(actor, team_id=team_id)
        if quiet is not None:
            check_hours(*quiet)

        def change(before: PersonRecord) -> PersonRecord:
            start, until = quiet if quiet is not None else (before.quiet_from, before.quiet_until)
            copies = before.has_copies if has_copies is None else has_copies
            return before.changed(
                quiet_from=start,
                quiet_until=until,
                timezone=person.timezone,
                has_copies=copies,
            )

        stored = await self.storage.people.change(team_id, actor.user_id, change)
        self._known.pop(team_id, None)
        result = stored or await self.of(actor.user_id, team_id=team_id)
        await self._note(result)
        return result

    async def _note(self, preferences: PersonRecord) -> None:
        """Record a person's preferences in the audit."""
        now = self.clock()
        await note(
            self.storage.audit,
            Act.WISHED,
            # The revision starts again when the retention has deleted the person's record.
            key=f"{preferences.person_id}:{preferences.revision}:{now}",
            at_ms=now,
            about="",
            by=preferences.user_id,
            team_id=preferences.team_id,
            quiet_from=preferences.quiet_from,
            quiet_until=preferences.quiet_until,
            copies="yes" if preferences.has_copies else "no",
        )

    async def quiet(self, approval: Approval, people: Collection[str]) -> Mapping[str, int]:
        """Return the people who are in quiet hours, with the end of their quiet hours.

        Returns:
            End times by user id; empty for urgent and high-risk requests.
        """
        try:
            if not people or is_loud(approval.terms):
                return {}
            known = await self._wishing(approval.team_id)
            now, ends = self.clock(), {}
            for name in {*people} & known.keys():
                hours = await self.hours(known[name])
                end = None if hours is None else quiet_end(hours, now)
                if end is not None and end > now:
                    ends[name] = end
        except (StorageError, TermsError) as error:
            logger.warning(
                "could not read notification preferences, notifying everyone: %s",
                error,
                extra={"action": "wishes_failed"},
            )
            return {}
        return ends

    async def direct(self, approval: Approval, people: Collection[str]) -> frozenset[str]:
        """Return the people who want cards by direct message; empty if unreadable."""
        if not people:
            return frozenset()
        try:
            known = await self._wishing(approval.team_id)
        except StorageError as error:
            logger.warning(
                "could not read notification preferences, sending no cards by direct message: %s",
                error,
                extra={"action": "wishes_failed"},
            )
            return frozenset()
        return frozenset(
            user_id for user_id in people if user_id in known and known[user_id].has_copies
        )

    async def later(self, approval: Approval, user_id: str) -> int:
        """Return when to remind a person of their own question; 0 for now."""
        return (await self.quiet(approval, [user_id])).get(user_id, 0)

    async def hours(self, person: PersonRecord) -> QuietHours | None:
        """Return a person's quiet hours in their local time, or None."""
        if not person.quiet_from:
            return None
        zone = await self.zone(person)
        return QuietHours(start=person.quiet_from, until=person.quiet_until, timezone=zone)

    async def zone(self, person: PersonRecord) -> str:
        """Return a person's time zone: from Slack, as last stored, or the policy's."""
        now = ""
        try:
            async with asyncio.timeout(PATIENCE_S):
                now = (await self.access.directory.person(person.user_id)).timezone
        except (DirectoryError, TimeoutError) as error:
            logger.info(
                "could not look up a time zone, using the last one known: %s",
                reason_of(error),
                extra={"action": "wishes_failed"},
            )
        return known_zone(zone for zone in (now, person.timezone, self.policy.timezone) if zone)

    async def _wishing(self, team_id: str) -> Mapping[str, PersonRecord]:
        """Return the people with preferences, from a short-lived cache."""
        since_ms, known = self._known.get(team_id, (0, {}))
        now = self.clock()
        if not 0 <= now - since_ms < milliseconds(_KNOWN_FOR):
            known = {
                person.user_id: person for person in await self.storage.people.wishing(team_id)
            }
            self._known[team_id] = now, known
        return known


def check_hours(start: str, until: str) -> None:
    """Validate quiet hours.

    Raises:
        InvalidInputError: A time is invalid, or both are equal.
    """
    if not start and not until:
        return
    try:
        times = [time.fromisoformat(text) for text in (start, until)]
    except ValueError as error:
        raise InvalidInputError("this time") from error
    if times[0] == times[1] or [f"{moment:%H:%M}" for moment in times] != [start, until]:
        raise InvalidInputError("this time")


def known_zone(names: Iterable[str]) -> str:
    """Return the first valid time zone; else UTC."""
    for name in names:
        try:
            zone_of(name)
        except TermsError:
            continue
        return name
    return _UTC
