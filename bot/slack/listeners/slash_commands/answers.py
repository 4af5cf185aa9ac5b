"""The asker of a word, and the answer that they alone read."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.approvals.delegation import Delegating
from bot.approvals.grants import Grants
from bot.approvals.overview import HomeData, HomeDataReader
from bot.errors import UserFacingError
from bot.layout.blocks import Block
from bot.layout.text import clip_mrkdwn
from bot.notifications.preferences import NotificationPreferences
from bot.people.deadlines import read_for, read_until
from bot.ports.people import Actor, Person
from bot.ports.process import Spawn
from bot.slack.home.times import TimeReader, zone_for
from bot.words import say
from bot.words.mrkdwn import unescape

_PERSON = re.compile(r"<@(?P<id>[UW][A-Z0-9]{1,30})(\|[^>]*)?>")
_MOST_QUOTED = 40


class TypoError(UserFacingError):
    """A word that cannot be read; says how it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedAnswer:
    """An answer that one person reads."""

    text: str
    blocks: Sequence[Block] = ()


class ListSource(Protocol):
    """Makes the lists that one person sees: `bot.slack.home.homes.Composer`."""

    @property
    def overviews(self) -> HomeDataReader:
        """Finds what a person has to do with."""
        ...

    @property
    def channel_name(self) -> Callable[[str], Awaitable[str]]:
        """Gives the name of a channel, without `#`."""
        ...

    @property
    def has_slack(self) -> Callable[[], bool]:
        """Tells whether Slack takes the bot's calls."""
        ...

    async def check(self, actor: Actor) -> Person:
        """Refuse who has no say here; return who it is."""
        ...

    async def overview(self, actor: Actor) -> HomeData:
        """All that somebody has to do with."""
        ...

    async def waiting_items(self, actor: Actor) -> tuple[int, list[Block]]:
        """Count what waits for somebody, and draw the first page of it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Somebody who has typed a word, and what they may do by it."""

    actor: Actor
    team_id: str
    composer: ListSource
    changed: Callable[[], None]
    delegating: Delegating
    grants: Grants
    wishes: NotificationPreferences
    spawn: Spawn

    async def reader(self) -> TimeReader:
        """How they read times.

        Raises:
            NotApproverError: They have no say here.
            DirectoryError: Who they are could not be looked up.
        """
        person = await self.composer.check(self.actor)
        overviews = self.composer.overviews
        return TimeReader.of(person, overviews.clock(), zone=overviews.policy.timezone)

    async def moment(self, words: Sequence[str]) -> int:
        """The time that they typed, by the clock on their wall.

        Args:
            words: Such as `until fri 18:00`, or `for 3 days`.

        Raises:
            TypoError: It cannot be read.
            DirectoryError: Their zone could not be looked up.
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
    """The Slack user id that a mention names.

    Raises:
        TypoError: It is none that Slack made of a name.
    """
    found = _PERSON.fullmatch(word)
    if found is None:
        raise TypoError(say("command.person", name=quoted(word)))
    return found["id"]


def is_person(word: str) -> bool:
    """Whether a word is meant to name somebody."""
    return word.startswith(("@", "<@"))


def quoted(word: str) -> str:
    """A word of somebody's, as Slack sent it, inside a sentence of ours."""
    return clip_mrkdwn(unescape(word), _MOST_QUOTED)


def when() -> str:
    """How a time is written."""
    return say("command.when")
