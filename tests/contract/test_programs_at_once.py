"""Of many programs that do the same at once, over two processes, one is first (checks 3, 4, 31)."""

from __future__ import annotations

import asyncio

from bot.api.problems import ApiProblemError
from bot.stores import Stores
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


async def test_a_hundred_creations_with_one_key_are_one_request(storage: Stores) -> None:
    offices = [an_office(storage), an_office(storage, owner="other")]
    answers = await asyncio.gather(
        *(
            programs_of(offices[number % 2]).create(a_caller(), asked(), idempotency_key="k")
            for number in range(100)
        )
    )
    for office in offices:
        await office.queue.run()
    assert len({answer.request.id for answer in answers}) == 1
    assert sum(answer.is_new for answer in answers) == 1
    assert sum(len(office.notifier.posts) for office in offices) == 1


async def test_of_two_hundred_starts_one_gets_a_token(storage: Stores) -> None:
    offices = [an_office(storage), an_office(storage, owner="other")]
    request = await a_request(offices[0])
    await offices[0].decide(await the_record(offices[0], request), by=ADA)
    done = await programs_of(offices[0]).get(a_caller(), request.id)
    starts = (
        programs_of(offices[number % 2]).executions.start(a_caller(), done.id, a_start(done))
        for number in range(200)
    )
    ends = await asyncio.gather(*starts, return_exceptions=True)
    codes = [end.code for end in ends if isinstance(end, ApiProblemError)]
    assert codes == ["already-started"] * 199
