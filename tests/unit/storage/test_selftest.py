"""The self-test finds servers on which two people could decide one request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

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
        keeps_indexes: Whether indexes that exist may be made again.
    """

    is_atomic: bool = True
    keeps_indexes: bool = True
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    indexes: int = 0
    is_dropped: bool = False

    async def insert_one(self, document: Mapping[str, Any]) -> None:
        self.documents[str(document["_id"])] = dict(document)

    async def find_one(self, where: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.documents.get(str(where["_id"]))

    async def find_one_and_update(
        self, where: Mapping[str, Any], update: Mapping[str, Any], **_: object
    ) -> dict[str, Any] | None:
        found = dict(self.documents[str(where["_id"])])
        if any(found.get(name) != value for name, value in where.items()):
            return None
        if not self.is_atomic:
            await asyncio.sleep(0)
        found |= update.get("$set", {})
        for name, step in update.get("$inc", {}).items():
            found[name] += step
        self.documents[str(where["_id"])] = found
        return found

    async def update_one(self, where: Mapping[str, Any], update: Mapping[str, Any]) -> None:
        await self.find_one_and_update(where, update)

    async def drop(self) -> None:
        self.is_dropped = True


@dataclass
class FakeServer:
    """A server that answers commands as it is told to."""

    made: FakeCollection = field(default_factory=FakeCollection)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def collection(self, name: str) -> Any:
        self.names.add(name)
        return self.made

    async def create_indexes(self, name: str, models: object) -> None:
        self.made.indexes += 1
        if self.made.indexes > 1 and not self.made.keeps_indexes:
            raise StoreUnavailableError("connection closed")

    @asynccontextmanager
    async def call(self, limit_s: float | None = None) -> AsyncIterator[Apart]:
        async def apart(work: Awaitable[T]) -> T:
            return await work

        yield apart

    async def command(self, name: str, *, limit_s: float | None = None) -> dict[str, Any]:
        return self.answers.get(name, {"setName": "rs0"})


async def test_a_sound_server_has_no_remark() -> None:
    server = FakeServer()

    assert await self_test(server) == []
    assert server.made.is_dropped
    assert all(name.startswith("doctor_") for name in server.names)


async def test_a_server_without_atomic_updates_is_a_fault() -> None:
    server = FakeServer(FakeCollection(is_atomic=False))

    twice, lost = await self_test(server)

    assert f"of {AT_ONCE} decisions of one request at once, {AT_ONCE} were taken" in twice.text
    assert "1 counted" in lost.text
    assert twice.remedy
    assert lost.remedy
    assert server.made.is_dropped


async def test_a_server_that_makes_no_index_twice_is_a_fault() -> None:
    server = FakeServer(FakeCollection(keeps_indexes=False))

    (remark,) = await self_test(server)

    assert "connection closed" in remark.text
    assert "start only once" in remark.remedy


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

    async def command(self, name: str, *, limit_s: float | None = None) -> dict[str, Any]:
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
