"""Programs that wait hear of a change at once, whichever process made it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest

from bot.api.callers import ApiCaller
from bot.api.requests import ProgramRequests
from bot.api.shapes import ApiListQuery
from bot.ports.people import Person
from bot.records.approval import Approval, Status
from tests.support.fakes import FakeDirectory
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import (
    a_caller,
    a_request,
    an_office,
    programs_of,
    the_record,
)
from tests.unit.bot.office import ADA, Office


async def test_a_revision_is_waited_for(office: Office) -> None:
    request = await a_request(office)
    at_once = await programs_of(office).get(a_caller(), request.id, wait_s=50, after=0)
    assert at_once.status == "pending"
    waiting = asyncio.create_task(
        programs_of(office).get(a_caller(), request.id, wait_s=50, after=at_once.revision)
    )
    await asyncio.sleep(0)
    await office.decide(await the_record(office, request), by=ADA)
    assert (await waiting).revision > at_once.revision


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowReads(ProgramRequests):
    """Reads a request, which people decide before the answer of the database arrives."""

    office: Office

    async def get(self, caller: ApiCaller, approval_id: str) -> Approval:
        read = await ProgramRequests.get(self, caller, approval_id)
        if read.status is Status.PENDING:
            await self.office.decide(read, by=ADA)
            for _ in range(200):  # the hub looks several times meanwhile
                await asyncio.sleep(0)
        return read


async def test_a_decision_between_reading_and_waiting_is_not_missed(office: Office) -> None:
    request, other = await a_request(office, key="a"), await a_request(office, key="b")
    programs = programs_of(office)
    before = asyncio.create_task(programs.get(a_caller(), other.id, wait_s=50))  # the hub looks
    requests = programs.requests
    parts = {name: getattr(requests, name) for name in ProgramRequests.__slots__}
    slow = replace(programs, requests=SlowReads(**parts, office=office))
    async with asyncio.timeout(10):
        assert (await slow.get(a_caller(), request.id, wait_s=50)).status == "approved"
    programs.stop_waiting()
    await before


class CountingDirectory(FakeDirectory):
    """Counts the people that are looked up."""

    looked_up = 0

    async def person(self, user_id: str) -> Person:
        self.looked_up += 1
        return await super().person(user_id)


@pytest.mark.parametrize("count", [1, 20])
async def test_a_change_is_worked_out_once_for_all_who_wait(
    storage: SqliteStores, count: int
) -> None:
    directory = CountingDirectory()
    office, other = an_office(storage, directory=directory), an_office(storage, owner="other")
    request, programs = await a_request(office), programs_of(office)
    waiting = [
        asyncio.create_task(programs.get(a_caller(), request.id, wait_s=50)) for _ in range(count)
    ]
    await asyncio.sleep(0)
    directory.looked_up = 0
    await other.decide(await the_record(other, request), by=ADA)
    assert {answer.status for answer in await asyncio.gather(*waiting)} == {"approved"}
    assert directory.looked_up <= 3


async def test_nobody_is_left_in_the_hub(office: Office) -> None:
    """Check 7: of callers that got their answer, ran out of time, or left."""
    request, programs = await a_request(office), programs_of(office)
    calls = [
        asyncio.create_task(programs.get(a_caller(), request.id, wait_s=wait_s))
        for wait_s in (50, 0.01, 50)
    ]
    await asyncio.sleep(0)
    calls[2].cancel()
    assert (await calls[1]).status == "pending"
    assert programs.waiters.held == 1
    await office.decide(await the_record(office, request), by=ADA)
    await asyncio.gather(*calls, return_exceptions=True)
    assert programs.waiters.held == 0


async def test_a_stop_answers_all_who_wait(office: Office) -> None:
    request, programs = await a_request(office), programs_of(office)
    waiting = asyncio.create_task(programs.get(a_caller(), request.id, wait_s=50))
    await asyncio.sleep(0)
    programs.stop_waiting()
    assert (await waiting).status == "pending"
    assert (await programs.get(a_caller(), request.id, wait_s=50)).status == "pending"


async def test_a_feed_tells_the_newest_state_of_each_request(office: Office) -> None:
    programs = programs_of(office)
    first, second = await a_request(office, key="a"), await a_request(office, key="b")
    async with programs.changed_since(a_caller(), office.clock() - 1) as feed:
        changes = [await feed.next(timeout_s=9) for _ in range(2)]
        assert {request.id for request in changes if request} == {first.id, second.id}
        await office.decide(await the_record(office, first), by=ADA)
        while (news := await feed.next(timeout_s=9)) and news.status != "approved":
            pass  # a state may come twice
        assert news is not None
        assert news.id == first.id
        programs.stop_waiting()
        assert await feed.next(timeout_s=9) is None


async def test_a_list_has_the_requests_of_the_program_newest_first(office: Office) -> None:
    programs, names = programs_of(office), []
    for number in range(5):
        where = {"group": f"g{number % 2}"}
        changes: dict[str, Any] = {"metadata": {"n": str(number)}, "where": where}
        names.append((await a_request(office, key=str(number), **changes)).id)
        office.clock.forward(seconds=1)
    await office.decide(await the_record(office, await programs.get(a_caller(), names[4])), by=ADA)
    page, last = await programs.list(a_caller(), ApiListQuery(limit=2), after=None)
    assert [request.id for request in page] == [names[4], names[3]]
    rest, end = await programs.list(a_caller(), ApiListQuery(limit=9), after=last)
    assert ([request.id for request in rest], end) == (names[2::-1], None)
    queries = {
        ApiListQuery(status=("approved",)): [4],
        ApiListQuery(execution=("ready",)): [4],
        ApiListQuery(group="g1"): [3, 1],
        ApiListQuery(key="2"): [2],
        ApiListQuery(metadata="n=0"): [0],
    }
    for query, numbers in queries.items():
        page, _ = await programs.list(a_caller(), query, after=None)
        assert [request.id for request in page] == [names[n] for n in numbers]
    assert await programs.list(a_caller(id="prg_2"), ApiListQuery(), after=None) == ([], None)
