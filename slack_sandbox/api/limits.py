"""Slack's rate limits per method. They are on unless switched off.

Source:
    https://docs.slack.dev/apis/web-api/rate-limits
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

_MINUTE = 60.0
_TIER_2, _TIER_3, _TIER_4 = 20, 50, 100
_SOCKETS = 10
"""Tier 1 is "1+" a minute, but an app may have ten sockets, and opens them when it starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodLimit:
    """A maximum number of calls within a time.

    Attributes:
        most: Maximum number of calls.
        seconds: Length of the sliding window.
        per_channel: Whether each conversation has its own count.
    """

    most: int
    seconds: float = _MINUTE
    per_channel: bool = False


_PER_MINUTE: Final[Mapping[str, int]] = {
    "apps.connections.open": _SOCKETS,
    "agents.sessions.setStatus": _TIER_3,
    "assistant.threads.setStatus": _TIER_4,
    "assistant.threads.setSuggestedPrompts": _TIER_3,
    "auth.test": 600,
    "bots.info": _TIER_3,
    "chat.appendStream": _TIER_4,
    "chat.delete": _TIER_3,
    "chat.getPermalink": 300,
    "chat.postEphemeral": _TIER_4,
    "chat.postMessage": 300,
    "chat.scheduleMessage": _TIER_3,
    "chat.startStream": _TIER_2,
    "chat.stopStream": _TIER_2,
    "chat.update": _TIER_3,
    "conversations.history": _TIER_3,
    "conversations.info": _TIER_3,
    "conversations.list": _TIER_2,
    "conversations.members": _TIER_4,
    "conversations.open": _TIER_3,
    "conversations.replies": _TIER_3,
    "reactions.add": _TIER_3,
    "reactions.get": _TIER_3,
    "reactions.remove": _TIER_2,
    "team.info": _TIER_3,
    "usergroups.list": _TIER_2,
    "usergroups.users.list": _TIER_2,
    "users.info": _TIER_4,
    "users.list": _TIER_2,
    "views.open": _TIER_4,
    "views.publish": _TIER_4,
    "views.push": _TIER_4,
    "views.update": _TIER_4,
}
_POSTS = MethodLimit(most=3, seconds=3.0, per_channel=True)
"""One message per second in each conversation. Short bursts pass."""


class RateLimits:
    """Counts calls, and decides when an app calls too often."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._made: dict[tuple[str, MethodLimit, str], deque[float]] = {}
        self.is_on = True
        self.limits: dict[str, list[MethodLimit]] = {
            method: [MethodLimit(most=most)] for method, most in _PER_MINUTE.items()
        }
        self.limits["chat.postMessage"].append(_POSTS)

    def set(
        self, method: str, most: int, seconds: float = _MINUTE, *, per_channel: bool = False
    ) -> None:
        """Replace the limit of a method."""
        self.limits[method] = [MethodLimit(most=most, seconds=seconds, per_channel=per_channel)]

    def wait(self, method: str, channel: str) -> int | None:
        """Count a call, or return the seconds to wait. Refused calls do not count."""
        if not self.is_on:
            return None
        now = self._clock()
        windows = [
            (limit, self._window(method, limit, channel, now))
            for limit in self.limits.get(method, [])
        ]
        waits = [
            window[0] + limit.seconds - now
            for limit, window in windows
            if len(window) >= limit.most
        ]
        if waits:
            return max(1, math.ceil(max(waits)))
        for _, window in windows:
            window.append(now)
        return None

    def _window(self, method: str, limit: MethodLimit, channel: str, now: float) -> deque[float]:
        key = (method, limit, channel if limit.per_channel else "")
        window = self._made.setdefault(key, deque())
        while window and window[0] <= now - limit.seconds:
            window.popleft()
        return window
