"""Optional Slack methods: after a refusal they are skipped for a while."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from bot.clock import milliseconds, steady_clock
from bot.errors import DeliveryError
from bot.ports.process import Clock

logger = logging.getLogger(__name__)

NOT_HERE = frozenset(
    {
        "unknown_method",
        "missing_scope",
        "not_allowed_token_type",
        "feature_not_enabled",
    }
)
"""Slack error codes for features missing in this workspace or app."""
NOT_IN_CHANNEL = frozenset({"method_not_supported_for_channel_type", "channel_type_not_supported"})
"""Slack error codes for features missing in one channel."""
REST = timedelta(hours=1)
"""Time after which a refused method is tried again."""
_EVERYWHERE = ""


@dataclass(slots=True)
class Unsupported:
    """Remembers refusals: for a channel or the whole workspace."""

    reasons: frozenset[str] = NOT_HERE
    clock: Clock = steady_clock
    _until_ms: dict[str, int] = field(default_factory=dict)

    def covers(self, channel_id: str = _EVERYWHERE) -> bool:
        """Whether the method was recently refused in the channel or the workspace."""
        now = self.clock()
        return any(self._until_ms.get(one, now) > now for one in (_EVERYWHERE, channel_id))

    def learn(self, reason: str, channel_id: str) -> bool:
        """Remember a refusal; return whether it is a lasting one."""
        if reason not in self.reasons | NOT_IN_CHANNEL:
            return False
        now = self.clock()
        self._until_ms = {one: until for one, until in self._until_ms.items() if until > now}
        where = channel_id if reason in NOT_IN_CHANNEL else _EVERYWHERE
        self._until_ms[where] = now + milliseconds(REST)
        return True


class TryCall(Protocol):
    """Calls an optional method."""

    async def __call__(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call the method and return Slack's response; raises `DeliveryError`."""
        ...


@dataclass(slots=True)
class OptionalMethod:
    """An optional method that is skipped for a while after a refusal."""

    call: TryCall
    name: str
    unsupported: Unsupported = field(default_factory=Unsupported)

    async def __call__(self, channel_id: str, arguments: Mapping[str, Any]) -> DeliveryError | None:
        """Call the method; return a temporary error, or None."""
        if self.unsupported.covers(channel_id):
            return None
        try:
            await self.call(self.name, channel_id, arguments)
        except DeliveryError as error:
            logger.info("agent view not updated: %s", error, extra={"action": "agent_view_failed"})
            return None if self.unsupported.learn(error.reason, channel_id) else error
        return None
