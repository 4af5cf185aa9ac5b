"""Maintenance by an operator: delete one thread, prune old ones, restore a backup."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

from bot.clock import milliseconds
from bot.errors import BotError
from bot.freezes.rules import ALL
from bot.freezes.service import Freezes
from bot.maintenance.restoring import Marked, Restoring
from bot.maintenance.retention import Forecast, Forgetting
from bot.stores import Stores

Say = Callable[[str], object]

_LOG_REMAINS = (
    "The deleted content is still in the write-ahead log, countersign.db-wal, because another "
    "process reads the database, such as a backup. Repeat the command when that has ended."
)

_WHY_FROZEN = "The database was restored, and newer freezes are not in it."

_NAMES = {
    "approvals": ("request", "requests"),
    "messages": ("message", "messages"),
    "ephemeral_messages": ("private answer", "private answers"),
    "grants": ("standing grant", "standing grants"),
    "posts": ("text", "texts"),
    "log": ("turn in the log", "turns in the log"),
    "checkpoints": ("checkpoint", "checkpoints"),
    "journal": ("step", "steps"),
    "audit": ("entry of the audit, stripped", "entries of the audit, stripped"),
}


async def forget_thread(forgetting: Forgetting, name: str, *, do_it: bool, say: Say) -> None:
    """Delete a thread with all its records, or print what would be deleted.

    Args:
        forgetting: Deletes threads.
        name: The thread; see `Forgetting.find`.
        do_it: Whether to delete; False only prints.
        say: Prints a text to the terminal.

    Raises:
        BotError: The thread has unfinished work.
        RecordNotFoundError: The thread does not exist.
    """
    thread_id = await forgetting.thread_id_of(name)
    forecast = await forgetting.forecast(thread_id)
    if forecast.refusal:
        raise _refused(forecast)
    if not do_it:
        say(f"{thread_id}: {_listed(forecast.counts)}")
        say("Nothing was deleted. To delete it, add --yes. This can't be undone.")
        return
    forecast = await forgetting.forget(thread_id, how="forget")
    if forecast.refusal:
        raise _refused(forecast)
    say(f"{thread_id}: deleted: {_listed(forecast.counts)}")
    await clear_log(forgetting.storage, say)
    say("Messages in Slack and existing backups were not changed.")


async def go_back(
    restoring: Restoring, freezes: Freezes, *, by: str, is_shared: bool, say: Say
) -> None:
    """Freeze all calls, and mark the unfinished work of a restored database.

    A freeze that was set after the backup is not in it, so nothing starts until people lift this
    one.

    Args:
        restoring: Marks the work.
        freezes: The freezes of the database.
        by: The actor of the freeze.
        is_shared: Whether the database is MongoDB, where a bot may still run.
        say: Prints a text to the terminal.

    Raises:
        BotError: A process holds a lease in the database.
    """
    if is_shared and await restoring.storage.restoring.leased(now_ms=restoring.clock()):
        raise BotError(
            "this database is in use. Stop all bots first; if none is running, wait a minute "
            "for their locks to expire"
        )
    freeze = (await freezes.freeze(ALL, by=by, why=_WHY_FROZEN, is_recorded=False)).freeze
    marked = await restoring.mark()
    # Only now, because the newest entry of the audit tells where the backup ends.
    await freezes.record_acts(await freezes.read())
    _say_end(marked, now_ms=restoring.clock(), say=say)
    say(
        f"Everything is frozen: no call starts until you type: countersign unfreeze {freeze.id} WHY"
    )


def _say_end(marked: Marked, *, now_ms: int, say: Say) -> None:
    if not marked.to_ms:
        say("The backup is empty, so there was nothing to do.")
        return
    moment = datetime.fromtimestamp(marked.to_ms / 1_000, UTC)
    is_behind = marked.to_ms > now_ms
    say(
        f"The copy ends at {moment:%Y-%m-%d %H:%M:%S} UTC. What came after that is not on record: "
        f"{_number(marked.approvals, 'pending request')} will be asked again, and "
        f"{_number(marked.threads, 'thread')} that {_were(marked.threads)} not at rest will be "
        f"looked at. {_CLOCK if is_behind else ''}Start the bot now."
    )
    if marked.keys:
        say(
            f"{_number(marked.keys, 'key')} of programs ended, because a key that was revoked "
            "after the copy would work again. To make new keys: countersign keys rotate NAME"
        )


_CLOCK = "The clock of this machine is behind that moment: correct it first. "


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


async def prune(forgetting: Forgetting, older: timedelta, *, do_it: bool, say: Say) -> None:
    """Delete all old threads, or print which would be deleted.

    Args:
        forgetting: Deletes threads.
        older: Minimum time since the last activity.
        do_it: Whether to delete; False only prints.
        say: Prints a text to the terminal.
    """
    before_ms = forgetting.clock() - milliseconds(older)
    done = kept = 0
    delete = partial(forgetting.forget, how="prune") if do_it else forgetting.forecast
    async for threads in forgetting.old(before_ms):
        ends = await asyncio.gather(*(delete(name) for _, name in threads), return_exceptions=True)
        for (active_ms, name), forecast in zip(threads, ends, strict=True):
            if isinstance(forecast, BaseException):
                raise forecast
            if forecast.refusal:
                kept += 1
                say(f"{name}: kept: {forecast.refusal}")
            else:
                done += 1
                say(f"{name}: last active {_day(active_ms)}: {_listed(forecast.counts)}")
    if do_it:
        await forgetting.erase_ephemeral(before_ms)
        await forgetting.erase_delegations(before_ms)
        await forgetting.erase_people()
        say(f"{_number(done, 'thread')} deleted, {kept} kept.")
        await clear_log(forgetting.storage, say)
    else:
        say(f"{_number(done, 'thread')} would be deleted and {kept} kept. Nothing was deleted yet.")
        say(f"To delete {'it' if done == 1 else 'them'}, add --yes. This can't be undone.")


async def clear_log(storage: Stores, say: Say) -> None:
    """Remove deleted content from the database's write-ahead log, too.

    Args:
        storage: An open database.
        say: Prints a text to the terminal.
    """
    if not await storage.retention.clear_log():
        say(_LOG_REMAINS)


def _refused(forecast: Forecast) -> BotError:
    return BotError(
        f"can't delete {forecast.thread_id}: {forecast.refusal}. Decide or answer its open "
        "request, or wait until it expires, then try again"
    )


def _listed(counts: Mapping[str, int]) -> str:
    parts = [f"{number:,} {_NAMES[name][number != 1]}" for name, number in counts.items() if number]
    return ", ".join(parts) or "nothing but the thread itself"


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()
