"""The world of the conformance cases, as the checks and the evaluation know it."""

from __future__ import annotations

from bot.errors import DirectoryError
from bot.policy.evaluation.context import PolicyWorld
from bot.ports.people import Person
from tests.support.judging import tool_facts
from tests.support.policies import WORLD


def policy_world() -> PolicyWorld:
    """The tools and agents of the cases."""
    return PolicyWorld(
        tools=tuple(tool_facts(name) for name in WORLD["tools"]),
        agents=frozenset(WORLD["agents"]),
    )


BOT = "U0COUNTER"
"""The bot's user in the world."""


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
        self._note(user_id)
        flags = WORLD["people"].get(user_id)
        if flags is None:  # as Slack's directory answers about a user who is nobody's
            return Person(user_id=user_id, team_id="", name=user_id, is_external=True)
        return Person(
            user_id=user_id,
            team_id="T1",
            name=user_id,
            is_bot=flags.get("bot", False),
            is_guest=flags.get("guest", False),
            is_external=flags.get("external", False),
            is_deleted=flags.get("deactivated", False),
        )

    async def group_members(self, group_id: str) -> frozenset[str]:
        self._note(group_id)
        if group_id not in WORLD["usergroups"]:
            raise DirectoryError("usergroups.users.list: no_such_subteam")
        return frozenset(WORLD["usergroups"][group_id])

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        self._note(channel_id)
        if channel_id not in WORLD["channels"]:
            raise DirectoryError("conversations.members: channel_not_found")
        members = WORLD["channels"][channel_id]
        people = set(members) if isinstance(members, list) else set()
        return frozenset(people | ({BOT} if channel_id in WORLD["bot_in"] else set()))

    def _note(self, name: str) -> None:
        self.questions.append(name)
        if self.is_down:
            raise DirectoryError("no answer in time")
