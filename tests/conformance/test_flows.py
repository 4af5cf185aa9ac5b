"""The conformance table of the policies: every flow, by its id, on both databases.

The real use cases and cards, behind Bolt and the listeners, between the sandbox's workspace and a
database, with a clock that the case moves; see `bot.commands.rehearsal`.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.commands.rehearsal.cases import Case, read_cases
from bot.commands.rehearsal.rehearse import rehearse
from storage.base import Storage
from storage.mongo import MongoStorage
from storage.sqlite import SqliteStorage
from tests.support.mongo import MongoServer

FLOWS = [
    one
    for one in read_cases(Path(__file__).parents[1] / "data" / "cases.yaml")
    if one.kind == "flow"
]
DATABASES = [
    pytest.param("sqlite"),
    pytest.param("mongodb", marks=pytest.mark.mongo),
]


@pytest.fixture(params=DATABASES)
async def empty(request: pytest.FixtureRequest) -> AsyncIterator[Storage]:
    storage: Storage = SqliteStorage(None)
    if request.param == "mongodb":
        server: MongoServer = request.getfixturevalue("mongo_server")
        storage = MongoStorage(server.uri, database=server.new_database())
    await storage.open()
    yield storage
    await storage.close()


@pytest.mark.parametrize("case", FLOWS, ids=lambda one: one.id)
async def test_a_flow_goes_as_the_table_says(case: Case, empty: Storage) -> None:
    assert "\n".join(map(str, await rehearse(case, empty))) == ""


def test_all_flows_are_played() -> None:
    assert len(FLOWS) == 169
