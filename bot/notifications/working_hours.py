"""A person's day: when it begins for them, and when they are not to be disturbed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from bot.policy.hours import quiet_end
from bot.policy.localtime import to_local, to_ms, zone_of
from bot.policy.terms import QuietHours, TermsError
from storage.records import PersonRecord

BEGIN = time(9)
"""When a day begins where neither its person nor the policy says so."""
_UTC = "Etc/UTC"
_AHEAD = 10
"""Days looked ahead: who has no day of theirs in so many has none."""
_STEPS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingDay:
    """The days of one person.

    Attributes:
        zone: Name of their zone; one that is known here.
        own: The hours in which they want no messages; None for none.
        house: The quiet hours of the policy; None without.
    """

    zone: str
    own: QuietHours | None = None
    house: QuietHours | None = None

    def of(self, at_ms: int) -> date:
        """The local day of a moment."""
        return to_local(at_ms, zone_of(self.zone)).date()

    def free_ms(self, at_ms: int) -> int | None:
        """The first moment, from this one on, at which they may be messaged; None for never."""
        moment: int | None = at_ms
        for _ in range(_STEPS):
            before = moment
            for hours in (self.own, self.house):
                moment = None if moment is None else quiet_end(hours, moment)
            if moment == before:
                return moment
        return None

    def begins_ms(self, day: date) -> int | None:
        """When a day begins for them; None for one on which they are not to be messaged."""
        wall = datetime.combine(day, self._begin())
        free = self.free_ms(to_ms(wall, zone_of(self.zone)))
        return free if free is not None and self.of(free) == day else None

    def next_ms(self, at_ms: int, *, after: str = "") -> int | None:
        """The next beginning of a day, later than a moment, and of a day later than one.

        Args:
            at_ms: The moment.
            after: The day, as in ISO 8601; empty for none.
        """
        today = self.of(at_ms)
        for number in range(_AHEAD):
            day = today + timedelta(days=number)
            begin = self.begins_ms(day) if day.isoformat() > after else None
            if begin is not None and begin > at_ms:
                return begin
        return None

    def _begin(self) -> time:
        """The time on the wall: the end of the night, where one is known."""
        for hours in (self.own, self.house):
            if hours is not None and hours.start > hours.until:
                return time.fromisoformat(hours.until)
        return BEGIN


def own_hours(person: PersonRecord, zone: str) -> QuietHours | None:
    """The hours in which somebody wants no messages, by the clock on their wall."""
    if not person.quiet_from:
        return None
    return QuietHours(start=person.quiet_from, until=person.quiet_until, timezone=zone)


def known_zone(names: Iterable[str]) -> str:
    """The first zone that is known here; else UTC."""
    for name in names:
        try:
            zone_of(name)
        except TermsError:
            continue
        return name
    return _UTC
