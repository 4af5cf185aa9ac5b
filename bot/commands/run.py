"""`countersign run`: the bot, until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
from typing import Protocol

from bot.clock import MovableClock
from bot.commands.call import Call, stopped_by_signals
from bot.config.settings import Settings


class RunBot(Protocol):
    """Runs the bot until `stop` is set."""

    async def __call__(
        self,
        settings: Settings,
        *,
        stop: asyncio.Event,
        ready: asyncio.Event | None = None,
        demo: MovableClock | None = None,
    ) -> None:
        """Return when the bot has stopped; set `ready` when it takes messages.

        With `demo`, it goes by that clock, which people put forward.
        """
        ...


async def execute(call: Call) -> None:
    """Run the command."""
    await bot_of(call)(Settings.load(call.environ), stop=stopped_by_signals())


def bot_of(call: Call) -> RunBot:
    """Return the function that runs the bot of a call."""
    return call.run_bot or run_bot


async def run_bot(
    settings: Settings,
    *,
    stop: asyncio.Event,
    ready: asyncio.Event | None = None,
    demo: MovableClock | None = None,
) -> None:
    """Run the bot with its log; see `RunBot`."""
    # It takes a second; wrong settings are said without it.
    from bot import main  # noqa: PLC0415
    from bot.observability import logs  # noqa: PLC0415

    # What is loaded stays until the end. To look through it for garbage takes a tenth of a second
    # each time, while everybody waits.
    gc.freeze()
    logs.configure(settings.log, secrets=settings.secrets())
    await main.run(settings, ready=ready, stop=stop, demo=demo)
