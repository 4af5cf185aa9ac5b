"""A server with TLS, a login by SCRAM, and a number for its clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.errors import Fault, StoreBrokenError
from storage.mongo import Driver
from tests.contract.builders import THREAD_ID, a_thread
from tests.contract.conftest import TIMEOUT
from tests.support.login import behind_login
from tests.support.mongo import MongoServer, spawn_mongo_server
from tests.support.mongo_listener import LISTENER
from tests.support.stores import MongoStores
from tests.support.wire import Ask, Command, proxied

pytestmark = pytest.mark.mongo


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoServer]:
    """A server without a login, whatever the other tests use."""
    server = spawn_mongo_server(tmp_path_factory.mktemp("open"), is_kept=False)
    yield server
    server.stop()


async def test_a_server_with_tls_and_a_login_also_through_a_proxy(
    open_server: MongoServer, driver: Driver, tmp_path: Path
) -> None:
    async def play(command: Command, ask: Ask) -> Command:
        return await ask()

    async with (
        behind_login(open_server.new_uri(), tmp_path) as direct,
        proxied(direct, play) as through,
    ):
        for uri in (direct, through):
            storage = MongoStores(uri, driver=driver, timeout=TIMEOUT)
            await storage.open()
            await storage.threads.ensure(a_thread())
            server_ms = await storage.server_ms()
            assert server_ms is not None
            assert abs(server_ms - time.time() * 1_000) < 60_000
            assert (await storage.threads.get(THREAD_ID)).thread_id == THREAD_ID
            await storage.close()


async def test_a_wrong_password_is_told_as_a_refusal(
    open_server: MongoServer, driver: Driver, tmp_path: Path
) -> None:
    LISTENER.expect(18)
    async with behind_login(open_server.new_uri(), tmp_path) as uri:
        storage = MongoStores(uri.replace("p%40ss", "q"), driver=driver, timeout=TIMEOUT)
        with pytest.raises(StoreBrokenError, match="Authentication failed") as caught:
            await storage.open()
        await storage.close()

    assert caught.value.fault is Fault.REFUSED
