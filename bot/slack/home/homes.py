"""Publish Home views when opened and when their data changes.

Slack reports when a person opens Home but not when they leave, so a Home counts as open for a
while. The list of open Homes is bounded and in memory only; it may be lost, because a Home is
rendered again when it is opened.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from aiohttp import ClientError
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.approvals.overview import HomeData, HomeDataReader
from bot.clock import milliseconds
from bot.errors import DeliveryError, DirectoryError, NotApproverError, UserFacingError
from bot.layout.action_ids import encode
from bot.layout.blocks import Block, context, plain
from bot.layout.modals import notice_modal
from bot.policy.demands import batch_digest
from bot.ports.people import Actor, Person
from bot.ports.process import Spawn
from bot.records.approval import Approval, Kind
from bot.records.switch import Freeze
from bot.slack.calls import slack_fault
from bot.slack.cards.listed import is_listed
from bot.slack.home.items import ShownNames, names_of
from bot.slack.home.state import PAGE, HomeState
from bot.slack.home.times import TimeReader
from bot.slack.home.view import HomePage, closed_view, home_view, list_blocks, places_of, shown_of
from bot.words import say, speaking
from storage.errors import StorageError

logger = logging.getLogger(__name__)

PACE = timedelta(seconds=5)
"""Minimum time between updates of a person's Home for changes."""
OPEN_FOR = timedelta(minutes=30)
"""Time after its last use for which a Home counts as open."""
STALE = timedelta(minutes=1)
"""Age at which an open Home is checked for changes by other processes."""
MOST_OPEN = 1_000
AT_A_TIME = 5
"""Number of stale Homes that one refresh checks."""
_MOST_TRIED = 4
_DISTRIBUTION = "countersign-bot"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenHome:
    """An open Home.

    Attributes:
        actor: Its reader.
        state: Selected list, filter and page.
        seen_ms: When the reader last used it.
        published_ms: When it was last published.
        is_dirty: Whether its data may have changed since.
        mark: Hash of the published view.
    """

    actor: Actor
    state: HomeState
    seen_ms: int
    published_ms: int = 0
    is_dirty: bool = False
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composer:
    """Renders Homes and lists from records.

    Attributes:
        overviews: Collects the data.
        channel_name: Returns a channel's name, without `#`.
        name_of: Returns the name of a person or user group.
        admins: Returns the workspace's admins, as far as known.
        team_id: The workspace where the app is installed.
        has_slack: Whether Slack accepts the bot's calls.
        freezes: Returns the freezes in force, oldest first.
        can_connect: Whether members make keys of their own.
    """

    overviews: HomeDataReader
    channel_name: Callable[[str], Awaitable[str]]
    name_of: Callable[[str], Awaitable[str]]
    admins: Callable[[], Awaitable[Sequence[Person]]]
    team_id: str
    has_slack: Callable[[], bool]
    freezes: Callable[[], Awaitable[Sequence[Freeze]]]
    can_connect: bool = False

    async def check(self, actor: Actor) -> Person:
        """Look up a person; refuse non-members. See `HomeDataReader.check`."""
        return await self.overviews.check(actor, team_id=self.team_id)

    async def home(self, actor: Actor, state: HomeState) -> dict[str, Any]:
        """Build a person's Home view, or the view with the reason why the person has none.

        Raises:
            DirectoryError: The person could not be looked up.
            StorageError: The database did not answer.
        """
        try:
            page = await self.page(actor, state)
        except NotApproverError as error:
            return closed_view(str(error))
        with speaking(page.overview.person.locale):
            return home_view(page)

    async def overview(self, actor: Actor) -> HomeData:
        """Collect a person's data; see `HomeDataReader.of`."""
        return await self.overviews.of(actor, team_id=self.team_id)

    async def waiting_items(self, actor: Actor) -> tuple[int, list[dict[str, Any]]]:
        """Count a person's pending approvals, and render their first page; see `page`."""
        page = await self.page(actor, HomeState())
        return len(page.overview.waiting), list_blocks(page)

    async def waiting_form(self, actor: Actor) -> Block:
        """Render a person's pending approvals as a modal, or why there is none.

        Raises:
            StorageError: The database did not answer.
        """
        try:
            person = await self.check(actor)
            with speaking(person.locale):
                count, items = await self.waiting_items(actor)
                words = say("home.waiting", n=count) if count else say("home.empty")
                lead = {"type": "section", "text": plain(words)}
                if count > PAGE:
                    words = say("home.range", **{"from": 1, "to": PAGE, "all": count})
                    items = [*items, context(plain(words))]
                return {**notice_modal(say("home.title"), words), "blocks": [lead, *items]}
        except UserFacingError as error:
            return notice_modal(say("home.title"), str(error))

    async def page(self, actor: Actor, state: HomeState) -> HomePage:
        """Collect the content of a person's Home; see `home`.

        Raises:
            NotApproverError: The person is not a member.
        """
        overview = await self.overview(actor)
        if overview.person.is_admin:
            vitals = await self.overviews.vitals(has_slack=self.has_slack())
            overview = replace(overview, vitals=vitals)
        zone = self.overviews.policy.timezone
        reader = TimeReader.of(overview.person, overview.at_ms, zone=zone)
        names = await self._names(overview, state, reader)
        return HomePage(
            overview=overview,
            state=state,
            names=names,
            reader=reader,
            batch=self._batch(overview),
            version=version(_DISTRIBUTION),
            freezes=await self.freezes(),
            can_connect=self.can_connect,
        )

    async def _names(self, overview: HomeData, state: HomeState, reader: TimeReader) -> ShownNames:
        return await names_of(
            shown_of(overview, state, reader),
            self.overviews.directory,
            self.channel_name,
            people=[delegation.delegate_id for delegation in overview.handed],
            places=places_of(overview, state),
        )

    def _batch(self, overview: HomeData) -> str:
        """Refer to the first card that the reader can decide together with others."""
        groups: dict[tuple[str, str], list[Approval]] = {}
        for approval in overview.waiting:
            if approval.kind is Kind.APPROVAL:
                groups.setdefault((approval.checkpoint_id, approval.terms.digest), []).append(
                    approval
                )
        several = [approvals for approvals in groups.values() if len(approvals) > 1]
        for group in several[:_MOST_TRIED]:
            able = [card for card in group[:_MOST_TRIED] if self._is_able(card)]
            if len(able) > 1:
                return encode(able[0].approval_id, able[0].digest)
        return ""

    def _is_able(self, approval: Approval) -> bool:
        return bool(batch_digest(approval)) and is_listed(approval)


class HomeViews:
    """Publishes and updates open Homes."""

    def __init__(
        self,
        composer: Composer,
        client: AsyncWebClient,
        spawn: Spawn,
        *,
        most: int = MOST_OPEN,
    ) -> None:
        self.composer = composer
        self._most = most
        self._client = client
        self._spawn = spawn
        self._open: OrderedDict[str, OpenHome] = OrderedDict()
        self._is_refreshing = False

    def __len__(self) -> int:
        return len(self._open)

    async def opened(self, actor: Actor, state: HomeState) -> None:
        """Publish a Home that was opened, unless just published."""
        look, now = self._open.get(actor.user_id), self._now()
        if look is not None and now - look.published_ms < milliseconds(PACE):
            # Its content is unchanged; changes are published with the next refresh.
            self._keep(replace(look, seen_ms=now, is_dirty=True))
            return
        await self.show(actor, state)

    async def show(self, actor: Actor, state: HomeState) -> None:
        """Publish a Home after a selection, at once."""
        self._keep(OpenHome(actor=actor, state=state, seen_ms=self._now()))
        await self._try_publish(actor.user_id)

    async def acted(self, actor: Actor) -> None:
        """Publish the open Home of a person who changed something, at once."""
        if actor.user_id in self._open:
            await self._try_publish(actor.user_id)

    def changed(self) -> None:
        """Mark all open Homes as possibly outdated."""
        for user_id, look in self._open.items():
            self._open[user_id] = replace(look, is_dirty=True)
        if self._open and not self._is_refreshing:
            self._spawn(self.refresh())

    async def refresh(self) -> None:
        """Publish open Homes that may have changed, one after the other, rate-limited."""
        if self._is_refreshing:
            return
        self._is_refreshing = True
        try:
            for user_id in self._due():
                if not await self._try_publish(user_id):
                    break  # the others are not due either
        finally:
            self._is_refreshing = False

    def _due(self) -> list[str]:
        now = self._now()
        gone = [
            name
            for name, open_home in self._open.items()
            if now - open_home.seen_ms > milliseconds(OPEN_FOR)
        ]
        for name in gone:
            del self._open[name]
        paced = [
            (name, open_home)
            for name, open_home in self._open.items()
            if now - open_home.published_ms >= milliseconds(PACE)
        ]
        dirty = [name for name, open_home in paced if open_home.is_dirty]
        stale = [
            name
            for name, open_home in paced
            if not open_home.is_dirty and now - open_home.published_ms >= milliseconds(STALE)
        ]
        return [*dirty, *stale[:AT_A_TIME]]

    async def _try_publish(self, user_id: str) -> bool:
        """Publish a Home; after an error, the next refresh retries."""
        try:
            await self._publish(user_id)
        except (DeliveryError, DirectoryError, StorageError) as error:
            logger.warning("Home tab update failed: %s", error, extra={"action": "home_not_drawn"})
            look = self._open.get(user_id)
            if look is not None:
                self._open[user_id] = replace(look, is_dirty=True)
            return False
        return True

    async def _publish(self, user_id: str) -> None:
        look = self._open.get(user_id)
        if look is None:
            return
        # Later changes mark it dirty again.
        self._open[user_id] = replace(look, is_dirty=False, published_ms=self._now())
        view = await self.composer.home(look.actor, look.state)
        mark = hashlib.sha256(json.dumps(view).encode()).hexdigest()
        if mark == look.mark:
            return
        try:
            await self._client.views_publish(user_id=user_id, view=view)
        except (SlackClientError, ClientError, OSError, TimeoutError) as error:
            raise DeliveryError("views.publish", slack_fault(error)) from error
        newest = self._open.get(user_id)
        if newest is not None:  # a newer selection may have been overwritten
            is_other = newest.state != look.state
            is_dirty = newest.is_dirty or is_other
            self._open[user_id] = replace(newest, mark="" if is_other else mark, is_dirty=is_dirty)

    def _keep(self, look: OpenHome) -> None:
        self._open[look.actor.user_id] = look
        self._open.move_to_end(look.actor.user_id)
        while len(self._open) > self._most:
            self._open.popitem(last=False)

    def _now(self) -> int:
        return self.composer.overviews.clock()
