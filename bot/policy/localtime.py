"""Conversion of local times, where hours can be missing or repeated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from bot.policy.terms import TermsError

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
