"""The doctor's checks of the database, with the remedy for each fault."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.clock import system_clock
from bot.commands.call import Finding
from bot.config.settings import Settings
from bot.config.stores import has_database
from bot.errors import CopyInPlaceError
from bot.maintenance.clocks import clock_difference, say_difference
from bot.records.switch import SWITCH_ID
from bot.records.webhooks import EndpointStatus
from bot.stores import Stores
from bot.words.times import utc
from storage.errors import (
    Fault,
    RecordFormatError,
    RecordNotFoundError,
    StorageError,
    StoreBrokenError,
    StoreBusyError,
)

MOST_NAMED = 20
"""Number of unreadable records up to which the doctor lists them by name."""

_KEEP = "stop the bot and keep the files as they are"
_GUIDE = "docs/how-to/repair.md"
_KEY = "set COUNTERSIGN_AUDIT_KEY as it was"

EMBEDDED: Mapping[Fault, str] = {
    Fault.DAMAGED: f"{_KEEP}; then restore your newest backup ({_GUIDE}). Don't start with an "
    "empty directory: every open request would be lost",
    Fault.FOREIGN: f"{_KEEP}, and find out who replaced the database, and with what; then move the "
    f"right file back, or restore your newest backup ({_GUIDE})",
    Fault.FULL: "free up disk space; the bot then continues on its own",
    Fault.READ_ONLY: "let this user write to that directory and its files; for a new bot, name a "
    "directory on a local disk that this user may write to",
    Fault.MISSING: "find the file and move it back; else move its remaining parts away and restore "
    "your newest backup with `countersign restore`. To start with an empty database and lose every "
    "open request, delete countersign.lock",
    Fault.REPLACED: "don't stop the bot: the open file is lost when it exits. Save it first "
    f"({_GUIDE}), then find out who replaced the file",
    Fault.KEY: _KEY,
}
SHARED: Mapping[Fault, str] = {
    Fault.FULL: (
        "free up space on the server, or raise the quota; the bot then continues on its own"
    ),
    Fault.REFUSED: "give this user the role readWrite on that database; name authSource in the "
    "address when the user was made in another one, such as ?authSource=admin",
    Fault.ADDRESS: "fix the address as described",
    Fault.KEY: _KEY,
    Fault.CLOCK: "set the clocks of this machine and of the database server by NTP",
    Fault.UNSUITED: "use MongoDB 4.4 or newer, as a replica set or a sharded cluster; a compatible "
    "server must accept the same commands",
}
_NEWER = (
    "start the newer release that wrote it. To downgrade, restore the backup you made before "
    "the upgrade"
)
_EMBEDDED_ELSE = "if this continues, check the disk; the file is left unchanged"
_SHARED_ELSE = "check that the server is running, its address, and the network"


async def look_at_storage(
    settings: Settings, make_storage: Callable[[Settings], Stores]
) -> AsyncIterator[Finding]:
    """Open the database, write to it, test the server, and list unreadable records.

    Where no embedded database is yet, none is made: a directory beside it is tried and removed.
    """
    is_embedded = settings.mongodb_uri is None
    subject = _subject(settings)
    if is_embedded and not has_database(settings.data_dir):
        async for finding in _tried(settings, make_storage):
            yield finding
        return
    storage = make_storage(settings)
    try:
        await storage.open()
        await storage.ping()
        yield await _opened(settings, storage)
        async for finding in _examined(storage):
            yield finding
    except StoreBusyError as error:
        yield _busy(error)
        if not error.is_replaced:
            async for finding in _unreadable_beside(make_storage(settings)):
                yield finding
    except StorageError as error:
        remedy = remedy_for(error, is_embedded=is_embedded)
        yield Finding(subject=subject, text=str(error), remedy=remedy)
    finally:
        await storage.close()


async def _opened(settings: Settings, storage: Stores) -> Finding:
    if await storage.restoring.is_copy():
        copied = CopyInPlaceError
        return Finding(subject="database", text=copied.fault, remedy=copied.remedy)
    return Finding(subject="database", text=f"{_kind(settings)}; reads and writes work")


def _subject(settings: Settings) -> str:
    """Return the setting to look at; `database` if the operator has set none."""
    if settings.mongodb_uri is not None:
        return "MONGODB_URI"
    return "COUNTERSIGN_DATA_DIR" if "data_dir" in settings.model_fields_set else "database"


async def _tried(
    settings: Settings, make_storage: Callable[[Settings], Stores]
) -> AsyncIterator[Finding]:
    """Try whether a first start could make an embedded database, and leave nothing behind."""
    directory = settings.data_dir.absolute()
    place = next(path for path in (directory, *directory.parents) if path.exists())
    try:
        trial = TemporaryDirectory(prefix=".countersign-", dir=place)
    except OSError as error:
        text = f"can't write to {place}: {error.strerror or error}"
        remedy = EMBEDDED[Fault.READ_ONLY]
        yield Finding(subject=_subject(settings), text=text, remedy=remedy)
        return
    with trial as path:
        storage = make_storage(settings.model_copy(update={"data_dir": Path(path)}))
        try:
            await storage.open()
            await storage.ping()
            text = f"none in {directory} yet; the first start makes it. "
            text += "If your bot has run before, this is the wrong directory"
            yield Finding(subject="database", text=text)
            async for finding in _examined(storage):
                yield finding
        except StorageError as error:
            remedy = remedy_for(error, is_embedded=True)
            yield Finding(subject=_subject(settings), text=str(error), remedy=remedy)
        finally:
            await storage.close()


async def _examined(storage: Stores) -> AsyncIterator[Finding]:
    if ahead_ms := await clock_difference(storage):
        remedy = SHARED[Fault.CLOCK]
        yield Finding(subject="clock", text=say_difference(ahead_ms), remedy=remedy)
    for remark in await storage.examine():
        yield Finding(subject="server", text=remark.text, remedy=remark.remedy)
    async for finding in _unreadable(storage):
        yield finding
    async for finding in _frozen(storage):
        yield finding
    async for finding in _ending(storage):
        yield finding
    async for finding in _silent(storage):
        yield finding


async def _silent(storage: Stores) -> AsyncIterator[Finding]:
    """List the endpoints of programs that get no events."""
    for endpoint in await storage.webhooks.all_endpoints():
        if endpoint.status is not EndpointStatus.ON:
            text = f"{endpoint.id} is {endpoint.status}, so its program gets no events"
            remedy = f"when its receiver works: countersign webhooks redrive {endpoint.id}"
            yield Finding(subject="webhooks", text=text, remedy=remedy)


async def _ending(storage: Stores) -> AsyncIterator[Finding]:
    """List the programs that lose their last key soon, which is no fault yet."""
    for program, key in await storage.programs.ending(now_ms=system_clock()):
        text = f"{key.public_id}, the last one of {program.name}, ends {utc(key.ends_ms)}. "
        text += f"Make another: countersign keys rotate {program.name}"
        yield Finding(subject="keys", text=text)


async def _frozen(storage: Stores) -> AsyncIterator[Finding]:
    """List the freezes in force, which are no fault."""
    try:
        freezes = (await storage.switches.get(SWITCH_ID)).freezes
    except RecordNotFoundError:  # nobody has started or frozen anything yet
        return
    if freezes:
        words = (f"{freeze.id}: {freeze.scope}, since {utc(freeze.since_ms)}" for freeze in freezes)
        text = f"{'; '.join(words)}. No call in these scopes starts"
        yield Finding(subject="freezes", text=text)


def remedy_for(error: StorageError, *, is_embedded: bool) -> str:
    """Return the remedy for a fault of the database; never to begin with an empty one."""
    if isinstance(error, RecordFormatError):
        return _NEWER
    otherwise = _EMBEDDED_ELSE if is_embedded else _SHARED_ELSE
    if not isinstance(error, StoreBrokenError):
        return otherwise
    known = EMBEDDED if is_embedded else SHARED
    return error.remedy or known.get(error.fault, otherwise)


def _kind(settings: Settings) -> str:
    if settings.mongodb_uri is None:
        return f"embedded database in {settings.data_dir}"
    return f"MongoDB, by way of {settings.mongo_driver}"


def _busy(error: StoreBusyError) -> Finding:
    who = f"process {error.holder}" if error.holder else "another process"
    if error.is_replaced:
        return Finding(
            subject="COUNTERSIGN_DATA_DIR",
            text=f"the database file in {error.path} was deleted or replaced while {who} has "
            "another one open",
            remedy=EMBEDDED[Fault.REPLACED],
        )
    text = f"in use by {who}, which is fine if that's your bot"
    return Finding(subject="database", text=text)


async def _unreadable_beside(storage: Stores) -> AsyncIterator[Finding]:
    """Check a database that a running bot has open."""
    try:
        await storage.open_to_read()
        async for finding in _unreadable(storage):
            yield finding
        async for finding in _frozen(storage):
            yield finding
        async for finding in _ending(storage):
            yield finding
    except StorageError as error:
        remedy = remedy_for(error, is_embedded=True)
        yield Finding(subject="COUNTERSIGN_DATA_DIR", text=str(error), remedy=remedy)
    finally:
        await storage.close()


async def _unreadable(storage: Stores) -> AsyncIterator[Finding]:
    documents = await storage.unreadable(limit=MOST_NAMED + 1)
    for document in documents[:MOST_NAMED]:
        yield Finding(
            subject=f"{document.kind} {document.record_id}",
            text=document.why,
            remedy="start the release that wrote it. If it's damaged, repair it or restore a "
            "backup, then restart the bot",
        )
    if len(documents) > MOST_NAMED:
        yield Finding(
            subject="records", text=f"there are more than {MOST_NAMED} of these", remedy="as above"
        )
