"""Directory: Slack's people, user groups and channels, cached for a short time.

Decisions use data of at most `MAX_AGE`; Slack events invalidate the cache. Concurrent look-ups
share one call, and calls respect Slack's rate limits. A failed look-up raises an error; the
directory never guesses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from aiohttp import ClientError
from cachetools import LRUCache
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.clock import milliseconds
from bot.errors import DirectoryError
from bot.leases import LOOKUP_PATIENCE
from bot.ports.people import Person
from bot.ports.process import Clock
from bot.slack.calls import may_pass, retry_after, slack_fault
from bot.slack.ratelimit import Pacer, TooSoonError

T = TypeVar("T")

_FAULTS = (SlackClientError, ClientError, OSError, TimeoutError)
_UNKNOWN = ("user_not_found", "user_not_visible", "users_not_found")

MAX_AGE = timedelta(minutes=10)
"""Maximum age of data used for decisions."""
NAME_AGE = timedelta(minutes=1)
"""Maximum age of a channel's name and visibility, and of the list of user groups."""
LATE = timedelta(seconds=2)
"""Time after which a slow call is repeated."""
MAX_KEPT = 10_000
PAUSES_S = (0.2, 0.4)
"""Delays in seconds before retries, unless Slack sets one."""
FEW = 3
"""Number of people up to which each is looked up; above it, all people are listed."""
PAGE = 1_000
"""Number of people or channel members per response."""
_ALL = ""
"""Cache key of a list of all groups or people."""
_OF_GROUPS = {"subteam_created", "subteam_updated", "subteam_members_changed"}
_OF_CHANNELS = {"member_joined_channel", "member_left_channel"}


class LookupCache(Generic[T]):
    """Cache by key. Loads each key once at a time, and again after its maximum age.

    Args:
        max_age: Maximum age of an entry, since its request.
    """

    def __init__(self, clock: Clock, max_age: timedelta) -> None:
        self._clock = clock
        self._max_age = max_age
        self._answers: LRUCache[str, tuple[int, T]] = LRUCache(MAX_KEPT)
        self._asked: dict[str, asyncio.Task[T]] = {}

    def known(self, key: str, max_age: timedelta | None = None) -> T | None:
        """Return the cached value; None if there is none or it is too old."""
        cached = self._answers.get(key)
        if cached is None:
            return None
        age_ms = self._clock() - cached[0]  # negative if the clock was set back
        is_fresh = 0 <= age_ms < milliseconds(self._max_age if max_age is None else max_age)
        return cached[1] if is_fresh else None

    async def get(
        self,
        key: str,
        load: Callable[[str], Coroutine[None, None, T]],
        max_age: timedelta | None = None,
    ) -> T:
        """Return the cached value, or load it.

        The load continues when its callers have timed out.

        Raises:
            DirectoryError: The look-up failed or timed out.
        """
        known = self.known(key, max_age)
        if known is not None:
            return known
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.get_running_loop().create_task(load(key))
            task.add_done_callback(partial(self._end, key, self._clock()))
        done, _ = await asyncio.wait({task}, timeout=LOOKUP_PATIENCE.total_seconds())
        if not done:
            raise DirectoryError("no answer in time", again=LATE)
        return task.result()

    def put(self, key: str, answer: T, *, asked_ms: int) -> None:
        """Cache a value from another source, unless a newer one is cached."""
        cached = self._answers.get(key)
        if cached is None or cached[0] <= asked_ms:
            self._answers[key] = (asked_ms, answer)

    def drop(self, key: str) -> None:
        """Invalidate a value, including a running load: it may predate a change."""
        self._answers.pop(key, None)
        self._asked.pop(key, None)

    def _end(self, key: str, asked_ms: int, task: asyncio.Task[T]) -> None:
        is_wanted = self._asked.get(key) is task
        # A dropped load is not cached: its data may be older than the change.
        if is_wanted:
            del self._asked[key]
        if not task.cancelled() and task.exception() is None and is_wanted:
            self.put(key, task.result(), asked_ms=asked_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Room:
    """A channel: name, bot's membership, visibility."""

    name: str
    is_ours: bool
    is_public: bool


class SlackDirectory:
    """Directory of one workspace.

    Args:
        client: Makes the calls.
        team_id: The workspace where the app is installed.
        pacer: Keeps Slack's rate limits.
        max_age: Maximum age of data used for decisions.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        *,
        team_id: str,
        clock: Clock,
        pacer: Pacer,
        max_age: timedelta = MAX_AGE,
    ) -> None:
        self._client = client
        self._team_id = team_id
        self._clock = clock
        self._pacer = pacer
        self._people: LookupCache[Person] = LookupCache(clock, max_age)
        self._lists: LookupCache[int] = LookupCache(clock, max_age)
        self._groups: LookupCache[Mapping[str, frozenset[str]]] = LookupCache(clock, max_age)
        self._channels: LookupCache[frozenset[str]] = LookupCache(clock, max_age)
        self._rooms: LookupCache[_Room] = LookupCache(clock, min(NAME_AGE, max_age))
        self._handles: Mapping[str, str] = {}
        self._admins: tuple[Person, ...] = ()
        self._one_by_one: list[int] = []
        self._changed: set[str] | None = None

    async def person(self, user_id: str) -> Person:
        return await self._people.get(user_id, self._load_person)

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        return await self._channels.get(channel_id, self._load_members)

    async def is_public(self, channel_id: str) -> bool:
        if channel_id.startswith("D"):
            return False
        return (await self._rooms.get(channel_id, self._load_room)).is_public

    async def group_members(self, group_id: str) -> frozenset[str]:
        groups = await self._groups.get(_ALL, self._load_groups)
        if group_id not in groups:  # it may be new
            groups = await self._groups.get(_ALL, self._load_groups, NAME_AGE)
        if group_id not in groups:
            raise DirectoryError("usergroups.list: no_such_subteam")
        return groups[group_id]

    async def admins(self) -> tuple[Person, ...]:
        """Return the active admins and owners, as far as the list of people has them.

        Raises:
            DirectoryError: The look-up failed.
        """
        await self._lists.get(_ALL, self._load_people)
        return tuple(
            admin
            for admin in self._admins
            if not (admin.is_deleted or admin.is_bot or admin.is_guest)
        )

    async def group_name(self, group_id: str) -> str:
        """Return the handle of a user group, with `@`.

        Raises:
            DirectoryError: The look-up failed, or the group does not exist.
        """
        await self.group_members(group_id)
        handle = self._handles.get(group_id, "")
        return f"@{handle}" if handle else ""

    async def channel_name(self, channel_id: str) -> str:
        """Return a channel's name, without `#`; empty for a direct message.

        Raises:
            DirectoryError: The look-up failed.
        """
        if channel_id.startswith("D"):
            return ""
        return (await self._rooms.get(channel_id, self._load_room)).name

    async def is_in(self, channel_id: str) -> bool:
        if channel_id.startswith("D"):
            return True
        try:
            return (await self._rooms.get(channel_id, self._load_room)).is_ours
        except DirectoryError as error:
            if error.detail.endswith("channel_not_found"):  # private, and the bot is not a member
                return False
            raise

    def hear(self, event: Mapping[str, Any]) -> bool:
        """Invalidate the data that an event reports as changed.

        Source: https://docs.slack.dev/reference/events (user_change, subteam_members_changed,
        subteam_updated, subteam_created, member_joined_channel, member_left_channel)

        Returns:
            Whether it was an event about people, groups or channel members.
        """
        match event:
            case {"type": "user_change", "user": {"id": str(user_id)}}:
                self._people.drop(user_id)
                if self._changed is not None:
                    self._changed.add(user_id)
            case {"type": str(kind)} if kind in _OF_GROUPS:
                self._groups.drop(_ALL)
            case {"type": str(kind), "channel": str(channel_id)} if kind in _OF_CHANNELS:
                self._channels.drop(channel_id)
            case _:
                return False
        return True

    async def _load_person(self, user_id: str) -> Person:
        """Look up one person; load the list of all people if many are looked up."""
        now = self._clock()
        since = now - milliseconds(MAX_AGE)
        self._one_by_one = [at_ms for at_ms in self._one_by_one if since < at_ms <= now]
        # One call for the list replaces many single calls, which Slack's rate limit would delay.
        if len(self._one_by_one) >= FEW:
            with suppress(DirectoryError):
                await self._lists.get(_ALL, self._load_people)
            if (listed := self._people.known(user_id)) is not None:
                return listed
        self._one_by_one.append(now)
        try:
            wanted = {"user": user_id, "include_locale": "true"}
            answer = await self._call("users.info", wanted)
        except DirectoryError as error:
            if error.detail.endswith(_UNKNOWN):  # unknown for good: not a person of this workspace
                return Person(user_id=user_id, team_id="", name=user_id, is_external=True)
            raise
        with _well_formed("users.info"):
            return self._person(user_id, answer["user"])

    async def _load_people(self, _: str) -> int:
        """Cache the people of the first page of the list; larger workspaces are cut."""
        asked_ms = self._clock()
        changed = self._changed = set()
        try:
            answer = await self._call("users.list", {"limit": PAGE, "include_locale": "true"})
        finally:
            self._changed = None
        with _well_formed("users.list"):
            people = {
                str(user["id"]): self._person(str(user["id"]), user) for user in answer["members"]
            }
        self._admins = tuple(user for user in people.values() if user.is_admin)
        for user_id, person in people.items():
            if user_id not in changed:
                self._people.put(user_id, person, asked_ms=asked_ms)
        return len(people)

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
            own_team_id=str(team_id),
            is_admin=bool(user.get("is_admin") or user.get("is_owner")),
        )

    async def _load_groups(self, _: str) -> Mapping[str, frozenset[str]]:
        answer = await self._call("usergroups.list", {"include_users": "true"})
        with _well_formed("usergroups.list"):
            listed = answer["usergroups"]
            self._handles = {str(group["id"]): str(group.get("handle") or "") for group in listed}
            return {str(group["id"]): _members_of(group) for group in answer["usergroups"]}

    async def _load_members(self, channel_id: str) -> frozenset[str]:
        members: set[str] = set()
        cursor = ""
        while True:
            wanted = {"channel": channel_id, "limit": PAGE, "cursor": cursor}
            answer = await self._call("conversations.members", wanted)
            with _well_formed("conversations.members"):
                members.update(_ids(answer["members"]))
                cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return frozenset(members)

    async def _load_room(self, channel_id: str) -> _Room:
        answer = await self._call("conversations.info", {"channel": channel_id})
        with _well_formed("conversations.info"):
            channel = answer["channel"]
            name = "" if channel.get("is_im") else str(channel["name"])
            # Direct messages have no `is_member`; only members can look them up.
            return _Room(
                name=name,
                is_ours=bool(channel.get("is_member", True)),
                is_public=channel.get("is_channel") is True and channel.get("is_private") is False,
            )

    async def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        with _well_formed(method):  # slack_sdk fails on responses that are not JSON
            return await self._try_call(method, params)

    async def _try_call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Make a rate-limited call; retry temporary errors while a caller waits."""
        now, patience = self._pacer.clock, milliseconds(LOOKUP_PATIENCE)
        until_ms = now() + patience
        for pause in (*PAUSES_S, None):
            left = timedelta(milliseconds=max(until_ms - now(), 0))
            try:
                await self._pacer.slot(method, "", patience=left)
                return await self._ask(method, params)
            except TooSoonError as error:
                raise DirectoryError(f"{method}: ratelimited", again=error.wait) from error
            except _FAULTS as error:
                asked = retry_after(error)
                if asked is not None:
                    self._pacer.hold(method, "", asked)
                if pause is None or not may_pass(error) or now() > until_ms:
                    detail = f"{method}: {slack_fault(error)}"
                    raise DirectoryError(detail, again=asked) from error
            if asked is None:
                await self._pacer.sleep(pause)
        raise AssertionError("the last try returns or raises")

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = await self._client.api_call(method, params=params)
        data = answer.data
        if not isinstance(data, dict):
            raise DirectoryError(f"{method}: an answer that is not JSON")
        return data


@contextmanager
def _well_formed(method: str) -> Iterator[None]:
    """Refuse a malformed response, such as one from a proxy."""
    try:
        yield
    except (AttributeError, KeyError, TypeError) as error:
        raise DirectoryError(f"{method}: an answer of another shape") from error


def _members_of(group: Mapping[str, Any]) -> frozenset[str]:
    """Return the members of a listed group; Slack may omit an empty list."""
    if "users" not in group and str(group["user_count"]) == "0":
        return frozenset()
    return frozenset(_ids(group["users"]))


def _ids(ids: object) -> Iterable[str]:
    if not isinstance(ids, list) or not all(isinstance(user_id, str) for user_id in ids):
        raise TypeError("not a list of ids")
    return ids
