"""`countersign run`: run the bot until a signal stops it."""

from __future__ import annotations

from bot.commands.call import Call, RunBot, end_in_time, stopped_by_signals
from bot.config.settings import Settings


async def execute(call: Call) -> None:
    """Run the command."""
    settings = Settings.load(call.environ)
    then = end_in_time if call.run_bot is None else None
    await (call.run_bot or _bot())(settings, stop=stopped_by_signals(then))


def _bot() -> RunBot:
    """Import the bot. The import takes a second, so settings are checked before."""
    from bot import main  # noqa: PLC0415

    return main.run_alone
