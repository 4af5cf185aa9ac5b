"""`countersign audit`: what is on record of a thread or an approval."""

from __future__ import annotations

from bot.commands.call import Call
from bot.config import stores
from bot.core.story import json_line, line, story
from bot.errors import BotError
from bot.redaction.active import in_force


async def execute(call: Call) -> None:
    """Run the command."""
    arguments = call.arguments
    with in_force(call.redact):  # also what was not secret when it was written
        async with stores.open_to_read(call.data_dir, uri=call.uri, driver=call.driver) as storage:
            entries = await story(
                storage, thread_id=arguments.thread, approval_id=arguments.approval
            )
        for entry in entries:
            call.say(json_line(entry) if arguments.json else line(entry))
    if not entries:
        raise BotError(f"nothing is on record of {arguments.thread or arguments.approval}")
