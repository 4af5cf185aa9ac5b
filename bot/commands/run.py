"""`countersign run`: run the bot until a signal stops it."""

from __future__ import annotations

import logging

from bot.commands.call import Call, RunBot, end_in_time, stopped_by_signals
from bot.config.settings import Settings

logger = logging.getLogger(__name__)


async def execute(call: Call) -> None:
    """Run the command."""
    settings = Settings.load(call.environ)
    then = end_in_time if call.run_bot is None else None
    await (call.run_bot or _bot(settings))(settings, stop=stopped_by_signals(then))


def _bot(settings: Settings) -> RunBot:
    """Import the bot. The import takes seconds, so the log says before that the bot starts."""
    from bot.observability import logs  # noqa: PLC0415

    logs.configure(settings.log, secrets=settings.secrets())
    logger.info("starting", extra={"action": "starting"})
    from bot import main  # noqa: PLC0415

    return main.run_alone
