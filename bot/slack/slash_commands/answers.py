"""The person who typed a command, and the private answer."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.approvals.delegation import Delegating
from bot.approvals.grants import Grants
from bot.approvals.overview import HomeData, HomeDataReader
from bot.errors import UserFacingError
from bot.freezes.requests import FreezeRequests
from bot.layout.blocks import Block
from bot.layout.text import clip_mrkdwn
from bot.notifications.preferences import NotificationPreferences
from bot.ports.people import Actor, Person
from bot.ports.process import Spawn
from bot.slack.home.times import TimeReader, zone_for
from bot.slack.modals import Window
from bot.slack.typed_times import read_for, read_until
from bot.words import say

_PERSON = re.compile(r"<@(?P<id>[UW][A-Z0-9]{1,30})(\|[^>]*)?>")
_MOST_QUOTED = 40


class TypoError(UserFacingError):
    """A word that cannot be parsed; the text shows the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedAnswer:
    """A private answer."""

    text: str
    blocks: Sequence[Block] = ()


class ListSource(Protocol):
    """Builds a person's lists; see `bot.slack.home.homes.Composer`."""

    @property
    def overviews(self) -> HomeDataReader:
        """Collects a person's data."""
        ...

    @property
    def channel_name(self) -> Callable[[str], Awaitable[str]]:
        """Returns a channel's name, without `#`."""
        ...

    @property
    def has_slack(self) -> Callable[[], bool]:
        """Returns whether Slack accepts the bot's calls."""
        ...

    async def check(self, actor: Actor) -> Person:
        """Look up a person; refuse non-members."""
        ...

    async def overview(self, actor: Actor) -> HomeData:
        """Collect a person's data."""
        ...

    async def waiting_items(self, actor: Actor) -> tuple[int, list[Block]]:
        """Count a person's pending approvals, and render their first page."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The person who typed a command, and the use cases of commands.

    Attributes:
        window: Opens a form; None for a command that Slack sent without a trigger.
        channel_id: Slack id of the channel where the command was typed; empty if unknown.
    """

    actor: Actor
    team_id: str
    composer: ListSource
    changed: Callable[[], None]
    delegating: Delegating
    grants: Grants
    preferences: NotificationPreferences
    freezing: FreezeRequests
    spawn: Spawn
    window: Window | None = None
    channel_id: str = ""

    async def reader(self) -> TimeReader:
        """Return the person's time format.

        Raises:
            NotApproverError: The person is not a member.
            DirectoryError: The person could not be looked up.
        """
        person = await self.composer.check(self.actor)
        overviews = self.composer.overviews
        return TimeReader.of(person, overviews.clock(), zone=overviews.policy.timezone)

    async def moment(self, words: Sequence[str]) -> int:
        """Parse a time that the person typed, in their time zone.

        Args:
            words: Such as `until fri 18:00`, or `for 3 days`.

        Raises:
            TypoError: The time is invalid.
            DirectoryError: Their time zone could not be looked up.
        """
        overviews = self.composer.overviews
        person = await overviews.directory.person(self.actor.user_id)
        zone, now = zone_for(person, overviews.policy.timezone), overviews.clock()
        first = words[0].lower() if words else ""
        try:
            if first == "for":
                return now + read_for(words[1:])
            rest = words[1:] if first == "until" else words
            return read_until(rest, now_ms=now, zone=zone)
        except ValueError as error:
            typed = quoted(" ".join(words))
            raise TypoError(say("command.date", text=typed) if words else when()) from error


def person_named(word: str) -> str:
    """Return the Slack user id of a mention.

    Raises:
        TypoError: It is no mention made by Slack.
    """
    match = _PERSON.fullmatch(word)
    if match is None:
        raise TypoError(say("command.person", name=quoted(word)))
    return match["id"]


def is_person(word: str) -> bool:
    """Whether a word is meant as a person."""
    return word.startswith(("@", "<@"))


def quoted(word: str) -> str:
    """Return a person's word for use in our text."""
    return clip_mrkdwn(word, _MOST_QUOTED)


def when() -> str:
    """Return the format of times."""
    return say("command.when")
