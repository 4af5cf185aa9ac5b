"""The adapters that every suite of this folder runs on."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from bot.stores import Stores
from storage.mongo import Driver
from tests.support.mongo import DRIVERS, MongoServer
from tests.support.stores import MongoStores, SqliteStores

TIMEOUT = timedelta(seconds=20)
"""Longest operation: a busy machine needs more than the product's limit for large documents."""
ADAPTERS = [
    pytest.param("sqlite-file"),
    pytest.param("sqlite-memory"),
    pytest.param("mongo-motor", marks=pytest.mark.mongo),
    pytest.param("mongo-pymongo", marks=pytest.mark.mongo),
]


@pytest.fixture(params=ADAPTERS)
def new_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Stores]:
    """Makes storages that share one database, which is new; none is open."""
    adapter = request.param
    if adapter == "sqlite-file":
        return lambda: SqliteStores(tmp_path / "data")
    if adapter == "sqlite-memory":
        return lambda: SqliteStores(None)
    driver: Driver = "motor" if adapter == "mongo-motor" else "pymongo"
    server: MongoServer = request.getfixturevalue("mongo_server")
    database = server.new_database()
    return lambda: MongoStores(server.uri, driver=driver, database=database, timeout=TIMEOUT)


@pytest.fixture
async def storage(new_storage: Callable[[], Stores]) -> AsyncIterator[Stores]:
    opened = new_storage()
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> Driver:
    """Each driver of MongoDB."""
    driver: Driver = request.param
    return driver


@pytest.fixture(params=DRIVERS)
async def two_processes(
    request: pytest.FixtureRequest, mongo_server: MongoServer
) -> AsyncIterator[list[Stores]]:
    """Two storages with pools of their own on one database, as two processes would have."""
    database = mongo_server.new_database()
    storages: list[Stores] = [
        MongoStores(mongo_server.uri, driver=request.param, database=database, timeout=TIMEOUT)
        for _ in range(2)
    ]
    for each in storages:
        await each.open()
    yield storages
    for each in storages:
        await each.close()
