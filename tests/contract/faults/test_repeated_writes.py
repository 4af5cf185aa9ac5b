"""The driver sends a write again after a lost reply. Some servers then run it again."""

from __future__ import annotations

import pytest

from storage.mongo import Driver
from tests.contract.builders import THREAD_ID, a_thread, an_entry
from tests.contract.conftest import TIMEOUT
from tests.support.mongo import MongoServer
from tests.support.stores import MongoStores
from tests.support.wire import Ask, Command, Play, as_member, proxied

pytestmark = pytest.mark.mongo


class Server:
    """Plays a replica set that loses replies, and may run a repeated write again.

    Attributes:
        loses: The collection to which the next write has no reply.
        sent: The names of the commands to that collection since then.
    """

    def __init__(self, *, remembers: bool = False) -> None:
        self.loses = ""
        self.sent: list[str] = []
        self._remembers = remembers
        self._answers: dict[tuple[str, int], Command] = {}

    async def __call__(self, command: Command, ask: Ask) -> Command:
        name, place = next(iter(command.items()))
        if "txnNumber" not in command:
            return as_member(await ask())
        write = (str(command["lsid"]), int(command["txnNumber"]))
        plain = {name: value for name, value in command.items() if name != "txnNumber"}
        if not self._remembers or write not in self._answers:
            self._answers[write] = await ask(plain)
        if place == self.loses or self.sent:
            self.sent.append(name)
        if place == self.loses:
            self.loses = ""
            raise ConnectionError
        return self._answers[write]


def _storage(uri: str, driver: Driver) -> MongoStores:
    return MongoStores(uri, driver=driver, timeout=TIMEOUT)


async def test_a_claim_knows_its_own_lease(mongo_server: MongoServer, driver: Driver) -> None:
    server = Server()
    async with proxied(mongo_server.new_uri(), server) as uri:
        storage = _storage(uri, driver)
        await storage.open()
        await storage.threads.ensure(a_thread(due_ms=5))

        server.loses = "threads"
        thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=5, until_ms=9)
        sent = [*server.sent]
        other = await storage.threads.claim(THREAD_ID, owner="a", now_ms=5, until_ms=9)
        assert thread is not None
        await storage.threads.release(THREAD_ID, fence=thread.fence, wakes=thread.wakes, now_ms=6)
        kept = await storage.threads.get(THREAD_ID)
        await storage.close()

    assert sent == ["findAndModify", "findAndModify"]
    assert other is None
    assert kept.leased_by == ""


async def test_the_lease_of_a_chain_knows_its_own(
    mongo_server: MongoServer, driver: Driver
) -> None:
    server = Server()
    async with proxied(mongo_server.new_uri(), server) as uri:
        storage = _storage(uri, driver)
        await storage.open()
        sealed = []
        for number in range(2):  # the first lease is an insert, the second one an update
            await storage.trail.append(an_entry(f"e{number}"))
            server.loses = "chains"
            sealed.append(await storage.trail.seal(owner="a", now_ms=number))
        await storage.close()

    assert sealed == [1, 1]


@pytest.mark.parametrize("remembers", [False, True])
async def test_the_self_test_tells_a_server_that_runs_a_repeated_write_again(
    mongo_server: MongoServer, driver: Driver, *, remembers: bool
) -> None:
    play: Play = Server(remembers=remembers)
    async with proxied(mongo_server.new_uri(), play) as uri:
        storage = _storage(uri, driver)
        await storage.open()
        faults = [remark for remark in await storage.examine() if remark.remedy]
        await storage.close()

    if remembers:
        assert faults == []
    else:
        (fault,) = faults
        assert "retryWrites=false" in fault.remedy


async def test_the_self_test_repeats_nothing_without_retryable_writes(
    mongo_server: MongoServer, driver: Driver
) -> None:
    async with proxied(mongo_server.new_uri(), Server()) as uri:
        storage = _storage(f"{uri}{'&' if '?' in uri else '?'}retryWrites=false", driver)
        await storage.open()
        faults = [remark for remark in await storage.examine() if remark.remedy]
        await storage.close()

    assert faults == []
