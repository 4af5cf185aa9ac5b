"""Steps of a ladder, and the messages beside a card, on both databases."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bot.stores import Stores
from storage.records import Approval
from tests.contract.builders import APPROVAL_ID, DIGEST, a_decision, an_approval

STEP: dict[str, Any] = {
    "reminders": 1,
    "steps": 1,
    "escalated_ms": 1_200,
    "mentioned_json": '["S1"]',
    "snoozes_json": '{"U1":5}',
    "cards_json": '[{"key":"a"}]',
    "messages_json": '[{"key":"b"}]',
    "ladder_json": '{"since_ms":1}',
}


async def held(storage: Stores, **changes: object) -> Approval:
    await storage.approvals.add(an_approval(**changes))
    found = await storage.approvals.claim(APPROVAL_ID, owner="a", now_ms=1_000, until_ms=1_500)
    assert found is not None
    return found


@pytest.mark.parametrize("redraws", [False, True])
async def test_a_step_is_on_record_with_all_that_is_sent(storage: Stores, *, redraws: bool) -> None:
    approval = await held(storage, escalate_ms=1_200)
    changed = replace(approval, **STEP, escalate_ms=None)

    climbed = await storage.approvals.climb(changed, revision=1, now_ms=1_200, redraws=redraws)

    assert climbed == replace(changed, revision=2 if redraws else 1)
    assert climbed == await storage.approvals.get(APPROVAL_ID)


async def test_nobody_climbs_what_has_changed_or_ended(storage: Stores) -> None:
    approval = await held(storage, expires_ms=9_000)
    climb, changed = storage.approvals.climb, replace(approval, **STEP)

    assert not await climb(changed, revision=2, now_ms=1_200, redraws=True)
    assert not await climb(changed, revision=1, now_ms=9_000, redraws=True)
    other = replace(changed, fence=approval.fence + 1)
    assert not await climb(other, revision=1, now_ms=1_200, redraws=True)
    missing = replace(changed, approval_id="apr_9")
    assert not await climb(missing, revision=1, now_ms=1_200, redraws=True)
    assert await storage.approvals.get(APPROVAL_ID) == approval
    decided = await storage.approvals.decide(APPROVAL_ID, a_decision(at_ms=1_100), digest=DIGEST)
    assert not await climb(changed, revision=decided.revision, now_ms=1_200, redraws=True)
    assert await storage.approvals.get(APPROVAL_ID) == decided


async def test_of_two_processes_one_climbs(two_processes: list[Stores]) -> None:
    changed = replace(await held(two_processes[0]), **STEP)

    found = await asyncio.gather(
        *(
            two_processes[i % 2].approvals.climb(changed, revision=1, now_ms=1_200, redraws=True)
            for i in range(20)
        )
    )

    assert len([one for one in found if one is not None]) == 1
    assert (await two_processes[1].approvals.get(APPROVAL_ID)).revision == 2


async def test_messages_beside_a_card_are_kept_for_who_has_the_lease(storage: Stores) -> None:
    approval = await held(storage)
    mark = storage.approvals.mark_beside

    assert await mark(APPROVAL_ID, fence=approval.fence, messages_json="[1]")
    assert await storage.approvals.get(APPROVAL_ID) == replace(approval, messages_json="[1]")
    assert await mark(APPROVAL_ID, fence=approval.fence, cards_json="[2]")
    kept = await storage.approvals.get(APPROVAL_ID)
    assert (kept.messages_json, kept.cards_json, kept.revision) == ("[1]", "[2]", 1)
    assert await mark(APPROVAL_ID, fence=approval.fence, dialog_json="[3]")
    kept = await storage.approvals.get(APPROVAL_ID)
    assert (kept.messages_json, kept.dialog_json, kept.revision) == ("[1]", "[3]", 1)
    assert not await mark(APPROVAL_ID, fence=approval.fence + 1, messages_json="[]")
    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    assert await mark(APPROVAL_ID, fence=approval.fence, messages_json="[]")
