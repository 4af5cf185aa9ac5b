"""Fixtures of the bot's unit tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fakes import Queue
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import Counter, a_counter


@pytest.fixture(autouse=True)
def no_work_is_left() -> Iterator[None]:
    yield
    Queue.drop_all()


@pytest.fixture
async def counter(storage: SqliteStores) -> Counter:
    made = await a_counter(storage)
    assert made.office.ran == []
    return made
