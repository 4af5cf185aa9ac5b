"""The self-test finds servers on which two people could decide one request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from pymongo.errors import NetworkTimeout

from storage.errors import Fault, StoreBrokenError, StoreUnavailableError
from storage.mongo import Driver
from storage.mongo.client import Apart
from storage.mongo.selftest import AT_ONCE, check_kind, ferret_version, self_test
from tests.support.mongo import MongoServer
from tests.support.stores import MongoStores

T = TypeVar("T")


@dataclass
class FakeCollection:
    """One collection in memory.

    Attributes:
        is_atomic: Whether nobody comes between the look at a document and its change.
    """

    is_atomic: bool = True
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_dropped: bool = False

    async def insert_one(self, document: Mapping[str, Any]) -> None:
        self.documents[str(document["_id"])] = dict(document)

    async def find_one(self, where: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.documents.get(str(where["_id"]))

    async def find_one_and_update(
        self, where: Mapping[str, Any], update: Mapping[str, Any], **_: object
    ) -> dict[str, Any] | None:
        document = dict(self.documents[str(where["_id"])])
        if any(document.get(name) != value for name, value in where.items()):
            return None
        if not self.is_atomic:
            await asyncio.sleep(0)
        document |= update.get("$set", {})
        for name, step in update.get("$inc", {}).items():
            document[name] += step
        self.documents[str(where["_id"])] = document
        return document

    async def update_one(self, where: Mapping[str, Any], update: Mapping[str, Any]) -> None:
        await self.find_one_and_update(where, update)

    async def drop(self) -> None:
        self.is_dropped = True


@dataclass
class FakeServer:
    """A server that answers commands as it is told to.

    Attributes:
        runs_again: Whether a write that is repeated with its number runs again.
        index_fault: What comes of making indexes that exist.
    """

    retries_writes: bool = True
    runs_again: bool = False
    index_fault: StoreUnavailableError | None = None
    made: FakeCollection = field(default_factory=FakeCollection)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    numbers: set[tuple[int, int]] = field(default_factory=set)

    def collection(self, name: str) -> Any:
        self.names.add(name)
        return self.made

    async def make_all_indexes(self) -> None:
        if self.index_fault is not None:
            raise self.index_fault

    async def session(self) -> object:
        return object()

    @asynccontextmanager
    async def call(self, limit_s: float | None = None) -> AsyncIterator[Apart]:
        async def apart(work: Awaitable[T]) -> T:
            return await work

        yield apart

    async def command(
        self, name: str, *, limit_s: float | None = None, **values: Any
    ) -> dict[str, Any]:
        if name == "update":
            number = (id(values["session"]), values["txnNumber"])
            if self.runs_again or number not in self.numbers:
                self.numbers.add(number)
                for update in values["updates"]:
                    await self.made.update_one(update["q"], update["u"])
        return self.answers.get(name, {"setName": "rs0"})


async def test_a_sound_server_has_no_remark() -> None:
    server = FakeServer()

    assert await self_test(server) == []
    assert server.made.is_dropped
    assert all(name.startswith("doctor_") for name in server.names)


async def test_a_server_without_atomic_updates_is_a_fault() -> None:
    server = FakeServer(made=FakeCollection(is_atomic=False))

    twice, lost = await self_test(server)

    assert f"of {AT_ONCE} decisions of one request at once, {AT_ONCE} were taken" in twice.text
    assert "1 counted" in lost.text
    assert twice.remedy
    assert lost.remedy
    assert server.made.is_dropped


async def test_a_server_that_makes_no_index_twice_is_a_fault() -> None:
    server = FakeServer(index_fault=StoreUnavailableError("connection closed"))

    (remark,) = await self_test(server)

    assert "connection closed" in remark.text
    assert "start only once" in remark.remedy
    assert server.made.is_dropped


@pytest.mark.parametrize("cause", [TimeoutError(), NetworkTimeout("timed out")])
async def test_a_time_out_says_that_the_server_is_slow_and_not_that_it_is_unsuited(
    cause: Exception,
) -> None:
    fault = StoreUnavailableError("no answer within 2.0 s")
    fault.__cause__ = cause

    (remark,) = await self_test(FakeServer(index_fault=fault))

    assert "slow" in remark.text
    assert "no answer within 2.0 s" in remark.text
    assert "doctor` again" in remark.remedy
    assert "compatible" not in remark.remedy


async def test_a_server_that_runs_a_repeated_write_again_is_a_fault() -> None:
    (remark,) = await self_test(FakeServer(runs_again=True))

    assert "runs a write again" in remark.text
    assert "retryWrites=false" in remark.remedy


@pytest.mark.parametrize(
    "server",
    [
        FakeServer(runs_again=True, retries_writes=False),
        FakeServer(runs_again=True, answers={"hello": {}}),  # a standalone server
    ],
)
async def test_repeated_writes_are_no_fault_where_the_driver_repeats_none(
    server: FakeServer,
) -> None:
    assert [remark for remark in await self_test(server) if remark.remedy] == []


@pytest.mark.parametrize(
    ("hello", "is_told"),
    [({}, True), ({"setName": "rs0"}, False), ({"msg": "isdbgrid"}, False)],
)
async def test_a_standalone_server_is_worth_a_word_and_no_fault(
    hello: dict[str, Any], *, is_told: bool
) -> None:
    remarks = await self_test(FakeServer(answers={"hello": hello}))

    assert [remark.remedy for remark in remarks] == ([""] if is_told else [])


@pytest.mark.parametrize(
    ("build", "version"),
    [
        ({"version": "7.0.42", "ferretdbVersion": "v1.24.2"}, "1.24.2"),
        ({"version": "7.0.77", "ferretdb": {"version": "v2.1.0", "package": "docker"}}, "2.1.0"),
        ({"version": "7.0.0"}, ""),
        ({"ferretdbFeatures": {}}, ""),
    ],
)
def test_ferretdb_is_known_by_its_name(build: dict[str, Any], version: str) -> None:
    assert ferret_version(build) == version


async def test_ferretdb_1_is_refused_before_anybody_is_asked() -> None:
    server = FakeServer(answers={"buildInfo": {"ferretdbVersion": "v1.24.2"}})

    with pytest.raises(StoreBrokenError, match=r"FerretDB 1\.24\.2") as caught:
        await check_kind(server)

    assert caught.value.fault is Fault.UNSUITED


class Silent(FakeServer):
    """A server that does not say what it is."""

    async def command(
        self, name: str, *, limit_s: float | None = None, **values: Any
    ) -> dict[str, Any]:
        raise StoreBrokenError("not authorized", Fault.REFUSED)


async def test_a_server_that_does_not_say_what_it_is_is_left_to_the_self_test() -> None:
    await check_kind(Silent())


@pytest.mark.mongo
@pytest.mark.parametrize("driver", ["motor", "pymongo"])
async def test_the_server_of_the_tests_is_sound(mongo_server: MongoServer, driver: Driver) -> None:
    storage = MongoStores(mongo_server.uri, driver=driver, database=mongo_server.new_database())
    await storage.open()

    remarks = await storage.examine()

    assert [remark for remark in remarks if remark.remedy] == []
    assert storage._client._database is not None
    names = await storage._client._database.list_collection_names()
    assert not [name for name in names if name.startswith("doctor_")]
    await storage.close()
