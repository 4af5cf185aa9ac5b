"""`countersign restore`: restore a backup, while no bot runs."""

from __future__ import annotations

from pathlib import Path

from bot.clock import system_clock
from bot.commands.call import Call
from bot.commands.freeze import actor, freezes_of
from bot.commands.upkeep import go_back
from bot.config import stores
from bot.errors import BotError
from bot.maintenance.restoring import Restoring
from bot.redaction.rules import in_force
from storage.errors import StoreBrokenError, StoreUnavailableError


async def execute(call: Call) -> None:
    """Run the command."""
    copy = call.arguments.copy
    if call.uri and copy:
        raise BotError(
            "MONGODB_URI is set: put that database back with mongorestore while no bot runs, and "
            "call this command without a file then"
        )
    path = Path(copy) if copy else None
    try:
        async with stores.restoring(
            call.data_dir, path, uri=call.uri, driver=call.driver, seal=call.seal
        ) as storage:
            restoring = Restoring(storage=storage, clock=system_clock)
            with in_force(call.redact):
                freezes = await freezes_of(storage)
                is_shared = bool(call.uri)
                await go_back(restoring, freezes, by=actor(), is_shared=is_shared, say=call.say)
    except StoreBrokenError:
        raise  # is printed with its remedy
    except StoreUnavailableError as error:
        raise BotError(error.detail) from error
