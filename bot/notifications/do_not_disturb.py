"""Decide whether to notify a person now, later, or by digest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bot.approvals.model import Approval
from bot.notifications.digest_schedule import DigestSchedule
from bot.notifications.preferences import NotificationPreferences
from bot.policy.escalation import Due, Notice
from bot.policy.hours import quiet_end


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalDoNotDisturb:
    """Applies quiet hours, digests and preferences to notifications.

    Attributes:
        wishes: Notification preferences.
        plans: The digest schedule; None if digests are off.
    """

    wishes: NotificationPreferences
    plans: DigestSchedule | None = None

    async def quiet(self, approval: Approval, people: Collection[str]) -> Mapping[str, int]:
        """Return the people who are in quiet hours now, and until when."""
        return await self.wishes.quiet(approval, people)

    async def direct(self, approval: Approval, people: Collection[str]) -> frozenset[str]:
        """Return the people who want cards by direct message."""
        return await self.wishes.direct(approval, people)

    async def left_out(
        self, approval: Approval, found: Due, people: Collection[str]
    ) -> Mapping[str, int]:
        """Return the people whose message a digest replaces; see `DigestSchedule.covered`.

        A digest replaces reminders, first mentions that quiet hours delayed, and messages that a
        person's own quiet hours delayed. It never replaces escalation steps or messages that the
        person asked for.
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
        """Return when to remind a person of their own question; digests do not list it.

        Returns:
            The end of their quiet hours, or one hour after their digest; 0 for now, which
            counts as a reminder.
        """
        held = (await self.quiet(approval, [user_id])).get(user_id, 0)
        if held or self.plans is None:
            return held
        return await self.plans.reminded_later(approval, user_id)

    async def _has_slept(self, approval: Approval, user_id: str) -> bool:
        """Whether a person's own quiet hours, not a snooze, delayed the message."""
        until_ms = approval.snoozes.get(user_id)
        person = await self.wishes.of(user_id, team_id=approval.team_id)
        hours = await self.wishes.hours(person)
        if until_ms is None or hours is None:
            return False
        return quiet_end(hours, until_ms - 1) == until_ms
