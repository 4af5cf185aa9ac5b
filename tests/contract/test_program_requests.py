"""Requests of programs on both engines: each query is served by an index."""

from __future__ import annotations

import asyncio

from bot.api.problems import ApiProblemError
from bot.api.shapes import ApiListQuery, ApiResult
from bot.maintenance.restoring import Restoring
from bot.records.approval import ExecutionState
from bot.stores import Stores
from tests.contract.builders import a_program_key
from tests.unit.bot.api.program_office import (
    a_caller,
    a_request,
    a_start,
    an_office,
    asked,
    programs_of,
    the_record,
)
from tests.unit.bot.office import ADA


async def test_a_request_is_made_decided_run_and_listed(storage: Stores) -> None:
    office = an_office(storage)
    programs = programs_of(office)
    request = (await programs.create(a_caller(), asked(), idempotency_key="k")).request
    await office.queue.run()
    waiting = asyncio.create_task(programs.get(a_caller(), request.id, wait_s=50))
    await asyncio.sleep(0)
    await office.decide(await the_record(office, request), by=ADA)
    request = await waiting
    begin = a_start(request)
    started = await programs.executions.start(a_caller(), request.id, begin)
    look = await programs.executions.introspect(
        a_caller(), token=started.token, digest=begin.digest, consume=True
    )
    assert look.active
    result = ApiResult(outcome="ran", token=started.token)
    assert (await programs.report(a_caller(), request.id, result)).execution.state == "ran"
    for query in (ApiListQuery(limit=5), ApiListQuery(key="k")):
        items, _ = await programs.list(a_caller(), query, after=None)
        assert [item.id for item in items] == [request.id]
    async with programs.changed_since(a_caller(), 0) as feed:
        news = await feed.next(timeout_s=9)
        assert news is not None


async def test_of_starts_at_once_one_wins(storage: Stores) -> None:
    office = an_office(storage)
    request = await a_request(office)
    await office.decide(await the_record(office, request), by=ADA)
    programs = programs_of(office)
    request = await programs.get(a_caller(), request.id)
    starts = [programs.executions.start(a_caller(), request.id, a_start(request)) for _ in range(8)]
    ends = await asyncio.gather(*starts, return_exceptions=True)
    assert len([end for end in ends if isinstance(end, ApiProblemError)]) == 7


async def test_a_restore_ends_what_programs_could_start_and_their_keys(storage: Stores) -> None:
    office = an_office(storage)
    requests = [await a_request(office, key=str(number)) for number in range(3)]
    for request in requests:
        await office.decide(await the_record(office, request), by=ADA)
    await storage.programs.add_key(a_program_key(expires_ms=office.clock() + 9_000))
    pages, after = [], None
    while True:
        page, after = await storage.restoring.of_programs(limit=2, after=after)
        pages.append(len(page))
        if after is None:
            break
    assert sum(pages) == 3
    marked = await Restoring(storage=storage, clock=office.clock).mark()
    assert marked.keys == 1
    states = {(await the_record(office, request)).execution.state for request in requests}
    assert states == {ExecutionState.LAPSED}
    (key,) = await storage.programs.all_keys()
    assert not key.is_live(office.clock())
