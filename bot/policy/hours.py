"""Quiet hours, working time, and conversion of local times."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from bot.records.terms import QuietHours, TermsError

_DAY = timedelta(days=1)
_AHEAD = 9
"""Days to look ahead. Quiet hours longer than a week never end."""
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

Span = tuple[int, int]
"""Start, and exclusive end, in milliseconds since the epoch."""


def is_quiet(quiet: QuietHours | None, at_ms: int) -> bool:
    """Whether a time is in quiet hours.

    Raises:
        TermsError: The time zone is unknown on this machine.
    """
    return _span_at(quiet, at_ms) is not None


def quiet_end(quiet: QuietHours | None, at_ms: int) -> int | None:
    """Return the first time, from a time on, outside of quiet hours, or None.

    Raises:
        TermsError: The time zone is unknown on this machine.
    """
    span = _span_at(quiet, at_ms)
    if span is None:
        return at_ms
    ends = (span[1] - span[0]) // 86_400_000 < _AHEAD - 1
    return span[1] if ends else None


def add_working(quiet: QuietHours | None, at_ms: int, span_ms: int) -> int | None:
    """Add a duration of working time, that is, time outside of quiet hours.

    Args:
        quiet: The quiet hours; without them all time counts.
        at_ms: The start.
        span_ms: The duration.

    Returns:
        The first such time; None if it never comes.

    Raises:
        TermsError: The time zone is unknown on this machine.
    """
    while span_ms > 0:
        begin = quiet_end(quiet, at_ms)
        if begin is None:
            return None
        end = _next_quiet(quiet, begin)
        if end is None or span_ms <= end - begin:
            return begin + span_ms
        span_ms, at_ms = span_ms - (end - begin), end
    return at_ms


def _span_at(quiet: QuietHours | None, at_ms: int) -> Span | None:
    if quiet is None:
        return None
    spans = _spans(quiet, to_local(at_ms, zone_of(quiet.timezone)).date())
    return next((span for span in spans if span[0] <= at_ms < span[1]), None)


def _next_quiet(quiet: QuietHours | None, at_ms: int) -> int | None:
    """Return the start of the next quiet hours; None if it is beyond the days ahead."""
    if quiet is None:
        return None
    spans = _spans(quiet, to_local(at_ms, zone_of(quiet.timezone)).date())
    return next((begin for begin, _ in spans if begin > at_ms), None)


@lru_cache(maxsize=512)
def _spans(quiet: QuietHours, around: date) -> tuple[Span, ...]:
    """Return the quiet spans from two days before a day on, with adjacent ones joined."""
    # A span of the day before can still last, and can adjoin a whole quiet day before it.
    days = [around + (number - 2) * _DAY for number in range(_AHEAD + 3)]
    spans = sorted(span for day in days for span in _of_day(quiet, day) if span[0] < span[1])
    result: list[Span] = []
    for begin, end in spans:
        if result and begin <= result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((begin, end))
    return tuple(result)


def _of_day(quiet: QuietHours, day: date) -> list[Span]:
    """Return the spans that begin on a day."""
    zone, midnight = zone_of(quiet.timezone), datetime.combine(day, time())
    result = []
    if _DAYS[day.weekday()] in quiet.days:
        result.append((to_ms(midnight, zone), to_ms(midnight + _DAY, zone)))
    if quiet.start:
        start, until = time.fromisoformat(quiet.start), time.fromisoformat(quiet.until)
        last = day if start < until else day + _DAY
        result.append(
            (to_ms(datetime.combine(day, start), zone), to_ms(datetime.combine(last, until), zone))
        )
    return result


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)


def zone_of(name: str) -> ZoneInfo:
    """Return an IANA time zone.

    Raises:
        TermsError: The zone is unknown on this machine, so rotations and quiet hours are too.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise TermsError(f"the zone {name!r} is not known here") from error


@lru_cache(maxsize=4_096)
def to_ms(local: datetime, zone: ZoneInfo) -> int:
    """Convert a local time to milliseconds since the epoch.

    A time that does not exist is moved to the first later one; of a repeated time, the first
    counts. Time zones are ignored for the minimum and maximum date, which mean always.
    """
    try:
        moment = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None, fold=0) != local:
            moment = _after_gap(local, zone)
    except OverflowError:
        moment = local.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MS


def to_local(at_ms: int, zone: ZoneInfo) -> datetime:
    """Convert milliseconds since the epoch to a local time without zone."""
    return (_EPOCH + at_ms * _MS).astimezone(zone).replace(tzinfo=None, fold=0)


def _after_gap(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the end of a gap in local time, to the second, by bisection."""
    before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    after = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    offset = after.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // 2 // _SECOND * _SECOND
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after
