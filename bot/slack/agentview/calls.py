"""Calls that the app can do without: what a workspace does not have is not called again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from bot.errors import DeliveryError

logger = logging.getLogger(__name__)

NOT_HERE = frozenset(
    {
        "unknown_method",
        "missing_scope",
        "not_allowed_token_type",
        "feature_not_enabled",
        "method_not_supported_for_channel_type",
    }
)
"""Slack's words for what this workspace, or this app, does not have."""


class TryCall(Protocol):
    """Calls a method that the app can do without."""

    async def __call__(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return Slack's answer; raises `DeliveryError`."""
        ...


@dataclass(slots=True)
class OptionalMethod:
    """A method that is called until Slack says that there is none.

    Args:
        call: Makes calls, at Slack's pace.
        name: The method.
        is_there: Whether it may be there.
    """

    call: TryCall
    name: str
    is_there: bool = True

    async def __call__(self, channel_id: str, arguments: Mapping[str, Any]) -> DeliveryError | None:
        """Call it; return why it took no effect, where that may pass."""
        if not self.is_there:
            return None
        try:
            await self.call(self.name, channel_id, arguments)
        except DeliveryError as error:
            logger.info("not shown: %s", error, extra={"action": "agent_view_failed"})
            self.is_there = error.reason not in NOT_HERE
            return error if self.is_there else None
        return None
