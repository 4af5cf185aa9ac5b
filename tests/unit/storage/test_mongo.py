"""What is special about the shared database: addresses and secrets."""

import ast
import asyncio
import inspect
import re
from datetime import timedelta
from typing import Any

import pytest
from pymongo.errors import OperationFailure

from storage.errors import StoreBrokenError, StoreUnavailableError
from storage.mongo import Driver, commands as commands_module, selftest as selftest_module
from storage.mongo.client import Client
from tests.support.mongo import MAY_LEAK
from tests.support.stores import MongoStores

pytestmark = MAY_LEAK

SHORT = timedelta(milliseconds=200)
DRIVERS_OWN = r"_collection\.|collection\(scratch\)|cursor"
DRIVERS: list[Driver] = ["motor", "pymongo"]


def a_client(uri: str, **changes: Any) -> Client:
    settings: dict[str, Any] = {"driver": "pymongo", "database": None, "timeout": SHORT}
    return Client(uri, **{**settings, **changes})


def test_no_operation_of_a_driver_is_awaited_where_it_could_be_cut_off() -> None:
    awaited = [
        ast.unparse(node.value)
        for module in (commands_module, selftest_module)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Await) and re.search(DRIVERS_OWN, ast.unparse(node.value))
    ]

    assert len(awaited) > 15
    assert [expression for expression in awaited if not expression.startswith("apart(")] == []


class Stuck(Client):
    """A client whose connections answer nothing; it counts how often there were new ones."""

    connections = 0

    def _connect(self) -> Any:
        self.connections += 1
        return object()

    async def ask(self, limit_s: float) -> None:
        async with self.call(limit_s) as apart:
            await apart(asyncio.Event().wait())


async def test_what_older_connections_left_undone_costs_the_new_ones_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("storage.mongo.client.PATIENCE", 0)
    client = Stuck("mongodb://127.0.0.1:1/", driver="pymongo", database=None, timeout=SHORT)
    client._database = client._connect()
    first, second = (asyncio.create_task(client.ask(limit_s)) for limit_s in (0.01, 0.03))

    for asking in (first, second):
        with pytest.raises(StoreUnavailableError):
            await asking
        async with client.call():  # the next one finds what is left
            pass

    assert client.connections == 2
    await client.close()


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    "uri",
    [
        "postgres://u:hunter2@host/db",
        "mongodb://u:hunter2@host:notaport/db",
        "mongodb://u:hunter2@@host/db",
        "mongodb://u:hunter2@host/bad name",
        "",
    ],
)
async def test_an_address_that_makes_no_sense_is_refused(uri: str, driver: Driver) -> None:
    storage = MongoStores(uri, driver=driver)

    with pytest.raises(StoreUnavailableError, match="its address cannot be used") as caught:
        await storage.open()
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("driver", DRIVERS)
async def test_a_server_that_is_not_there_is_reported_without_the_password(driver: Driver) -> None:
    storage = MongoStores("mongodb://bot:hunter2@127.0.0.1:1/db", driver=driver, timeout=SHORT)

    with pytest.raises(StoreUnavailableError) as caught:
        await storage.open()
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(storage)


@pytest.mark.parametrize("said", ["hunter 2", "hunter%202", "bot:hunter%202"])
def test_credentials_are_cut_out_of_what_the_driver_says(said: str) -> None:
    client = a_client("mongodb://bot:hunter%202@host/db")

    with pytest.raises(StoreBrokenError) as caught, client.translating():
        raise OperationFailure(f"no {said} here, " + "and so on " * 100)

    assert "hunter" not in caught.value.detail
    assert caught.value.detail.startswith("the server refuses this: no ***")
    assert len(caught.value.detail) < 400


@pytest.mark.parametrize(
    ("uri", "given", "name"),
    [
        ("mongodb://127.0.0.1:1/", None, "countersign"),
        ("mongodb://127.0.0.1:1/acme?retryWrites=true&w=majority&journal=true", None, "acme"),
        (
            "mongodb://127.0.0.1:1/acme?readPreference=primary&readConcernLevel=majority",
            "other",
            "other",
        ),
    ],
)
async def test_the_database_and_its_promises(uri: str, given: str | None, name: str) -> None:
    client = a_client(uri, database=given)
    with pytest.raises(StoreUnavailableError):
        await client.open()

    database = client._connect()

    assert database.name == name
    assert database.write_concern.document == {"w": "majority"}
    assert database.read_concern.level == "majority"
    assert database.read_preference.mongos_mode == "primary"
    assert database.client.options.retry_writes
    await client.close()
