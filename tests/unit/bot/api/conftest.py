"""An office with a door for programs, under the rule that asks people."""

from __future__ import annotations

import pytest

from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import an_office
from tests.unit.bot.office import Office


@pytest.fixture
def office(storage: SqliteStores) -> Office:
    return an_office(storage)
