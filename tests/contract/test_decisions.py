"""Decisions of many at once, on each database (I3)."""

from __future__ import annotations

import asyncio

from bot.approvals.changes import decided
from bot.records.approval import Approval
from bot.stores import Stores
from storage.documents import update
from tests.contract.builders import APPROVAL_ID, DIGEST, a_decision, an_approval


async def test_i3_two_processes_decide_once(two_processes: list[Stores]) -> None:
    await two_processes[0].approvals.insert(an_approval())

    async def click(number: int) -> Approval | None:
        decision = a_decision(by=f"U{number}")
        approvals = two_processes[number % 2].approvals
        return await update(
            approvals,
            APPROVAL_ID,
            lambda approval: decided(approval, decision, digest=DIGEST),
            writes_due=True,
        )

    outcomes = await asyncio.gather(*map(click, range(50)))

    (winner,) = [outcome for outcome in outcomes if outcome is not None]
    assert await two_processes[1].approvals.get(APPROVAL_ID) == winner
