"""Working days: when a person's day and digest begin, and when not to disturb them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from bot.policy.hours import quiet_end, to_local, to_ms, zone_of
from bot.records.people import PersonRecord
from bot.records.terms import QuietHours, TermsError

BEGIN = time(9)
"""Begin of a day if neither the person nor the policy sets one."""
_UTC = "Etc/UTC"
_AHEAD = 10
"""Number of days to search for the next working day."""
_STEPS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingDay:
    """Working days of one person.

    Attributes:
        zone: Name of their time zone, valid here.
        own: Their quiet hours, or None.
        house: The policy's quiet hours, or None.
    """

    zone: str
    own: QuietHours | None = None
    house: QuietHours | None = None

    def of(self, at_ms: int) -> date:
        """Return the local date of a time."""
        return to_local(at_ms, zone_of(self.zone)).date()

    def free_ms(self, at_ms: int) -> int | None:
        """Return the first time, not before `at_ms`, outside quiet hours; None if never."""
        moment: int | None = at_ms
        for _ in range(_STEPS):
            before = moment
            for hours in (self.own, self.house):
                moment = None if moment is None else quiet_end(hours, moment)
            if moment == before:
                return moment
        return None

    def begins_ms(self, day: date) -> int | None:
        """Return when a date begins for the person; None if it is all quiet hours."""
        wall = datetime.combine(day, self._begin())
        free = self.free_ms(to_ms(wall, zone_of(self.zone)))
        return free if free is not None and self.of(free) == day else None

    def next_ms(self, at_ms: int, *, after: str = "") -> int | None:
        """Return the next begin of a day after a time and after a date.

        Args:
            at_ms: The time.
            after: The date in ISO 8601; empty for any.
        """
        today = self.of(at_ms)
        for number in range(_AHEAD):
            day = today + timedelta(days=number)
            begin = self.begins_ms(day) if day.isoformat() > after else None
            if begin is not None and begin > at_ms:
                return begin
        return None

    def _begin(self) -> time:
        """Return the local time of day at which the person's quiet hours end."""
        for hours in (self.own, self.house):
            if hours is not None and hours.start > hours.until:
                return time.fromisoformat(hours.until)
        return BEGIN


def own_hours(person: PersonRecord, zone: str) -> QuietHours | None:
    """Return a person's quiet hours in their local time, or None."""
    if not person.quiet_from:
        return None
    return QuietHours(start=person.quiet_from, until=person.quiet_until, timezone=zone)


def known_zone(names: Iterable[str]) -> str:
    """Return the first valid time zone; else UTC."""
    for name in names:
        try:
            zone_of(name)
        except TermsError:
            continue
        return name
    return _UTC
