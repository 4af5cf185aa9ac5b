"""One bot that dies as planned, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

from bot.commands.call import end_in_time, stopped_by_signals
from bot.config.settings import Settings
from bot.main import Outside, start
from bot.observability import logs
from bot.scheduler import DueWork
from bot.slack.connect import reach_slack
from bot.webhooks import queues
from storage.errors import StorageError
from tests.chaos import agent
from tests.chaos.points import FAULT, Fragile, FragileSlack, Plan
from tests.contract.faults.driver import Faults, broken_connect
from tests.support.pace import hasty

PLAN = "CHAOS_PLAN"
WEBHOOK_WAITS = (timedelta(0), *[timedelta(seconds=1)] * 100)
"""Waits before each attempt of a webhook, in place of three days."""


async def main() -> None:
    """Run until SIGTERM, or until the plan says so."""
    planned = json.loads(os.environ[PLAN])
    files = {name: Path(planned[name]) for name in ("seen", "said", "failed", "died")}
    plan = Plan(**{**planned, **files})
    ours = {k: v for k, v in os.environ.items() if not k.startswith("CHAOS_")}
    settings = Settings.load(ours)
    logs.configure(settings.log, secrets=settings.secrets())
    agent.PLAN = plan
    faults = Faults(random=Random(plan.seed))  # noqa: S311 - not for secrets
    sqlite3.connect = cast(Any, broken_connect(faults))  # in this process alone
    cast(Any, queues).WAITS = WEBHOOK_WAITS
    outside = Outside(
        storage=cast(Any, Fragile(settings.make_storage(), plan)),
        slack=FragileSlack.around(await reach_slack(settings), plan),
        pacer=hasty(),
    )
    stop = stopped_by_signals(end_in_time)
    async with AsyncExitStack() as stack:
        bot = await start(settings, stack, outside=outside)
        faults.error, faults.chance = partial(any_error, plan, faults.random), plan.faults
        if plan.look_s:
            looking = asyncio.create_task(look_often(bot.sweep, plan.look_s))
            stack.callback(looking.cancel)
        await stop.wait()


def any_error(plan: Plan, random: Random) -> BaseException:
    """An exception as it may come out of any statement."""
    plan.at(FAULT)
    errors = (MemoryError(), sqlite3.OperationalError("disk I/O error"), RuntimeError("no thread"))
    return random.choice(errors)


async def look_often(sweep: DueWork, seconds: float) -> None:
    """Look for due work more often than the scheduler does, as more bots would."""
    while True:
        await asyncio.sleep(seconds)
        with suppress(StorageError):
            await sweep.tick()


def run() -> None:
    """Be a bot; the entry of a process of its own."""
    asyncio.run(main())
