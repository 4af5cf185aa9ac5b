"""Rate limiter for Slack calls.

Each call waits for a slot of its method, and a post also for one of its channel, in order of the
requests. If the slot is too far away, the caller gets the time to retry and keeps its work stored
until then. Calls that a person waits for (acknowledgements, modals, responses by `response_url`)
are not limited.

Source: https://docs.slack.dev/apis/web-api/rate-limits (tiers per method and workspace; posting
about once a second in each channel, with short bursts)
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right, insort
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from bot.clock import milliseconds, steady_clock
from bot.ports.process import Clock

Key = tuple[str, str]
"""A method, and a channel or an empty text."""

MARGIN = timedelta(milliseconds=100)
"""Added to intervals: calls may arrive closer together than they were sent."""

_MANY = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A maximum number of calls within any period of a length."""

    most: int
    within: timedelta = timedelta(minutes=1)
    per_channel: bool = False


Limits = Mapping[str, tuple[Limit, ...]]
"""Limits by method."""

_TIER_2, _TIER_3, _TIER_4 = (Limit(most=most) for most in (20, 50, 100))
_IN_A_CHANNEL = Limit(most=3, within=timedelta(seconds=3), per_channel=True)

SLACK_LIMITS: Limits = {
    "agents.sessions.setStatus": (_TIER_3,),
    "assistant.threads.setStatus": (_TIER_4,),
    "assistant.threads.setSuggestedPrompts": (_TIER_3,),
    "chat.postMessage": (_IN_A_CHANNEL, Limit(most=300)),
    "chat.update": (_TIER_3,),
    "chat.delete": (_TIER_3,),
    "chat.getPermalink": (_TIER_4,),
    "chat.postEphemeral": (_TIER_4,),
    "chat.startStream": (_TIER_2,),
    "chat.appendStream": (_TIER_4,),
    "chat.stopStream": (_TIER_2,),
    "conversations.history": (_TIER_3,),
    "conversations.info": (_TIER_3,),
    "conversations.members": (_TIER_4,),
    "conversations.open": (_TIER_3,),
    "conversations.replies": (_TIER_3,),
    "reactions.add": (_TIER_3,),
    "reactions.remove": (_TIER_2,),
    "usergroups.list": (_TIER_2,),
    "users.info": (_TIER_4,),
    "users.list": (_TIER_2,),
}
"""Slack's limits per app and workspace. Other methods are not limited."""


class TooSoonError(Exception):
    """The next slot is later than the caller can wait. Nothing was sent."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"the next slot is {wait.total_seconds():.1f} s away")
        self.wait = wait


@dataclass
class Pacer:
    """Assigns slots to calls.

    Args:
        clock: Milliseconds; only differences count, so it must not be set back.
        sleep: Waits for some seconds.
        limits: By method.
    """

    clock: Clock = steady_clock
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    limits: Limits = field(default_factory=lambda: SLACK_LIMITS)
    _given: dict[tuple[Key, Limit], list[int]] = field(default_factory=dict)
    _held: dict[Key, int] = field(default_factory=dict)

    async def slot(self, method: str, channel_id: str, *, patience: timedelta) -> None:
        """Wait until a call may be sent.

        Args:
            method: Web API method.
            channel_id: Channel of the call; empty without one.
            patience: Longest wait.

        Raises:
            TooSoonError: The wait would be longer; no slot was taken.
        """
        now = self.clock()
        until_ms = now + milliseconds(patience)
        at_ms = self._reserve_slot(method, channel_id, now, until_ms)
        while (now := self.clock()) < at_ms:
            try:
                await self.sleep((at_ms - now) / 1_000)
            except BaseException:
                self._give_back(method, channel_id, at_ms)
                raise
            if self._held_until(method, channel_id) > at_ms:  # Slack has asked for a pause since
                self._give_back(method, channel_id, at_ms)
                at_ms = self._reserve_slot(method, channel_id, self.clock(), until_ms)

    def hold(self, method: str, channel_id: str, wait: timedelta) -> None:
        """Pause calls as Slack asked: of this method, and of posts in this channel."""
        key = self._key(method, channel_id)
        until_ms = self.clock() + milliseconds(wait)
        self._held[key] = max(until_ms, self._held.get(key, 0))

    def is_free(self, method: str, channel_id: str) -> bool:
        """Whether a call could be sent at once."""
        now = self.clock()
        return self._next_ms(method, channel_id, now) <= now

    def _reserve_slot(self, method: str, channel_id: str, now: int, until_ms: int) -> int:
        """Reserve the next slot; return its time."""
        self._forget(now)
        at_ms = self._next_ms(method, channel_id, now)
        if at_ms > until_ms:
            raise TooSoonError(timedelta(milliseconds=at_ms - now))
        for limit in self._of(method):
            insort(self._window(method, channel_id, limit, now), at_ms)
        return at_ms

    def _next_ms(self, method: str, channel_id: str, now: int) -> int:
        """Return the time of the next slot."""
        at_ms = max(now, self._held_until(method, channel_id))
        for limit in self._of(method):
            window = self._window(method, channel_id, limit, now)
            if len(window) >= limit.most:
                at_ms = max(at_ms, window[-limit.most] + _whole(limit))
        return at_ms

    def _give_back(self, method: str, channel_id: str, at_ms: int) -> None:
        """Free an unused slot."""
        for limit in self._of(method):
            window = self._window(method, channel_id, limit, self.clock())
            if at_ms in window:
                window.remove(at_ms)

    def _window(self, method: str, channel_id: str, limit: Limit, now: int) -> list[int]:
        """Return the slots in the limit's current window, in order."""
        key = (method, channel_id if limit.per_channel else "")
        window = self._given.setdefault((key, limit), [])
        del window[: bisect_right(window, now - _whole(limit))]
        return window

    def _forget(self, now: int) -> None:
        """Remove expired slots if there are many."""
        if len(self._given) > _MANY:
            old = [
                key
                for key, window in self._given.items()
                if not window or window[-1] + _whole(key[1]) <= now
            ]
            for key in old:
                del self._given[key]
        if len(self._held) > _MANY:
            self._held = {key: until for key, until in self._held.items() if until > now}

    def _of(self, method: str) -> tuple[Limit, ...]:
        return self.limits.get(method, ())

    def _held_until(self, method: str, channel_id: str) -> int:
        return self._held.get(self._key(method, channel_id), 0)

    def _key(self, method: str, channel_id: str) -> Key:
        per_channel = any(limit.per_channel for limit in self._of(method))
        return method, channel_id if per_channel else ""


def _whole(limit: Limit) -> int:
    return milliseconds(limit.within + MARGIN)
