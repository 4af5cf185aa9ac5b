"""The surroundings of the bot's parts: the process that it runs in, and Slack."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from aiohttp import ClientSession
from slack_sdk.web.async_client import AsyncWebClient

from bot.leases import CLICK_PATIENCE
from bot.notifications.digest import DigestBoard
from bot.observability.events import TellEvent, nobody
from bot.people.current_policy import CurrentPolicy
from bot.policy.current import LoadedPolicy
from bot.ports.batches import BatchCards
from bot.ports.notifier import Notifier
from bot.ports.people import Directory
from bot.ports.process import Clock
from bot.ports.threads import Notices
from bot.ports.tools import BatchWords
from bot.slack.calls import Poster
from bot.slack.directory import MAX_AGE, SlackDirectory
from bot.slack.messages.addressing import NameOf
from bot.slack.messages.posts import TeamOf
from bot.slack.messages.reactions import SignCalls
from bot.slack.ratelimit import Pacer
from bot.slack.side_messages.copies import Sees
from storage.records import Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The process that the bot runs in.

    Attributes:
        owner: Name of this process in leases.
        clock: The time now.
        tell: Takes the events of its work.
        pacer: Keeps Slack's rate limits, for all calls that can wait.
        retention: How long threads are kept; None for ever.
        era: Which life of the database this is, by `RestoreStore.era`; empty in the first.
        lookups: A session with open connections, for calls that only read: a click waits for
            them, and a new connection each time costs most of that. None: a session for each call.
        directory: Where people are looked up; None: a new one.
        lookup_age: The oldest that a fact of the directory may be which decides.
        sleep: Waits, in seconds: before a start that could not be checked is tried again, before
            and between the words of a status, and before a card of several is drawn once more.
        beat: Waits, in seconds: before the lease of a thread is prolonged.
        patience: The longest that a click may take in all.
        policy: The policy in force; None where none is judged by.
        has_lists: Whether people are sent one list a day of what waits for them.
        model_timeout: How long a model may send nothing; None waits for ever.
    """

    owner: str
    clock: Clock
    tell: TellEvent = nobody
    pacer: Pacer = field(default_factory=Pacer)
    retention: timedelta | None = None
    era: str = ""
    lookups: ClientSession | None = None
    directory: SlackDirectory | None = None
    lookup_age: timedelta = MAX_AGE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    beat: Callable[[float], Awaitable[None]] = asyncio.sleep
    patience: timedelta = CLICK_PATIENCE
    policy: LoadedPolicy | None = None
    has_lists: bool = True
    model_timeout: timedelta | None = None


ToolWords = Callable[[Sequence[Approval]], Awaitable[BatchWords]]
"""Asks the tool of some calls for its words for all of them."""


class MakeBoard(Protocol):
    """Makes who shows lists of what waits in direct messages."""

    def __call__(self, *, directory: Directory, policy: CurrentPolicy) -> DigestBoard:
        """Return it."""
        ...


class Messenger(Notifier, Poster, SignCalls, Protocol):
    """The notifier, with what stands beside the cards.

    Attributes:
        sees: Whether somebody may read all of a request now.
        name_of: Looks up the names of people who are spoken of; None leaves mentions of them.
        team_of: Looks up the workspaces of people; None takes the app's for theirs.
    """

    sees: Sees
    name_of: NameOf | None
    team_of: TeamOf | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackSide:
    """Slack, as the parts reach it."""

    team_id: str
    client: AsyncWebClient
    directory: SlackDirectory
    notifier: Messenger
    notices: Notices
    batches: Callable[[ToolWords], BatchCards]
    board: MakeBoard
