"""Format times for one person, in their time zone and locale.

Home and ephemeral messages have one reader, so Slack's date tokens are not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_time

from bot.policy.hours import zone_of
from bot.ports.people import Person
from bot.records.terms import TermsError
from bot.words import say

_ENGLISH = "en_US"
_UTC = "Etc/UTC"
_LAST_MS = 253_402_300_799_000 - 86_400_000  # end of the year 9999, in any time zone


@dataclass(frozen=True, slots=True)
class TimeReader:
    """Time format of one reader.

    Attributes:
        zone: Their time zone.
        locale: Their language and region.
        is_lasting: Whether the text may be read on another day, so no day is “today”.
    """

    zone: ZoneInfo
    locale: Locale
    now_ms: int
    is_lasting: bool = False

    @classmethod
    def of(cls, person: Person, now_ms: int, *, zone: str = "") -> TimeReader:
        """Return a person's format; missing data comes from `zone`, or is UTC.

        Args:
            person: The reader.
            now_ms: The time now.
            zone: Name of the default time zone, such as the policy's.
        """
        return cls(zone_for(person, zone), _locale(person.locale), now_ms)

    def moment(self, at_ms: int) -> str:
        """Format a time: “today 10:00 AM”, “tomorrow 10:00 AM”, “Fri, Nov 27, 10:00 AM”."""
        local, clock = self._local(at_ms), self.clock(at_ms)
        days = (local.date() - self._local(self.now_ms).date()).days
        if self.is_lasting:
            return say("home.on_day", day=_day(local, days, self.locale), time=clock)
        match days:
            case 0:
                return say("home.today", time=clock)
            case 1:
                return say("home.tomorrow", time=clock)
            case -1:
                return say("home.yesterday", time=clock)
            case _:
                return say("home.on_day", day=_day(local, days, self.locale), time=clock)

    def clock(self, at_ms: int) -> str:
        """Format the time of day, such as “10:00 AM”."""
        return _plain(format_time(self._local(at_ms), "short", locale=self.locale))

    def wall(self, text: str) -> str:
        """Format a time of day such as `22:00` in the reader's locale."""
        return _plain(format_time(time.fromisoformat(text), "short", locale=self.locale))

    def is_today(self, at_ms: int) -> bool:
        """Whether a time is on the reader's current day."""
        return self._local(at_ms).date() == self._local(self.now_ms).date()

    def _local(self, at_ms: int) -> datetime:
        moment = datetime.fromtimestamp(0, tz=UTC) + timedelta(
            milliseconds=min(max(at_ms, 86_400_000), _LAST_MS)
        )
        return moment.astimezone(self.zone).replace(tzinfo=None)


def zone_for(person: Person, zone: str = "") -> ZoneInfo:
    """Return a person's time zone from Slack; else the given one, else UTC."""
    for name in (person.timezone, zone):
        try:
            return zone_of(name)
        except TermsError:
            continue
    return zone_of(_UTC)


def _day(local: datetime, days: int, locale: Locale) -> str:
    """Format a day relative to today; with its year if distant."""
    return _skeleton(local, "EEE, MMM d" if abs(days) < 300 else "MMM d, y", locale)


def _skeleton(local: datetime, english: str, locale: Locale) -> str:
    if locale.language == "en":
        return format_date(local, english, locale=locale)
    return _plain(format_date(local, "medium", locale=locale))


def _locale(name: str) -> Locale:
    try:
        return Locale.parse(name.replace("-", "_"))
    except (ValueError, TypeError, UnknownLocaleError):
        return Locale.parse(_ENGLISH)


def _plain(text: str) -> str:
    """Replace unusual spaces, such as before AM, which some fonts lack."""
    return text.replace("\N{NARROW NO-BREAK SPACE}", " ").replace("\N{NO-BREAK SPACE}", " ")
