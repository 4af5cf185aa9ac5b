"""Of two last votes at one moment, one decides, in either database (3.9)."""

from __future__ import annotations

import asyncio

import pytest

from agents.models import call, say
from bot.approvals.disclosure import Surface
from bot.errors import ApprovalClosedError
from bot.records.approval import Decision, Status
from bot.records.approval_queries import newest_of
from bot.stores import Stores
from tests.support.force import forced
from tests.unit.bot.office import ADA, BEN, THREAD_ID, Office, an_actor

CLEO = "UCLEO"
PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = {"approve": [{"from": ["sre"], "count": 2}]}
GROUPS = {"sre": {"users": [ADA, BEN, CLEO]}}


@pytest.mark.parametrize("other", [Status.APPROVED, Status.REJECTED])
async def test_one_of_two_last_votes_decides(storage: Stores, other: Status) -> None:
    policy = forced(default={"ask": ASK}, groups=GROUPS)
    office = Office(storage, [PAY, say("Fine.")], policy=policy)
    office.directory.add(CLEO)
    await office.hear("<@UBOT> pay Mia")
    await office.decide(await office.the_approval(), by=ADA)
    waits = await office.the_approval()

    async def click(by: str, status: Status) -> bool:
        given = Decision(status=status, by=by, at_ms=office.clock(), digest=waits.digest)
        try:
            await office.approvals.follow_up(
                await office.approvals.decide(waits, given, an_actor(by), surface=Surface.CARD)
            )
        except ApprovalClosedError:
            return False
        return True

    counted = await asyncio.gather(click(BEN, Status.APPROVED), click(CLEO, other))
    await office.queue.run()
    assert sorted(counted) == [False, True]
    (done,) = await newest_of(storage.approvals, THREAD_ID, limit=9)
    winner, status = ((BEN, Status.APPROVED), (CLEO, other))[counted.index(True)]
    assert (done.status, done.decision and done.decision.by) == (status, winner)
    assert [vote.by for vote in done.votes] == [ADA, winner]
    assert len(office.ran) == (status is Status.APPROVED)
