"""`countersign prune`: threads in which nothing has happened for long are deleted."""

from __future__ import annotations

from bot.clock import system_clock
from bot.commands.call import Call, owner
from bot.commands.upkeep import prune
from bot.core.upkeep.forgetting import Forgetting


async def execute(call: Call) -> None:
    """Run the command."""
    given = call.arguments
    async with call.open_beside() as storage:
        forgetting = Forgetting(storage=storage, clock=system_clock, owner=owner())
        await prune(forgetting, given.older_than, do_it=given.yes, say=call.say)
