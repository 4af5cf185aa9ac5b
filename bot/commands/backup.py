"""`countersign backup`: copy the embedded database, also while the bot runs."""

from __future__ import annotations

from pathlib import Path

from bot.commands.call import Call
from bot.config import stores
from bot.errors import BotError
from storage.errors import StoreUnavailableError


async def execute(call: Call) -> None:
    """Run the command."""
    if call.uri:
        raise BotError(
            "MONGODB_URI is set. Back up MongoDB with mongodump or your hosting provider; "
            "this command is for the embedded database"
        )
    target = Path(call.arguments.file)
    try:
        size = await stores.back_up(call.data_dir, target)
    except StoreUnavailableError as error:
        raise BotError(error.detail) from error
    call.say(f"Backed up to {target} ({size:,} bytes, verified). Protect it like the original.")
