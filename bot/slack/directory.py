"""Looks people up in Slack, anew for each decision; never guesses when a look-up fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Generic, TypeVar

from aiohttp import ClientError
from cachetools import TTLCache
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.clock import milliseconds
from bot.core.work import LOOKUP_PATIENCE
from bot.errors import DirectoryError
from bot.ports.people import Directory, Person
from bot.ports.process import Clock
from bot.slack.calls import may_pass, retry_after, slack_fault

T = TypeVar("T")

_FAULTS = (SlackClientError, ClientError, OSError, TimeoutError)
_UNKNOWN = ("user_not_found", "user_not_visible", "users_not_found")

FRESH = timedelta(seconds=60)
"""The oldest that facts may be which decide nothing: names, and who writes a message."""
MAX_KEPT = 10_000
PAUSES_S = (0.2, 0.4)
"""The pauses before the second and the third try, unless Slack says how long to wait."""


class Fresh(Generic[T]):
    """Values by key, each kept for a minute.

    Args:
        clock: The time now.
    """

    def __init__(self, clock: Clock) -> None:
        self._kept: TTLCache[str, T] = TTLCache(MAX_KEPT, ttl=milliseconds(FRESH), timer=clock)

    async def get(self, key: str, load: Callable[[str], Awaitable[T]]) -> T:
        """The kept value, or a newly loaded one; what `load` raises is not kept."""
        with suppress(KeyError):
            return self._kept[key]
        value = await load(key)
        self._kept[key] = value
        return value


class Shared(Generic[T]):
    """Look-ups that are on their way: who asks meanwhile gets the same answer. None is kept."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[T]] = {}

    async def get(self, key: str, load: Callable[[str], Coroutine[None, None, T]]) -> T:
        """The value, as it is loaded now; nobody who stops waiting stops it for the others."""
        task = self._running.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(load(key))
            self._running[key] = task
            task.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(task)

    def _end(self, key: str, task: asyncio.Task[T]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # nobody may wait for it any more


class SlackDirectory:
    """The directory of one workspace.

    Args:
        client: Makes the calls; with a short time-out, as people wait for the answer.
        team_id: The workspace where the app is installed.
        clock: The time now.
        sleep: Waits for some seconds, before a call is tried again.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        *,
        team_id: str,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._team_id = team_id
        self._sleep = sleep
        self._people: Shared[Person] = Shared()
        self._channels: Shared[frozenset[str]] = Shared()
        self._groups: Shared[frozenset[str]] = Shared()
        self._writers: Fresh[Person] = Fresh(clock)
        self._channel_names: Shared[str] = Shared()
        self._names: Fresh[str] = Fresh(clock)

    async def person(self, user_id: str) -> Person:
        return await self._people.get(user_id, self._load_person)

    async def writer(self, user_id: str) -> Person:
        return await self._writers.get(user_id, self.person)

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        return await self._channels.get(channel_id, self._load_members)

    async def group_members(self, group_id: str) -> frozenset[str]:
        return await self._groups.get(group_id, self._load_group)

    async def channel_name(self, channel_id: str) -> str:
        """The name of a channel, without `#`; empty for a direct message, which has none.

        Raises:
            DirectoryError: It could not be looked up.
        """
        if channel_id.startswith("D"):
            return ""
        return await self._names.get(channel_id, self._share_name)

    async def _share_name(self, channel_id: str) -> str:
        return await self._channel_names.get(channel_id, self._load_name)

    async def _load_person(self, user_id: str) -> Person:
        try:
            wanted = {"user": user_id, "include_locale": "true"}
            answer = await self._call("users.info", wanted)
        except DirectoryError as error:
            if error.detail.endswith(_UNKNOWN):  # will never be known: nobody of ours
                return Person(user_id=user_id, team_id="", name=user_id, is_external=True)
            raise
        with _well_formed("users.info"):
            return self._person(user_id, answer["user"])

    def _person(self, user_id: str, user: dict[str, Any]) -> Person:
        grid = user.get("enterprise_user") or {}
        teams = grid.get("teams") or []
        team_id = user.get("team_id") or ""
        is_home = team_id == self._team_id or self._team_id in teams
        profile = user.get("profile") or {}
        return Person(
            user_id=user_id,
            team_id=self._team_id if is_home else team_id,
            name=profile.get("display_name") or user.get("real_name") or user_id,
            is_bot=bool(user.get("is_bot")) or user_id == "USLACKBOT",
            is_guest=bool(user.get("is_restricted") or user.get("is_ultra_restricted")),
            is_external=bool(user.get("is_stranger")) or not is_home,
            is_deleted=bool(user.get("deleted")),
            timezone=str(user.get("tz") or ""),
            locale=str(user.get("locale") or ""),
            enterprise_id=str(grid.get("enterprise_id") or ""),
            is_admin=bool(user.get("is_admin") or user.get("is_owner")),
        )

    async def _load_members(self, channel_id: str) -> frozenset[str]:
        members: set[str] = set()
        cursor = ""
        while True:
            answer = await self._call(
                "conversations.members", {"channel": channel_id, "limit": 1000, "cursor": cursor}
            )
            with _well_formed("conversations.members"):
                members.update(_ids(answer["members"]))
                cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return frozenset(members)

    async def _load_name(self, channel_id: str) -> str:
        answer = await self._call("conversations.info", {"channel": channel_id})
        with _well_formed("conversations.info"):
            channel = answer["channel"]
            return "" if channel.get("is_im") else str(channel["name"])

    async def _load_group(self, group_id: str) -> frozenset[str]:
        answer = await self._call("usergroups.users.list", {"usergroup": group_id})
        with _well_formed("usergroups.users.list"):
            return frozenset(_ids(answer["users"]))

    async def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        with _well_formed(method):  # slack_sdk itself stumbles over answers that are not JSON
            return await self._try_call(method, params)

    async def _try_call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Make a call; again, while somebody may still wait, after a fault that may pass."""
        now = asyncio.get_running_loop().time
        until = now() + LOOKUP_PATIENCE.total_seconds()
        for pause in (*PAUSES_S, None):
            try:
                return await self._ask(method, params)
            except _FAULTS as error:
                asked = retry_after(error)
                wait = asked.total_seconds() if asked is not None else pause
                if pause is None or wait is None or not may_pass(error) or now() + wait > until:
                    raise DirectoryError(f"{method}: {slack_fault(error)}") from error
            await self._sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = await self._client.api_call(method, params=params)
        data = answer.data
        if not isinstance(data, dict):
            raise DirectoryError(f"{method}: an answer that is not JSON")
        return data


class RecentDirectory:
    """A directory as it was in the last minute: for lists that people are shown, never to decide.

    Args:
        directory: Is asked when nothing is known, or what is known is too old.
        clock: The time now.
    """

    def __init__(self, directory: Directory, clock: Clock) -> None:
        self._directory = directory
        self._people: Fresh[Person] = Fresh(clock)
        self._channels: Fresh[frozenset[str]] = Fresh(clock)
        self._groups: Fresh[frozenset[str]] = Fresh(clock)

    async def person(self, user_id: str) -> Person:
        return await self._people.get(user_id, self._directory.person)

    async def writer(self, user_id: str) -> Person:
        return await self.person(user_id)

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        return await self._channels.get(channel_id, self._directory.channel_members)

    async def group_members(self, group_id: str) -> frozenset[str]:
        return await self._groups.get(group_id, self._directory.group_members)


@contextmanager
def _well_formed(method: str) -> Iterator[None]:
    """Refuse an answer that has not Slack's shape, such as one of a proxy on the way."""
    try:
        yield
    except (AttributeError, KeyError, TypeError) as error:
        raise DirectoryError(f"{method}: an answer of another shape") from error


def _ids(found: object) -> list[str]:
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TypeError("not a list of ids")
    return found
