"""All stores of the bot over each kind of database, made by one call."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.stores import KINDS, Stores
from storage.mongo import MongoStorage
from storage.sqlite import SqliteStorage


class SqliteStores(Stores):
    """The stores over a file, or over memory."""

    def __init__(self, path: Path | None, **options: Any) -> None:
        engine = SqliteStorage(path, KINDS, **options)
        super().__init__(engine)
        self._database = engine._database


class MongoStores(Stores):
    """The stores over a server, which may be slow on a busy machine."""

    trail: Any

    def __init__(
        self, uri: str, *, timeout: timedelta = timedelta(seconds=30), **options: Any
    ) -> None:
        engine = MongoStorage(uri, KINDS, timeout=timeout, **options)
        super().__init__(engine)
        self._client = engine._client
