"""The world of the conformance cases, as the checks and the evaluation know it."""

from __future__ import annotations

from bot.policy.evaluation.context import PolicyWorld
from bot.ports.people import Person
from bot.rehearsal import world
from bot.rehearsal.world import BOT, World, WorldLookups
from tests.support.policies import WORLD

__all__ = ["BOT", "WorldDirectory", "policy_world"]

_WORLD = World(**WORLD)


def policy_world() -> PolicyWorld:
    """The tools and agents of the cases."""
    return world.policy_world(_WORLD)


class WorldDirectory:
    """Slack's answers about the people, user groups and channels of the cases.

    Attributes:
        is_down: Whether no look-up works.
        questions: The ids that were looked up.
    """

    def __init__(self, *, is_down: bool = False) -> None:
        self.is_down = is_down
        self.questions: list[str] = []

    async def person(self, user_id: str) -> Person:
        return await self._asked(user_id).person(user_id)

    async def group_members(self, group_id: str) -> frozenset[str]:
        return await self._asked(group_id).group_members(group_id)

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        return await self._asked(channel_id).channel_members(channel_id)

    def _asked(self, name: str) -> WorldLookups:
        self.questions.append(name)
        return WorldLookups(world=_WORLD, is_down=self.is_down)
