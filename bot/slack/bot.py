"""The bot as a whole: its parts, joined."""

from __future__ import annotations

from dataclasses import dataclass

from slack_bolt.async_app import AsyncApp

from bot.approvals.service import Approvals
from bot.policy.current import LoadedPolicy
from bot.scheduler import DueWork
from bot.slack.intake.http import Answering
from bot.tasks import Tasks
from bot.threads.turns import Turns
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
    sweep: DueWork
    tasks: Tasks
    answering: Answering
    policy: LoadedPolicy | None = None
