"""Old requests of programs are deleted as old threads are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from bot.maintenance.retention import Forgetting, Retention
from bot.records.approval import Status
from tests.unit.bot.api.program_office import a_caller, a_request, acts_of, the_record
from tests.unit.bot.office import ADA, Office


def a_retention(office: Office) -> Retention:
    forgetting = Forgetting(storage=office.storage, clock=office.clock, owner="sweeper")
    return Retention(forgetting=forgetting, keep=timedelta(days=90))


async def test_what_is_over_and_old_is_deleted(office: Office) -> None:
    await office.storage.programs.add_key(a_caller().key)
    where: dict[str, Any] = {"where": {"group": "run-7"}}
    over = await a_request(office, key="a", **where)
    await office.decide(await the_record(office, over), Status.REJECTED, by=ADA, reason="No.")
    pending = await a_request(office, key="b")
    office.clock.forward(hours=91 * 24)
    young = await a_request(office, key="c")
    for _ in range(2):
        await a_retention(office).step()
    left = {
        approval.approval_id for approval in (await office.storage.approvals.find({})).documents
    }
    assert left == {pending.id, young.id}
    assert await acts_of(office, await the_record(office, young)) == ["requested"]


async def test_a_key_names_its_newest_request_when_older_ones_are_deleted(office: Office) -> None:
    await office.storage.programs.add_key(a_caller().key)
    first = await a_request(office, repeat="after_use")
    await office.decide(await the_record(office, first), Status.REJECTED, by=ADA)
    office.clock.forward(hours=91 * 24)
    second = await a_request(office, repeat="after_use")
    assert second.id != first.id
    for _ in range(2):
        await a_retention(office).step()
    assert (await a_request(office, repeat="after_use")).id == second.id
    assert len((await office.storage.approvals.find({})).documents) == 1


async def test_a_group_stays_as_long_as_one_of_it(office: Office) -> None:
    await office.storage.programs.add_key(a_caller().key)
    where: dict[str, Any] = {"where": {"group": "run-7"}}
    first = await a_request(office, key="a", **where)
    await office.decide(await the_record(office, first), Status.REJECTED, by=ADA, reason="No.")
    office.clock.forward(hours=91 * 24)
    await a_request(office, key="b", **where)
    await a_retention(office).step()
    assert (await the_record(office, first)).status is Status.REJECTED
