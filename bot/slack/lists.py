"""Build Homes, lists, digests, and notification preferences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bot.approvals.model import Approval
from bot.approvals.overview import HomeDataReader
from bot.notifications.digest_schedule import DigestSchedule
from bot.notifications.digest_worker import DigestWorker
from bot.notifications.preferences import NotificationPreferences
from bot.people.access import Access
from bot.people.current_policy import CurrentPolicy
from bot.people.waiting import Waits
from bot.ports.people import Actor
from bot.slack.home.homes import Composer, HomeViews
from bot.slack.process import Process, SlackSide
from bot.stores import Stores
from bot.tasks import Tasks


@dataclass(kw_only=True)
class ListParts:
    """Lists of one bot."""

    slack: SlackSide
    storage: Stores
    process: Process
    tasks: Tasks
    policy: CurrentPolicy

    async def sees(self, approval: Approval, user_id: str) -> bool:
        """Whether a person may read the whole request now; see `WaitingLook.sees`."""
        directory, clock = self.slack.directory, self.process.clock
        waits = Waits(directory, self.policy, clock, self.storage.delegations)
        actor = Actor(user_id=user_id, team_id="")
        return await (await waits.look(actor, approval.team_id)).sees(approval)

    async def name_of(self, slack_id: str) -> str:
        """Return the name of a person, or the handle of a user group.

        Raises:
            DirectoryError: The look-up failed.
        """
        directory = self.slack.directory
        if slack_id.startswith("S"):
            return await directory.group_name(slack_id)
        return (await directory.person(slack_id)).name

    async def team_of(self, user_id: str) -> str:
        """Return a person's workspace; empty if Slack does not say.

        Raises:
            DirectoryError: The look-up failed.
        """
        return (await self.slack.directory.person(user_id)).own_team_id

    @cached_property
    def wishes(self) -> NotificationPreferences:
        """Notification preferences."""
        return NotificationPreferences(
            storage=self.storage,
            access=Access(self.slack.directory),
            policy=self.policy,
            clock=self.process.clock,
        )

    @cached_property
    def plans(self) -> DigestSchedule:
        """Schedule of digests."""
        return DigestSchedule(
            storage=self.storage,
            wishes=self.wishes,
            team_id=self.slack.team_id,
            clock=self.process.clock,
        )

    @cached_property
    def overviews(self) -> HomeDataReader:
        """Data of a person's Home."""
        return HomeDataReader(
            storage=self.storage,
            directory=self.slack.directory,
            policy=self.policy,
            clock=self.process.clock,
        )

    @cached_property
    def homes(self) -> HomeViews:
        """Open Homes, and requested lists."""
        composer = Composer(
            overviews=self.overviews,
            channel_name=self.slack.directory.channel_name,
            name_of=self.name_of,
            admins=self.slack.directory.admins,
            team_id=self.slack.team_id,
            has_slack=lambda: not self.slack.notifier.is_refused,
        )
        return HomeViews(composer, self.slack.client, self.tasks.spawn)

    @cached_property
    def digests(self) -> DigestWorker:
        """Sends digests."""
        return DigestWorker(
            storage=self.storage,
            overviews=self.overviews,
            plans=self.plans,
            board=self.slack.board(directory=self.slack.directory, policy=self.policy),
            team_id=self.slack.team_id,
            clock=self.process.clock,
        )
