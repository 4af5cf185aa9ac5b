"""The port by which attendances learn who is not to be told now, and who wants cards sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from bot.policy.escalation import Due
from storage.records import Approval


class DoNotDisturb(Protocol):
    """Says who is not to be told now: see `PersonalDoNotDisturb`."""

    async def quiet(self, approval: Approval, people: Collection[str]) -> Mapping[str, int]:
        """Those who are not to be disturbed now, and until when."""
        ...

    async def direct(self, approval: Approval, people: Collection[str]) -> frozenset[str]:
        """Those who want cards by direct message, wherever they are."""
        ...

    async def left_out(
        self, approval: Approval, found: Due, people: Collection[str]
    ) -> Mapping[str, int]:
        """Those who have it on a list, and when they are told all the same; 0 for not at all."""
        ...

    async def later(self, approval: Approval, user_id: str) -> int:
        """When somebody is to be reminded of a question of theirs; 0 for now."""
        ...


class NeverQuiet:
    """Nobody has said when not to be told, or what to be sent, and nobody is sent a list."""

    async def quiet(self, approval: Approval, people: Collection[str]) -> Mapping[str, int]:  # noqa: ARG002 - see Considerate
        """See `DoNotDisturb`."""
        return {}

    async def direct(self, approval: Approval, people: Collection[str]) -> frozenset[str]:  # noqa: ARG002 - see Considerate
        """See `DoNotDisturb`."""
        return frozenset()

    async def left_out(
        self,
        approval: Approval,  # noqa: ARG002 - see Considerate
        found: Due,  # noqa: ARG002 - see Considerate
        people: Collection[str],  # noqa: ARG002 - see Considerate
    ) -> Mapping[str, int]:
        """See `DoNotDisturb`."""
        return {}

    async def later(self, approval: Approval, user_id: str) -> int:  # noqa: ARG002 - see Considerate
        """See `DoNotDisturb`."""
        return 0
