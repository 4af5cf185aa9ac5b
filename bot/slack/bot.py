"""The bot as a whole: its parts, joined, and the process that it runs in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from aiohttp import ClientSession
from slack_bolt.async_app import AsyncApp

from bot.core.approvals import Approvals
from bot.core.scheduler import Sweep
from bot.core.tasks import Tasks
from bot.core.turns import Turns
from bot.core.work import CLICK_PATIENCE
from bot.observability.telemetry import NO_TELEMETRY, Telemetry
from bot.policy.force import PolicyInForce
from bot.ports import Clock
from bot.slack.intake.http import Answering
from bot.slack.ratelimit import SLACK_LIMITS, Limits
from storage.base import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Countersign:
    """The bot, joined together.

    Attributes:
        bolt: Takes Slack's payloads.
        storage: Where records are kept.
        approvals: Decisions.
        turns: The agents' turns.
        sweep: Finds due work.
        tasks: Work that runs.
        answering: Entered until an answer has left for Slack; what it spawns begins then.
        policy: The policy in force; None where none is judged by.
    """

    bolt: AsyncApp
    storage: Storage
    approvals: Approvals
    turns: Turns
    sweep: Sweep
    tasks: Tasks
    answering: Answering
    policy: PolicyInForce | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The process that the bot runs in.

    Attributes:
        owner: Name of this process in leases.
        clock: The time now.
        telemetry: Is told what happens.
        limits: What Slack allows, by method.
        retention: How long threads are kept; None for ever.
        era: Which life of the database this is, by `RestoreStore.era`; empty in the first.
        lookups: A session with open connections, for calls that only read: a click waits for
            them, and a new connection each time costs most of that. None: a session for each call.
        sleep: Waits, in seconds: before a start that could not be checked is tried again, and
            before and between the words of a status.
        patience: The longest that a click may take in all.
        policy: The policy in force; None where none is judged by.
        has_lists: Whether people are sent one list a day of what waits for them.
    """

    owner: str
    clock: Clock
    telemetry: Telemetry = NO_TELEMETRY
    limits: Limits = field(default_factory=lambda: SLACK_LIMITS)
    retention: timedelta | None = None
    era: str = ""
    lookups: ClientSession | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    patience: timedelta = CLICK_PATIENCE
    policy: PolicyInForce | None = None
    has_lists: bool = True
