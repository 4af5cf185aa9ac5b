"""`countersign forget` and `countersign prune`: delete one thread, or all old ones."""

from __future__ import annotations

from bot.clock import system_clock
from bot.commands.call import Call, owner
from bot.commands.upkeep import forget_thread, prune
from bot.maintenance.retention import Forgetting


async def execute(call: Call) -> None:
    """Run the command."""
    given = call.arguments
    async with call.open_beside() as storage:
        forgetting = Forgetting(storage=storage, clock=system_clock, owner=owner())
        if "thread" in given:
            await forget_thread(forgetting, given.thread, do_it=given.yes, say=call.say)
        else:
            await prune(forgetting, given.older_than, do_it=given.yes, say=call.say)
