"""The consideration for people: who sleeps, who has it on a list, who wants cards themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bot.notifications.digest_schedule import DigestSchedule
from bot.notifications.preferences import NotificationPreferences
from bot.people.claims import read_snoozes
from bot.policy.escalation import Due, Notice
from bot.policy.hours import quiet_end
from storage.records import Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalDoNotDisturb:
    """Says who is not to be told of something now.

    Attributes:
        wishes: When people are not to be messaged.
        plans: The lists that people are sent; None where nobody is sent one.
    """

    wishes: NotificationPreferences
    plans: DigestSchedule | None = None

    async def quiet(self, approval: Approval, people: Collection[str]) -> Mapping[str, int]:
        """Find out who is not to be disturbed now, and until when."""
        return await self.wishes.quiet(approval, people)

    async def direct(self, approval: Approval, people: Collection[str]) -> frozenset[str]:
        """Find out who wants cards by direct message; see `NotificationPreferences.direct`."""
        return await self.wishes.direct(approval, people)

    async def left_out(
        self, approval: Approval, found: Due, people: Collection[str]
    ) -> Mapping[str, int]:
        """Find out for whom a list takes the place of a message; see `DigestSchedule.covered`.

        A list takes the place of reminders, of first mentions that quiet hours have delayed, and of
        what waited for the end of somebody's own; never of what they asked for, or of a step.

        Args:
            approval: What it is about.
            found: What is due.
            people: Slack user ids of all whom the message is for.
        """
        if self.plans is None:
            return {}
        match found.notice:
            case Notice.REMINDER:
                return await self.plans.covered(approval, people)
            case Notice.MENTION:
                return await self.plans.covered(approval, people, is_first=True)
            case Notice.SNOOZE_OVER:
                slept = [one for one in people if await self._has_slept(approval, one)]
                return await self.plans.covered(approval, slept)
            case _:
                return {}

    async def later(self, approval: Approval, user_id: str) -> int:
        """Find out when to remind somebody of a question that is theirs alone; it is on no list.

        Args:
            approval: The question.
            user_id: Who is to answer it.

        Returns:
            The end of their quiet hours, or of the hour after their list; 0 for now: then they
            count as reminded.
        """
        held = (await self.quiet(approval, [user_id])).get(user_id, 0)
        if held or self.plans is None:
            return held
        return await self.plans.reminded_later(approval, user_id)

    async def _has_slept(self, approval: Approval, user_id: str) -> bool:
        """Whether somebody was left in peace by their own hours, not by a snooze."""
        until_ms = read_snoozes(approval.snoozes_json).get(user_id)
        person = await self.wishes.of(user_id, team_id=approval.team_id)
        hours = await self.wishes.hours(person)
        if until_ms is None or hours is None:
            return False
        return quiet_end(hours, until_ms - 1) == until_ms
