"""Arrange the workspace: people, channels, faults of Slack, and the time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, Protocol
from zoneinfo import available_timezones

from slack_sandbox.api.limits import RateLimits
from slack_sandbox.delivery.dispatcher import Dispatcher
from slack_sandbox.delivery.events import Events
from slack_sandbox.delivery.faults import Effect, Faults
from slack_sandbox.delivery.socketmode import Farewell, SocketModeServer
from slack_sandbox.delivery.stats import Statistics, doubles
from slack_sandbox.errors import RefusedError
from slack_sandbox.web.pagehub import PageHub
from slack_sandbox.workspace.changes import BackgroundTasks
from slack_sandbox.workspace.records import (
    Features,
    Payload,
    SlackChannel,
    SlackUser,
    TokenKind,
    UserGroup,
)
from slack_sandbox.workspace.state import Workspace

MOST: Final = timedelta(days=30)
"""The longest skip."""


class Skippable(Protocol):
    """A clock that the sandbox and its app share."""

    @property
    def ahead_ms(self) -> int:
        """How far it was put forward in all."""
        ...

    def __call__(self) -> int:
        """The time that it shows, in milliseconds since 1970."""
        ...

    async def skip_to(self, at_ms: int) -> bool:
        """Put it forward; False when the app is in the middle of something."""
        ...

    async def next_due_ms(self) -> int | None:
        """When the app has something to do; None when it waits for nothing."""
        ...


async def clock_facts(clock: Skippable | None) -> Payload:
    """Say how late it is, in seconds, and when the next thing is due.

    Raises:
        RefusedError: Time goes by itself here.
    """
    if clock is None:
        raise RefusedError("no_time_skip")
    due_ms = await clock.next_due_ms()
    return {
        "now": clock() / 1_000,
        "ahead": clock.ahead_ms / 1_000,
        "next": None if due_ms is None else due_ms / 1_000,
    }


async def skip(clock: Skippable | None, seconds: float | None) -> None:
    """Let time pass: some seconds, or until the next thing is due.

    Raises:
        RefusedError: Time goes by itself here, nothing is due, or the app is at work.
    """
    if clock is None:
        raise RefusedError("no_time_skip")
    if seconds is None:
        at_ms = await clock.next_due_ms()
    else:
        at_ms = clock() + round(min(seconds, MOST.total_seconds()) * 1_000)
    if at_ms is None:
        raise RefusedError("nothing_due")
    if not await clock.skip_to(at_ms):
        raise RefusedError("app_busy")


class Arrangements:
    """The hands behind the scenes: for tests, for the control API and for the page's panel."""

    workspace: Workspace
    faults: Faults
    """The faults to strike; see `Faults.add`."""
    limits: RateLimits
    """Slack's rate limits; on unless `limits.is_on` is taken away."""
    time: Skippable | None
    """The clock that people may put forward; None where time goes by itself."""
    stats: Statistics
    """The counts of calls and deliveries."""
    _refused_tokens: dict[TokenKind, str]
    _hub: PageHub
    _events: Events
    _sockets: SocketModeServer
    _dispatcher: Dispatcher
    _tasks: BackgroundTasks

    # ---- people and channels ----------------------------------------------------------------

    def add_person(self, name: str, **facts: Any) -> SlackUser:
        """Add somebody; `facts` are further fields of `SlackUser`."""
        new_id = self.workspace.ids.new("U")
        given = {"id": new_id, "real_name": name.title(), "team_id": self.workspace.team_id}
        person = SlackUser(name=name, **{**given, **facts})
        self.workspace.people[person.id] = person
        self._hub.refresh()
        return person

    def deactivate(self, user: str, *, gone: bool = True) -> None:
        """Close somebody's account, or open it again; their open windows still work."""
        self.workspace.person(user).deleted = gone
        self._events.person_changed(user)
        self._hub.refresh()

    def set_guest(self, user: str, *, guest: bool) -> None:
        """Make somebody a guest of several channels, or a member."""
        person = self.workspace.person(user)
        person.is_restricted, person.is_ultra_restricted = guest, False
        self._events.person_changed(user)
        self._hub.refresh()

    def set_zone(self, user: str, zone: str | None) -> None:
        """Set somebody's time zone; None as for people whom Slack has not placed yet.

        Raises:
            RefusedError: `invalid_arguments`: there is no such time zone.
        """
        if zone is not None and zone not in available_timezones():
            raise RefusedError("invalid_arguments", ["zone"])
        self.workspace.person(user).tz = zone or ""
        self._events.person_changed(user)
        self._hub.refresh()

    def add_channel(self, name: str, members: Sequence[str], **facts: Any) -> SlackChannel:
        """Add a channel; `facts` are further fields of `SlackChannel`."""
        channel_id = self.workspace.ids.new("C")
        channel = SlackChannel(
            **{"id": channel_id, "name": name, "members": list(members), **facts}
        )
        self.workspace.channels[channel.id] = channel
        self._hub.refresh()
        return channel

    def add_group_message(self, members: Sequence[str]) -> SlackChannel:
        """Open a direct message among several people and the bot."""
        people = [self.workspace.person(member) for member in members]
        name = f"mpdm-{'--'.join(sorted(person.name for person in people))}-1"
        return self.add_channel(
            name, [*members, self.workspace.bot_user], is_private=True, is_mpim=True
        )

    def join(self, user: str, channel: str) -> None:
        """Let a person, or the bot, into a channel; people of other workspaces make it shared."""
        person, room = self.workspace.person(user), self.workspace.channels[channel]
        if person.id not in room.members:
            room.members.append(person.id)
            self._events.member_changed(user, room, joined=True)
        if person.team_id != self.workspace.team_id:
            room.is_ext_shared = True
        self._hub.refresh()

    def leave(self, user: str, channel: str) -> None:
        """Take a person, or the bot, out of a channel; nothing happens if they are not in it."""
        room = self.workspace.channels[channel]
        was_there = user in room.members
        room.members = [member for member in room.members if member != user]
        if was_there:
            self._events.member_changed(user, room, joined=False)
        self._hub.refresh()

    def group(self, name: str) -> UserGroup:
        """Return the user group with this id or handle.

        Raises:
            RefusedError: There is none.
        """
        for group in self.workspace.groups.values():
            if name in (group.id, group.handle):
                return group
        raise RefusedError("no_such_subteam")

    def join_group(self, user: str, group: str) -> None:
        """Put a person into a user group, by its id or handle."""
        person, user_group = self.workspace.person(user), self.group(group)
        if person.id not in user_group.members:
            user_group.members.append(person.id)
            self._events.group_changed(user_group, added=user)
        self._hub.refresh()

    def leave_group(self, user: str, group: str) -> None:
        """Take a person out of a user group; nothing happens if they are not in it."""
        user_group = self.group(group)
        was_there = user in user_group.members
        user_group.members = [member for member in user_group.members if member != user]
        if was_there:
            self._events.group_changed(user_group, removed=user)
        self._hub.refresh()

    def remove_bot(self, channel: str) -> None:
        """Take the bot out of a channel: it hears and says nothing there any more."""
        self.leave(self.workspace.bot_user, channel)

    def invite_bot(self, channel: str) -> None:
        """Let the bot into a channel again."""
        self.join(self.workspace.bot_user, channel)

    def has_bot(self, channel: str) -> bool:
        """Whether the bot is in a channel."""
        return self.workspace.bot_user in self.workspace.channels[channel].members

    def archive(self, channel: str) -> None:
        """Close a channel for writing."""
        self._set_archived(channel, archived=True)

    def unarchive(self, channel: str) -> None:
        """Open it again."""
        self._set_archived(channel, archived=False)

    def delete_message(self, channel: str, ts: str) -> None:
        """Delete any message, as an administrator may."""
        self.workspace.remove(self.workspace.message(channel, ts))

    async def remove(self, channel: str, ts: str) -> None:
        """Delete any message, as `delete_message` does."""
        self.delete_message(channel, ts)

    # ---- time -------------------------------------------------------------------------------

    async def skip_time(self, seconds: float | None = None) -> None:
        """Let time pass at once: some seconds, or until the next thing is due; see `skip`."""
        await skip(self.time, seconds)
        self._hub.refresh()

    # ---- misbehaviour -----------------------------------------------------------------------

    def fail(self, method: str, *, error: str | None = None, times: int = 1, **how: Any) -> str:
        """Let the next calls of a method go wrong; a short form of `faults.add`.

        Args:
            method: The method.
            error: Slack's name of the error; `ratelimited` gives HTTP 429.
            times: How many calls.
            **how: `drop=True` does what was asked and cuts the connection; `status` is an HTTP
                status to answer with; the rest are further fields of `Fault`.

        Returns:
            The id of the rule.
        """
        effect: Effect = "status" if "status" in how else "error"
        if how.pop("drop", False):
            effect = "lost_answer"
        elif error == "ratelimited":
            effect = "ratelimited"
        elif error is not None:
            how["error"] = error
        return self.faults.add(effect, method, times=times, **how)

    async def disconnect(
        self, reason: Farewell = "refresh_requested", *, grace: float | None = None
    ) -> None:
        """Close all sockets, as Slack does every few hours; see `SocketMode.disconnect`."""
        await self._sockets.disconnect(reason, grace=grace)

    def cut_connections(self, number: int | None = None) -> None:
        """Break one socket (the oldest is 0) or all, without a word."""
        self._sockets.cut(number)

    def spread_at_random(self, seed: int) -> None:
        """Give each envelope to any one of the sockets, not in turn."""
        self._sockets.seed(seed)

    def revoke_token(self, error: str = "token_revoked", *, of: TokenKind = "bot") -> None:
        """Refuse a token from now on.

        Args:
            error: How: `token_revoked`, `invalid_auth` or `account_inactive`.
            of: The bot's token, or the app-level one that opens sockets.
        """
        self._refused_tokens[of] = error
        self._hub.refresh()

    def restore_token(self, *, of: TokenKind = "bot") -> None:
        """Take a token again."""
        self._refused_tokens.pop(of, None)
        self._hub.refresh()

    def set_limits(self, *, on: bool) -> None:
        """Switch Slack's rate limits on or off."""
        self.limits.is_on = on
        self._hub.refresh()

    def expire_triggers(self) -> None:
        """Let all trigger ids that were given out be too old."""
        self.workspace.triggers.expire()

    def calm(self) -> None:
        """End all misbehaviour; what it has done stays."""
        self.faults.clear()
        self.limits.is_on = True
        self._refused_tokens.clear()
        self._sockets.spread = "in_turn"
        self._hub.refresh()

    # ---- what there is to see ---------------------------------------------------------------

    @property
    def features(self) -> Features:
        """The features that can be switched off."""
        return self.workspace.features

    @property
    def connections(self) -> int:
        """The number of open sockets."""
        return self._sockets.count

    @property
    def connections_so_far(self) -> int:
        """The number of sockets ever opened, closed ones included."""
        return self._sockets.opened

    @property
    def is_token_refused(self) -> bool:
        """Whether the bot's token is refused now."""
        return "bot" in self._refused_tokens

    @property
    def troubles(self) -> int:
        """The number of kinds of misbehaviour that are on."""
        return self.faults.kinds + (not self.limits.is_on) + self.is_token_refused

    @property
    def is_connected(self) -> bool:
        """Whether there is a way to the app: an open socket, or an address."""
        return self._dispatcher.is_open

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way to the app or to a page."""
        return self._tasks.count == 0

    @property
    def lost_events(self) -> list[Payload]:
        """Events that the app did not take, after all retries."""
        return self._dispatcher.lost

    def doubles(self) -> dict[str, int]:
        """Messages that stand more than once: their metadata as JSON, and how many there are."""
        channels = self.workspace.channels
        return doubles(
            message for channel in channels for message in self.workspace.public(channel)
        )

    def _set_archived(self, channel: str, *, archived: bool) -> None:
        self.workspace.channels[channel].is_archived = archived
        self._hub.refresh()
