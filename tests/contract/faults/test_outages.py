"""What happens when the database is away, comes back, or dies with the process.

I4: nothing acknowledged is lost.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.records.approval_queries import newest_of
from bot.stores import Stores
from storage.errors import StoreUnavailableError
from storage.mongo import Driver
from tests.contract.builders import APPROVAL_ID, THREAD_ID, a_message, a_thread, an_approval
from tests.support.mongo import MAY_LEAK, MongoServer, spawn_mongo_server
from tests.support.stores import MongoStores, SqliteStores

pytestmark = MAY_LEAK

TIMEOUT = timedelta(seconds=1)
WITHIN_S = 60  # the time-out, and what a busy machine adds


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[MongoServer]:
    server = spawn_mongo_server(tmp_path / "server")
    yield server
    server.kill()


@pytest.fixture
async def mongo(own_server: MongoServer, driver: Driver) -> AsyncIterator[Stores]:
    storage = MongoStores(own_server.uri, driver=driver, timeout=TIMEOUT)
    await storage.open()
    yield storage
    await storage.close()


async def test_a_storage_opens_pings_and_closes_twice(new_storage: Callable[[], Stores]) -> None:
    storage = new_storage()
    await storage.open()
    await storage.open()
    await storage.ping()
    await storage.close()
    await storage.close()

    await storage.open()
    await storage.ping()
    await storage.close()


async def test_a_storage_that_is_not_open_says_so(new_storage: Callable[[], Stores]) -> None:
    storage = new_storage()

    with pytest.raises(StoreUnavailableError, match="not open"):
        await storage.ping()
    with pytest.raises(StoreUnavailableError, match="not open"):
        await storage.threads.get(THREAD_ID)


async def test_data_outlives_the_storage(
    new_storage: Callable[[], Stores], request: pytest.FixtureRequest
) -> None:
    first = new_storage()
    await first.open()
    await first.approvals.insert(an_approval())
    await first.close()

    second = new_storage()
    await second.open()
    approvals = await newest_of(second.approvals, THREAD_ID, limit=9)
    await second.close()

    in_memory = "sqlite-memory" in request.node.name
    assert approvals == ([] if in_memory else [an_approval()])


@pytest.mark.mongo
async def test_a_server_that_is_away_is_reported_in_time(
    own_server: MongoServer, mongo: Stores
) -> None:
    await mongo.threads.ensure(a_thread())
    own_server.kill()

    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(StoreUnavailableError):
            await mongo.threads.get(THREAD_ID)
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(StoreUnavailableError):
            await mongo.threads.wake(THREAD_ID, now_ms=1)
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(StoreUnavailableError):
            await mongo.ping()


@pytest.mark.mongo
async def test_closing_keeps_nobody_waiting_though_the_server_is_away(
    own_server: MongoServer,
) -> None:
    """Motor's own way to close looks for a server first, and nothing else goes on meanwhile."""
    storage = MongoStores(own_server.uri, driver="motor", timeout=TIMEOUT / 2)
    await storage.open()
    await asyncio.gather(*(storage.threads.ensure(a_thread()) for _ in range(20)))
    own_server.kill()
    with pytest.raises(StoreUnavailableError):
        await storage.ping()
    client = storage._client.collection("threads").database.client
    sessions = len(client.delegate._topology._session_pool)  # the server would be told of their end
    try:
        assert await _longest_pause(storage.close()) < TIMEOUT.total_seconds()
    finally:
        await storage.close()
    # mongo-java-server has no sessions: there, closing has nothing to say goodbye with.
    assert sessions > 0 or own_server.kind == "java", "this test needs a server with sessions"


async def _longest_pause(work: Awaitable[None]) -> float:
    """The longest time in which nobody else is served while something is done."""
    loop = asyncio.get_running_loop()
    last = loop.time()
    longest = 0.0

    async def serve() -> None:
        nonlocal last, longest
        while True:
            await asyncio.sleep(0.01)
            longest, last = max(longest, loop.time() - last), loop.time()

    serving = asyncio.create_task(serve())
    await work
    serving.cancel()
    return max(longest, loop.time() - last)


async def stop(pid: int) -> None:
    """Stop a child, and wait until all of its threads have stopped: the signal only begins it."""
    os.kill(pid, signal.SIGSTOP)
    _, status = await asyncio.to_thread(os.waitpid, pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


@pytest.mark.mongo
async def test_a_server_that_hangs_is_reported_in_time(
    own_server: MongoServer, mongo: Stores
) -> None:
    await mongo.threads.ensure(a_thread())
    await stop(own_server.pid)

    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(StoreUnavailableError):
            await mongo.threads.get(THREAD_ID)

    os.kill(own_server.pid, signal.SIGCONT)
    assert await mongo.threads.get(THREAD_ID) == a_thread()


@pytest.mark.mongo
async def test_of_many_callers_none_waits_longer_because_of_the_others(
    own_server: MongoServer, mongo: Stores
) -> None:
    await mongo.threads.ensure(a_thread())
    await stop(own_server.pid)
    try:
        async with asyncio.timeout(WITHIN_S):
            results = await asyncio.gather(
                *(mongo.threads.extend(THREAD_ID, fence=9, until_ms=1) for _ in range(150)),
                return_exceptions=True,
            )
    finally:
        os.kill(own_server.pid, signal.SIGCONT)

    assert all(isinstance(error, StoreUnavailableError) for error in results)


@pytest.mark.mongo
@pytest.mark.parametrize("driver", ["pymongo"])  # motor's operations are in threads
async def test_who_stops_waiting_for_a_server_that_hangs_takes_it_from_nobody(
    own_server: MongoServer, mongo: Stores
) -> None:
    await mongo.threads.ensure(a_thread())
    await stop(own_server.pid)
    try:
        callers = [asyncio.ensure_future(mongo.threads.get(THREAD_ID)) for _ in range(150)]
        async with asyncio.timeout(WITHIN_S):
            await asyncio.wait(callers, timeout=0.2)  # they all stand in the queue
            for _ in range(2):  # as by a limit inside of a limit, or one at a stop
                for caller in callers:
                    caller.cancel()
                for _ in range(3):  # what the first one began is not over
                    await asyncio.sleep(0)
            await asyncio.wait(callers)
    finally:
        os.kill(own_server.pid, signal.SIGCONT)

    await _until_it_answers(mongo)  # those that nobody waits for any more are still at it


@pytest.mark.mongo
async def test_connections_that_are_stuck_are_made_anew(
    mongo_server: MongoServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.mongo.client.PATIENCE", 1)
    storage = MongoStores(mongo_server.new_uri(), driver="pymongo", timeout=TIMEOUT)
    await storage.open()
    pool = _pool_of(storage)
    await pool.lock.acquire()  # as by who was cut off, and left it so

    with pytest.raises(StoreUnavailableError):
        await storage.inbox.new(THREAD_ID, limit=1)
    await _until_it_answers(storage)
    pool.lock.release()
    await storage.close()

    assert "database connections were stuck, reconnected" in caplog.messages


@pytest.mark.mongo
async def test_closing_ends_where_the_connections_are_stuck(mongo_server: MongoServer) -> None:
    storage = MongoStores(mongo_server.new_uri(), driver="pymongo", timeout=TIMEOUT)
    await storage.open()
    pool = _pool_of(storage)
    await pool.lock.acquire()

    async with asyncio.timeout(3 * WITHIN_S):
        await storage.close()
    pool.lock.release()
    await storage.close()


def _pool_of(storage: MongoStores) -> Any:
    client = storage._client.collection("threads").database.client
    (server,) = client._topology._servers.values()
    return server.pool


async def _until_it_answers(storage: Stores) -> None:
    async with asyncio.timeout(3 * WITHIN_S):
        while True:
            with suppress(StoreUnavailableError):
                await storage.inbox.new(THREAD_ID, limit=1)
                return


@pytest.mark.mongo
async def test_i4_a_restarted_server_has_everything(own_server: MongoServer, mongo: Stores) -> None:
    await mongo.threads.ensure(a_thread(due_ms=5))
    await mongo.approvals.insert(an_approval())
    own_server.restart()

    assert await mongo.approvals.get(APPROVAL_ID) == an_approval()
    assert await mongo.threads.claim(THREAD_ID, owner="a", now_ms=5, until_ms=9) is not None


@pytest.mark.mongo
async def test_i4_a_killed_server_has_what_was_acknowledged(
    own_server: MongoServer, mongo: Stores
) -> None:
    for number in range(10):
        await mongo.inbox.add(a_message(f"1700000000.00{number}000"))
    own_server.kill()
    with pytest.raises(StoreUnavailableError):
        await mongo.inbox.new(THREAD_ID, limit=99)
    own_server.start()

    assert len(await mongo.inbox.new(THREAD_ID, limit=99)) == 10


@pytest.mark.mongo
async def test_a_storage_opens_once_its_server_is_there(
    own_server: MongoServer, driver: Driver
) -> None:
    storage = MongoStores(own_server.uri, driver=driver, timeout=TIMEOUT)
    own_server.kill()
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(StoreUnavailableError):
            await storage.open()
    own_server.start()

    await storage.open()
    await storage.ping()
    await storage.close()


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.support.stores import SqliteStores
from tests.contract.builders import a_message

async def write():
    storage = SqliteStores(Path(sys.argv[1]))
    await storage.open()
    number = 0
    while True:
        number += 1
        await storage.inbox.add(a_message(f"{number:010}.000100"))
        print(number, flush=True)

asyncio.run(write())
"""


async def test_i4_a_killed_process_leaves_what_was_acknowledged(tmp_path: Path) -> None:
    writer = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        WRITER,
        str(tmp_path),
        cwd=Path(__file__).parents[3],
        stdout=asyncio.subprocess.PIPE,
    )
    assert writer.stdout is not None
    acknowledged = [int(await writer.stdout.readline()) for _ in range(30)]
    writer.kill()
    rest = await writer.stdout.read()
    await writer.wait()
    acknowledged += [int(line) for line in rest.splitlines()]

    storage = SqliteStores(tmp_path)  # the lock is free: it ended with its process
    await storage.open()
    kept = {message.ts for message in await storage.inbox.new(THREAD_ID, limit=100_000)}
    await storage.close()

    assert {f"{number:010}.000100" for number in acknowledged} <= kept
