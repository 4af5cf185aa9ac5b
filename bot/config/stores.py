"""Choose the database: MongoDB or the embedded one. Only the chosen driver is imported."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from bot.errors import SettingsError
from bot.stores import KINDS, Stores
from storage.chain import NO_KEY, Seal

DATA_DIR = Path(".countersign")
"""Default data directory, relative to the working directory."""

DRIVERS = ("motor", "pymongo")
"""Names of the MongoDB drivers."""


KEY_REMEDY = "make one with: openssl rand -hex 32"
"""The remedy for an invalid audit key."""


def seal_of(text: str) -> Seal:
    """Create the seal of the audit.

    Args:
        text: The key, followed by earlier keys, separated by spaces; empty without a key.

    Raises:
        ValueError: A key is too short.
    """
    key, *old = [word.encode() for word in text.split()] or [b""]
    return Seal(key, tuple(old))


def make_storage(directory: Path, *, uri: str, driver: str, seal: Seal = NO_KEY) -> Stores:
    """Create the storage without opening it.

    Args:
        directory: The data directory.
        uri: Address of the shared database; empty for the embedded one.
        driver: The MongoDB driver.
        seal: Seals audit entries.

    Raises:
        SettingsError: The driver is unknown.
    """
    if driver not in DRIVERS:
        raise SettingsError(
            "COUNTERSIGN_MONGO_DRIVER", f"{driver!r} isn't a valid value", "write motor or pymongo"
        )
    if uri:
        from storage.mongo import Driver, MongoStorage  # noqa: PLC0415 - see the first line

        return Stores(MongoStorage(uri, KINDS, driver=cast("Driver", driver), seal=seal))
    from storage.sqlite import SqliteStorage  # noqa: PLC0415 - see the first line

    return Stores(SqliteStorage(directory, KINDS, seal=seal))


def in_memory() -> Stores:
    """Create an embedded database in memory without opening it."""
    from storage.sqlite import SqliteStorage  # noqa: PLC0415 - see the first line

    return Stores(SqliteStorage(None, KINDS))


@asynccontextmanager
async def _closing(storage: Stores) -> AsyncIterator[None]:
    """Close the storage when the block ends."""
    try:
        yield
    finally:
        await storage.close()


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[Stores]:
    """Open the embedded database of a directory, created if missing, for a block.

    Args:
        directory: The data directory.

    Raises:
        StoreUnavailableError: Another process has the database open, or it cannot be used.
    """
    storage = make_storage(directory, uri="", driver="motor")
    await storage.open()
    async with _closing(storage):
        yield storage


@asynccontextmanager
async def open_beside(
    directory: Path, *, uri: str, driver: str, seal: Seal = NO_KEY, read_only: bool = False
) -> AsyncIterator[Stores]:
    """Open the database for a block, even while the bot runs.

    Args:
        directory: The data directory.
        uri: Address of the shared database; empty for the embedded one.
        driver: The MongoDB driver.
        seal: Seals audit entries.
        read_only: Whether the block only reads.

    Raises:
        SettingsError: The driver is unknown.
        StoreUnavailableError: There is no database, or it does not respond.
    """
    storage = make_storage(directory, uri=uri, driver=driver, seal=seal)
    await (storage.open_to_read() if read_only else storage.open_beside())
    async with _closing(storage):
        yield storage


@asynccontextmanager
async def restoring(
    directory: Path, copy: Path | None, *, uri: str, driver: str, seal: Seal = NO_KEY
) -> AsyncIterator[Stores]:
    """Open a restored database for a block, while no bot has it open.

    Args:
        directory: The data directory.
        copy: A backup of the embedded database, which is put in place when the block ends. None for
            a database that is restored already: the shared one, or a file that an operator put in
            place.
        uri: Address of the shared database; empty for the embedded one.
        driver: The MongoDB driver.
        seal: Seals audit entries.

    Raises:
        SettingsError: The driver is unknown.
        StoreBusyError: A bot has the data directory open.
        StoreUnavailableError: The database or the copy cannot be used.
    """
    if uri:
        async with open_beside(directory, uri=uri, driver=driver, seal=seal) as storage:
            yield storage
        return
    from storage.sqlite import restore  # noqa: PLC0415 - see the first line

    if copy is None:
        opening = restore.restoring_in_place(directory, KINDS, seal=seal)
    else:
        opening = restore.restoring(directory, copy, KINDS, seal=seal)
    async with opening as embedded:
        yield Stores(embedded)


def has_database(directory: Path) -> bool:
    """Whether a data directory has an embedded database, or had one.

    Args:
        directory: The data directory.
    """
    from storage import sqlite  # noqa: PLC0415 - see the first line

    return sqlite.has_database(directory)


async def back_up(directory: Path, target: Path) -> int:
    """Copy the embedded database to a new file, even while the bot runs.

    Args:
        directory: The data directory.
        target: The new file.

    Returns:
        The size of the file, in bytes.

    Raises:
        StoreUnavailableError: There is no database, or the copy failed.
    """
    from storage import sqlite  # noqa: PLC0415 - see the first line

    return await sqlite.back_up(directory, target)
