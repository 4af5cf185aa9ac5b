"""Rotations: the person on duty at a time, and the next hand-over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.policy.hours import to_local, to_ms, zone_of
from bot.records.terms import Override, Rotation

_HOUR_MS = 3_600_000
_DAYS = {"d": 1, "w": 7}


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """The start of a person's duty."""

    at_ms: int
    user: str


def on_duty(rotation: Rotation, at_ms: int) -> str | None:
    """Return the person on duty; None before the rotation starts.

    Raises:
        TermsError: The time zone is unknown on this machine.
    """
    zone = zone_of(rotation.timezone)
    if at_ms < to_ms(rotation.start, zone):
        return None
    # The last override of a time applies.
    for override in reversed(rotation.overrides):
        if to_ms(override.start, zone) <= at_ms < to_ms(override.until, zone):
            return override.user
    return rotation.people[_turn(rotation, at_ms) % len(rotation.people)]


def next_handover(rotation: Rotation, *, after_ms: int, before_ms: int) -> Handover | None:
    """Return the next change of the person on duty before `before_ms`, or None.

    Raises:
        TermsError: The time zone is unknown on this machine.
    """
    last, at_ms = on_duty(rotation, after_ms), after_ms
    if not rotation.overrides and last and len(set(rotation.people)) == 1:
        return None
    while (at_ms := _next_change(rotation, at_ms)) < before_ms:
        user = on_duty(rotation, at_ms)
        if user is not None and user != last:
            return Handover(at_ms=at_ms, user=user)
    return None


def _next_change(rotation: Rotation, at_ms: int) -> int:
    """Return the next time at which a turn or an override begins or ends."""
    zone = zone_of(rotation.timezone)
    edges = [
        to_ms(edge, zone)
        for override in rotation.overrides
        for edge in _edges(override)
        if to_ms(edge, zone) > at_ms
    ]
    first = to_ms(rotation.start, zone)
    turn = first if at_ms < first else _begin(rotation, _turn(rotation, at_ms) + 1)
    return min([turn, *edges])


def _edges(override: Override) -> tuple[datetime, datetime]:
    return override.start, override.until


def _turn(rotation: Rotation, at_ms: int) -> int:
    """Return the number of the turn at a time, from 0."""
    zone = zone_of(rotation.timezone)
    if rotation.every.endswith("h"):
        return (at_ms - to_ms(rotation.start, zone)) // (_length(rotation) * _HOUR_MS)
    passed = (to_local(at_ms, zone) - rotation.start).days
    number = max(passed // _length(rotation), 0)
    # A change of daylight saving time moves the start of a turn by less than a day.
    while _begin(rotation, number + 1) <= at_ms:
        number += 1
    while number and _begin(rotation, number) > at_ms:
        number -= 1
    return number


def _begin(rotation: Rotation, number: int) -> int:
    """Return the start of a turn."""
    zone, length = zone_of(rotation.timezone), _length(rotation)
    if rotation.every.endswith("h"):
        return to_ms(rotation.start, zone) + number * length * _HOUR_MS
    return to_ms(rotation.start + timedelta(days=number * length), zone)


def _length(rotation: Rotation) -> int:
    """Return the length of a turn: in hours, or in days."""
    return int(rotation.every[:-1]) * _DAYS.get(rotation.every[-1], 1)
