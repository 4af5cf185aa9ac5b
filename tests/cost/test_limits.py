"""What a program at its limit costs another program: no command of the database (check 16)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.api.problems import ApiProblemError
from bot.records.programs import ProgramLimits
from tests.cost.counting import counting, watching
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import ASKS, a_caller, a_request, an_office

PENDING = 15


async def test_16_a_program_at_its_limit_does_not_slow_another_one(tmp_path: Path) -> None:
    with watching():
        storage = SqliteStores(tmp_path)
        await storage.open()
        office = an_office(storage, {**ASKS, "when": {"program": "*"}})
        busy = a_caller(limits=ProgramLimits(pending=PENDING))
        other = a_caller(id="prg_2", name="cd", salt="6b" * 32)
        await a_request(office, other, key="first")
        with counting() as before:
            await a_request(office, other, key="before")
        for number in range(PENDING):
            await a_request(office, busy, key=str(number))
        with pytest.raises(ApiProblemError, match="too-many-pending"):
            await a_request(office, busy, key="one more")
        with counting() as after:
            await a_request(office, other, key="after")
        await storage.close()
    assert (after.total, after.writes) == (before.total, before.writes)
