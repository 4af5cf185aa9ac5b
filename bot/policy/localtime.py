"""Local times: the moment that a clock on a wall means, where hours may be left out or repeated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from bot.policy.terms import TermsError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)


def zone_of(name: str) -> ZoneInfo:
    """Find an IANA zone.

    Raises:
        TermsError: It is not known here; who is on duty and what is quiet cannot be told.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise TermsError(f"the zone {name!r} is not known here") from error


@lru_cache(maxsize=4_096)
def to_ms(local: datetime, zone: ZoneInfo) -> int:
    """The moment of a local time, in milliseconds since the epoch.

    One that does not exist is the first after it; one that exists twice is the first (1.6). On the
    first and the last day that there are, which stand for always, zones do not matter.
    """
    try:
        moment = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None, fold=0) != local:
            moment = _after_gap(local, zone)
    except OverflowError:
        moment = local.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MS


def to_local(at_ms: int, zone: ZoneInfo) -> datetime:
    """The local time of a moment, without its zone."""
    return (_EPOCH + at_ms * _MS).astimezone(zone).replace(tzinfo=None, fold=0)


def _after_gap(local: datetime, zone: ZoneInfo) -> datetime:
    """The moment at which clocks leave out a local time: found to the second, by halving."""
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
