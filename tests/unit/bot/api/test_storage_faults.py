"""The database fails once at a write; the same process does the rest later."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NoReturn, cast

import pytest

from bot.records.approval import ExecutionState, Status
from storage.errors import StorageError, StoreUnavailableError
from tests.chaos.points import Fragile, Plan
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import (
    a_caller,
    a_request,
    a_result,
    a_start,
    an_office,
    lost,
    programs_of,
    settle,
    the_doubt,
    the_record,
)
from tests.unit.bot.office import Office


class FailingPlan(Plan):
    """Fails the database at the point, once."""

    def die(self, name: str) -> NoReturn:
        self.point = ""
        raise StoreUnavailableError(name)


def a_failing_office(storage: SqliteStores) -> tuple[Office, FailingPlan]:
    plan = FailingPlan()
    return an_office(cast(Any, Fragile(storage, plan))), plan


async def rest(office: Office) -> None:
    """Some minutes pass, in which all that is due is done."""
    for _ in range(3):
        with suppress(StorageError):
            await office.later(minutes=5)


@pytest.mark.parametrize("status", [Status.APPROVED, Status.REJECTED])
async def test_a_decision_whose_closing_fails_is_closed_later(
    storage: SqliteStores, status: Status
) -> None:
    office, plan = a_failing_office(storage)
    request = await a_request(office, execution="none")
    plan.point = "approvals.close <"
    with pytest.raises(StoreUnavailableError):
        await office.decide(await the_record(office, request), status)
    await rest(office)
    record = await the_record(office, request)
    assert (record.open, record.due_ms) == (False, None)


async def test_an_answer_about_a_lost_call_that_fails_to_settle_it_does_so_later(
    storage: SqliteStores,
) -> None:
    office, plan = a_failing_office(storage)
    request = await lost(office)
    plan.point = "approvals.replace <"
    plan.number = plan.reached[plan.point] + 1
    with pytest.raises(StoreUnavailableError):
        await settle(office, request, {"choice": "ran", "result": "It ran."}, Status.ANSWERED)
    await rest(office)
    assert (await the_record(office, request)).execution.state is ExecutionState.ENDED
    assert not (await the_doubt(office, request)).open


async def test_a_decision_whose_closing_fails_is_closed_also_after_its_start(
    storage: SqliteStores,
) -> None:
    office, plan = a_failing_office(storage)
    request = await a_request(office)
    plan.point = "approvals.close <"
    with pytest.raises(StoreUnavailableError):
        await office.decide(await the_record(office, request))
    programs = programs_of(office)
    decided = await programs.get(a_caller(), request.id)
    await programs.executions.start(a_caller(), request.id, a_start(decided))
    await programs.report(a_caller(), request.id, a_result("unknown"))
    await rest(office)
    await settle(office, request, {"choice": "ran"}, Status.ANSWERED)
    await rest(office)
    record = await the_record(office, request)
    assert (record.execution.state, record.open) == (ExecutionState.ENDED, False)
