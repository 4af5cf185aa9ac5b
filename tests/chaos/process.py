"""One bot that dies as planned, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from bot.config.settings import Settings
from bot.main import Outside, start
from bot.observability import logs
from bot.slack.reach import reach_slack
from tests.chaos import agent
from tests.chaos.points import Fragile, FragileSlack, Plan

PLAN = "CHAOS_PLAN"


async def main() -> None:
    """Run until SIGTERM, or until the plan says so."""
    planned = json.loads(os.environ[PLAN])
    files = {name: Path(planned[name]) for name in ("seen", "said")}
    plan = Plan(**{**planned, **files})
    ours = {k: v for k, v in os.environ.items() if not k.startswith("CHAOS_")}
    settings = Settings.load(ours)
    logs.configure(settings.log, secrets=settings.secrets())
    agent.PLAN = plan
    outside = Outside(
        storage=Fragile(settings.make_storage(), plan),
        slack=FragileSlack.around(await reach_slack(settings), plan),
        limits={},  # two hundred threads would take an hour
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with AsyncExitStack() as stack:
        await start(settings, stack, outside=outside)
        await stop.wait()


def run(environ: dict[str, str], log: Path) -> None:
    """Be a bot; the entry of a process that was forked from one with all modules loaded.

    Args:
        environ: Its whole environment.
        log: A file for what it prints.
    """
    os.environ.clear()
    os.environ.update(environ)
    with log.open("wb", buffering=0) as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    asyncio.run(main())
