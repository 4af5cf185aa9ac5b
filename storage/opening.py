"""Open a database for the runtime alone, by its address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from storage.base import DocumentDatabase

__all__ = ["open_store"]


@asynccontextmanager
async def open_store(address: str | Path) -> AsyncIterator[DocumentDatabase]:
    """Open the checkpoints and the message log of runs, and close them at the end.

    Pass `store.checkpoints` and `store.log` to a `Runner`. The checkpoints contain the journal.

    Args:
        address: A directory for SQLite, which one process at a time can open and which is created
            if missing; or the address of a MongoDB database: `mongodb://localhost/runs`.

    Raises:
        StoreUnavailableError: The server does not answer, or the directory cannot be used.
        StoreBusyError: Another process has the directory open.
    """
    # Imported here: a program needs the driver of its own engine only.
    store: DocumentDatabase
    if str(address).startswith(("mongodb://", "mongodb+srv://")):
        from storage.mongo.storage import MongoStorage  # noqa: PLC0415 - see above

        store = MongoStorage(str(address), ())
    else:
        from storage.sqlite.storage import SqliteStorage  # noqa: PLC0415 - see above

        store = SqliteStorage(Path(address), ())
    await store.open()
    try:
        yield store
    finally:
        await store.close()
