"""The assembled bot."""

from __future__ import annotations

from dataclasses import dataclass

from slack_bolt.async_app import AsyncApp

from bot.approvals.service import Approvals
from bot.policy.current import LoadedPolicy
from bot.ports.programs import ProgramCalls
from bot.scheduler import DueWork
from bot.slack.intake.http import Answering
from bot.stores import Stores
from bot.tasks import Tasks
from bot.threads.turns import Turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Countersign:
    """The assembled bot.

    Attributes:
        bolt: Handles Slack's payloads.
        storage: The database.
        approvals: Use cases of approvals.
        turns: Turns of the agents.
        sweep: Finds due work.
        tasks: Background tasks.
        answering: Context manager that holds work back until a response is sent.
        policy: The policy in force, if any.
        programs: The use cases of programs; None without a door for them.
    """

    bolt: AsyncApp
    storage: Stores
    approvals: Approvals
    turns: Turns
    sweep: DueWork
    tasks: Tasks
    answering: Answering
    policy: LoadedPolicy | None = None
    programs: ProgramCalls | None = None
