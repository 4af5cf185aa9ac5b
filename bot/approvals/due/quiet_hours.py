"""Port to preferences: whom not to notify now, and who prefers direct cards."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from bot.records.approval import Approval


class DoNotDisturb(Protocol):
    """Tells whom not to notify now; see `NotificationPreferences`."""

    async def quiet(self, approval: Approval, people: Collection[str]) -> Mapping[str, int]:
        """Return the people in quiet hours, and until when."""
        ...

    async def direct(self, approval: Approval, people: Collection[str]) -> frozenset[str]:
        """Return the people who want cards by direct message."""
        ...

    async def later(self, approval: Approval, user_id: str) -> int:
        """Return when to remind a person of their own question; 0 for now."""
        ...


class NeverQuiet:
    """Default preferences: no quiet hours, no direct messages."""

    async def quiet(self, approval: Approval, people: Collection[str]) -> Mapping[str, int]:  # noqa: ARG002 - see DoNotDisturb
        """Return no people."""
        return {}

    async def direct(self, approval: Approval, people: Collection[str]) -> frozenset[str]:  # noqa: ARG002 - see DoNotDisturb
        """Return no people."""
        return frozenset()

    async def later(self, approval: Approval, user_id: str) -> int:  # noqa: ARG002 - see DoNotDisturb
        """Return 0."""
        return 0
