"""The Homes that people look at: published when they open, and when something changes, paced.

Slack says when somebody opens their Home, and never when they leave it. So a Home counts as open
for a while; all that is kept of it is here, bounded, and may be lost: it is drawn anew when its
reader comes back.
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
from bot.people.batching import common_ruling
from bot.ports.people import Actor, Person
from bot.ports.process import Spawn
from bot.slack.calls import slack_fault
from bot.slack.home.items import ShownNames, names_of
from bot.slack.home.state import HomeState
from bot.slack.home.times import TimeReader
from bot.slack.home.view import HomePage, closed_view, home_view, list_blocks, places_of, shown_of
from bot.words import say, speaking
from storage.errors import StorageError
from storage.records import Approval, Kind

logger = logging.getLogger(__name__)

PACE = timedelta(seconds=5)
"""A person's Home is published for changes at most once in this time."""
OPEN_FOR = timedelta(minutes=30)
"""A Home counts as open for so long after its reader was seen there."""
STALE = timedelta(minutes=1)
"""An open Home is looked at again: another process may have changed something."""
MOST_OPEN = 1_000
AT_A_TIME = 5
"""Stale Homes that one refresh looks at."""
_MOST_TRIED = 4
_DISTRIBUTION = "countersign-bot"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenHome:
    """How a Home is looked at.

    Attributes:
        actor: Whose it is.
        state: What they chose to see.
        seen_ms: When they were last seen there.
        published_ms: When it was last published.
        is_dirty: Whether something may have changed since.
        mark: A digest of what was published.
    """

    actor: Actor
    state: HomeState
    seen_ms: int
    published_ms: int = 0
    is_dirty: bool = False
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composer:
    """Draws Homes and lists from what is on record.

    Attributes:
        overviews: Makes overviews.
        channel_name: The name of a channel, without `#`.
        name_of: The name of a person, or the handle of a user group.
        admins: The admins of the workspace, as far as they are known.
        lists: Whether the form about several requests lists a request.
        team_id: The workspace where the app is installed.
        has_slack: Whether Slack takes the bot's calls.
    """

    overviews: HomeDataReader
    channel_name: Callable[[str], Awaitable[str]]
    name_of: Callable[[str], Awaitable[str]]
    admins: Callable[[], Awaitable[Sequence[Person]]]
    lists: Callable[[Approval], bool]
    team_id: str
    has_slack: Callable[[], bool]

    async def check(self, actor: Actor) -> Person:
        """Refuse who has no say here; return who it is. See `HomeDataReader.check`."""
        return await self.overviews.check(actor, team_id=self.team_id)

    async def home(self, actor: Actor, state: HomeState) -> dict[str, Any]:
        """Draw the Home of somebody; of who has no say here, the reason.

        Raises:
            DirectoryError: Who they are could not be looked up.
            StorageError: The database did not answer.
        """
        try:
            page = await self.page(actor, state)
        except NotApproverError as error:
            return closed_view(str(error))
        with speaking(page.overview.person.locale):
            return home_view(page)

    async def overview(self, actor: Actor) -> HomeData:
        """All that somebody has to do with; see `HomeDataReader.of`."""
        return await self.overviews.of(actor, team_id=self.team_id)

    async def waiting_items(self, actor: Actor) -> tuple[int, list[dict[str, Any]]]:
        """Count what waits for somebody, and draw the first page of it; see `page`."""
        page = await self.page(actor, HomeState())
        return len(page.overview.waiting), list_blocks(page)

    async def waiting_form(self, actor: Actor) -> Block:
        """Draw what waits for somebody as a form; or say why there is nothing to be seen.

        Raises:
            StorageError: The database did not answer.
        """
        try:
            person = await self.check(actor)
            with speaking(person.locale):
                count, items = await self.waiting_items(actor)
                words = say("home.waiting", n=count) if count else say("home.empty")
                lead = {"type": "section", "text": plain(words)}
                if count > len(items):
                    words = say("home.range", **{"from": 1, "to": len(items), "all": count})
                    items = [*items, context(plain(words))]
                return {**notice_modal(say("home.title"), words), "blocks": [lead, *items]}
        except UserFacingError as error:
            return notice_modal(say("home.title"), str(error))

    async def page(self, actor: Actor, state: HomeState) -> HomePage:
        """Collect what the Home of somebody is drawn of; see `home`.

        Raises:
            NotApproverError: They have no say here.
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
        )

    async def _names(self, overview: HomeData, state: HomeState, reader: TimeReader) -> ShownNames:
        return await names_of(
            shown_of(overview, state, reader),
            self.overviews.directory,
            self.channel_name,
            people=[one.delegate_id for one in overview.handed],
            places=places_of(overview, state),
        )

    def _batch(self, overview: HomeData) -> str:
        """Refer to the first card that its reader can decide together with another one."""
        groups: dict[tuple[str, str], list[Approval]] = {}
        for one in overview.waiting:
            if one.kind is Kind.APPROVAL and one.terms_json:
                groups.setdefault((one.checkpoint_id, one.terms_json), []).append(one)
        several = [found for found in groups.values() if len(found) > 1]
        for found in several[:_MOST_TRIED]:
            able = [one for one in found[:_MOST_TRIED] if self._is_able(one)]
            if len(able) > 1:
                return encode(able[0].approval_id, able[0].digest)
        return ""

    def _is_able(self, approval: Approval) -> bool:
        return bool(common_ruling(approval)) and self.lists(approval)


class HomeViews:
    """The open Homes."""

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
        """Publish the Home that somebody opens; nothing if that was done a moment ago."""
        look, now = self._open.get(actor.user_id), self._now()
        if look is not None and now - look.published_ms < milliseconds(PACE):
            # It stands there as it was; what changes is published with the next refresh.
            self._keep(replace(look, seen_ms=now, is_dirty=True))
            return
        await self.show(actor, state)

    async def show(self, actor: Actor, state: HomeState) -> None:
        """Publish the Home of somebody who asks for a list, a filter, or another page; at once."""
        self._keep(OpenHome(actor=actor, state=state, seen_ms=self._now()))
        await self._try_publish(actor.user_id)

    async def acted(self, actor: Actor) -> None:
        """Publish the open Home of somebody who has just changed something; at once."""
        if actor.user_id in self._open:
            await self._try_publish(actor.user_id)

    def changed(self) -> None:
        """Something has changed: all open Homes may show what is no longer so."""
        for user_id, look in self._open.items():
            self._open[user_id] = replace(look, is_dirty=True)
        if self._open and not self._is_refreshing:
            self._spawn(self.refresh())

    async def refresh(self) -> None:
        """Publish, one after the other, the open Homes that may have changed, paced."""
        if self._is_refreshing:
            return
        self._is_refreshing = True
        try:
            for user_id in self._due():
                if not await self._try_publish(user_id):
                    break  # so it is with the others
        finally:
            self._is_refreshing = False

    def _due(self) -> list[str]:
        now = self._now()
        gone = [
            name for name, one in self._open.items() if now - one.seen_ms > milliseconds(OPEN_FOR)
        ]
        for name in gone:
            del self._open[name]
        paced = [
            (name, one)
            for name, one in self._open.items()
            if now - one.published_ms >= milliseconds(PACE)
        ]
        dirty = [name for name, one in paced if one.is_dirty]
        stale = [
            name
            for name, one in paced
            if not one.is_dirty and now - one.published_ms >= milliseconds(STALE)
        ]
        return [*dirty, *stale[:AT_A_TIME]]

    async def _try_publish(self, user_id: str) -> bool:
        """Publish a Home; what keeps it from that may have passed at the next refresh."""
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
        # What changes from here on makes it dirty again.
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
        if newest is not None:  # what they chose meanwhile may have been overtaken by this
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
