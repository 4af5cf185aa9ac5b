"""Choose the database: MongoDB or the embedded one. Only its driver is loaded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from bot.errors import SettingsError
from bot.stores import KINDS, Stores
from storage.chain import NO_KEY, Seal

DATA_DIR = Path(".countersign")
"""The data directory, where nobody has set another."""

DRIVERS = ("motor", "pymongo")
"""The drivers for MongoDB."""


KEY_REMEDY = "make one with: openssl rand -hex 32"
"""Said where the audit's key cannot be used."""


def seal_of(text: str) -> Seal:
    """Make the seal of the audit.

    Args:
        text: Its key, and behind it earlier ones, with spaces between them; empty for none.

    Raises:
        ValueError: A key is too short.
    """
    key, *old = [word.encode() for word in text.split()] or [b""]
    return Seal(key, tuple(old))


def make_storage(directory: Path, *, uri: str, driver: str, seal: Seal = NO_KEY) -> Stores:
    """Make the storage; it is not open yet.

    Args:
        directory: The data directory.
        uri: The shared database; empty for the embedded one.
        driver: The MongoDB driver.
        seal: How entries of the audit are sealed.

    Raises:
        SettingsError: There is no such driver.
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
    """Make an embedded database without a file, which is gone when it is closed; not open yet."""
    from storage.sqlite import SqliteStorage  # noqa: PLC0415 - see the first line

    return Stores(SqliteStorage(None, KINDS))


@asynccontextmanager
async def _closing(storage: Stores) -> AsyncIterator[None]:
    """Close what is open at the end of the block."""
    try:
        yield
    finally:
        await storage.close()


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[Stores]:
    """Open the embedded database of a folder, made where there is none; closed with the block.

    Args:
        directory: The data directory.

    Raises:
        StoreUnavailableError: Another process has it, or it cannot be used.
    """
    storage = make_storage(directory, uri="", driver="motor")
    await storage.open()
    async with _closing(storage):
        yield storage


@asynccontextmanager
async def open_to_read(
    directory: Path, *, uri: str, driver: str, seal: Seal = NO_KEY
) -> AsyncIterator[Stores]:
    """Open the database to look into it, also while the bot runs; closed with the block.

    Args:
        directory: The data directory.
        uri: The shared database; empty for the embedded one.
        driver: The MongoDB driver.
        seal: How entries of the audit are sealed.

    Raises:
        SettingsError: There is no such driver.
        StoreUnavailableError: There is no database, or it does not answer.
    """
    storage = make_storage(directory, uri=uri, driver=driver, seal=seal)
    await storage.open_to_read()
    async with _closing(storage):
        yield storage


@asynccontextmanager
async def open_beside(
    directory: Path, *, uri: str, driver: str, seal: Seal = NO_KEY
) -> AsyncIterator[Stores]:
    """Open the database to change it, also while the bot runs; closed with the block.

    Args:
        directory: The data directory.
        uri: The shared database; empty for the embedded one.
        driver: The MongoDB driver.
        seal: How entries of the audit are sealed.

    Raises:
        SettingsError: There is no such driver.
        StoreUnavailableError: There is no database, or it does not answer.
    """
    storage = make_storage(directory, uri=uri, driver=driver, seal=seal)
    await storage.open_beside()
    async with _closing(storage):
        yield storage


@asynccontextmanager
async def restoring(
    directory: Path, copy: Path | None, *, uri: str, driver: str, seal: Seal = NO_KEY
) -> AsyncIterator[Stores]:
    """Open the database that goes back to a copy; no bot may have it.

    Args:
        directory: The data directory.
        copy: Of the embedded database; in place when the block ends. None for a database that has
            gone back already: the shared one, or a file that was put in place by hand.
        uri: The shared database; empty for the embedded one.
        driver: The MongoDB driver.
        seal: How entries of the audit are sealed.

    Raises:
        SettingsError: There is no such driver.
        StoreBusyError: A bot has the data directory.
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


async def back_up(directory: Path, target: Path) -> int:
    """Copy the embedded database to a new file, also while the bot runs.

    Args:
        directory: The data directory.
        target: The new file.

    Returns:
        Its size, in bytes.

    Raises:
        StoreUnavailableError: There is no database, or the copy cannot be made.
    """
    from storage import sqlite  # noqa: PLC0415 - see the first line

    return await sqlite.back_up(directory, target)
