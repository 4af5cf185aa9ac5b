"""Process-wide dependencies of the bot's parts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from aiohttp import ClientSession
from slack_sdk.web.async_client import AsyncWebClient

from bot.leases import CLICK_PATIENCE
from bot.observability.events import TellEvent, nobody
from bot.policy.current import LoadedPolicy
from bot.ports.notifier import BatchCards, Notifier
from bot.ports.process import Clock
from bot.ports.threads import BatchWords, Notices
from bot.records.approval import Approval
from bot.records.starts import ThreadStart
from bot.slack.calls import Poster
from bot.slack.directory import MAX_AGE, SlackDirectory
from bot.slack.messages.addressing import NameOf
from bot.slack.messages.posts import TeamOf
from bot.slack.messages.reactions import SignCalls
from bot.slack.ratelimit import Pacer
from bot.slack.side_messages.copies import Sees


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The process that runs the bot.

    Attributes:
        owner: Name of this process in leases.
        tell: Receives events for metrics.
        pacer: Keeps Slack's rate limits for calls that can wait.
        retention: How long threads are kept; None for ever.
        epoch: Identifies the database since its last restore, by `RestoreStore.epoch`; empty before
            any.
        lookups: Session with open connections for reading calls, which delay clicks. None opens a
            session for each call.
        directory: Looks people up; None creates a new one.
        lookup_age: Maximum age of directory data used for decisions.
        sleep: Waits for some seconds, for example before retries.
        beat: Waits for some seconds before a thread's lease is renewed.
        patience: Longest time to handle a click.
        policy: The policy in force, if any.
        model_timeout: How long a model may send nothing; None waits for ever.
        freeze_file: While this file exists, the process starts nothing; None for no file.
        tool_timeout: How long a call may run, unless its tool declares it; None waits for ever.
        personal_url: Public address of the API, for which members make keys of their own; empty if
            they may not.
    """

    owner: str
    clock: Clock
    tell: TellEvent = nobody
    pacer: Pacer = field(default_factory=Pacer)
    retention: timedelta | None = None
    epoch: str = ""
    lookups: ClientSession | None = None
    directory: SlackDirectory | None = None
    lookup_age: timedelta = MAX_AGE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    beat: Callable[[float], Awaitable[None]] = asyncio.sleep
    patience: timedelta = CLICK_PATIENCE
    policy: LoadedPolicy | None = None
    model_timeout: timedelta | None = None
    freeze_file: Path | None = None
    tool_timeout: timedelta | None = None
    personal_url: str = ""


ToolWords = Callable[[Sequence[Approval]], Awaitable[BatchWords]]
"""Returns a tool's text for several calls."""


class Messenger(Notifier, Poster, SignCalls, Protocol):
    """Posts and updates every message of an approval.

    Attributes:
        sees: Whether a person may read the whole request now.
        name_of: Looks up names of people who are not recipients; None mentions them.
        team_of: Looks up people's workspaces; None uses the app's.
    """

    sees: Sees
    name_of: NameOf | None
    team_of: TeamOf | None

    async def thread_link(self, place: Approval | ThreadStart) -> str:
        """Return the URL of a thread's first message; empty if unknown."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackSide:
    """The Slack clients and adapters of the bot."""

    team_id: str
    client: AsyncWebClient
    directory: SlackDirectory
    notifier: Messenger
    notices: Notices
    batches: Callable[[ToolWords], BatchCards]
