"""The contract of `ApprovalStore.mark_batch` and `split`: several approvals on one card."""

from __future__ import annotations

from dataclasses import replace

from bot.stores import Stores
from storage.records import UNKNOWN_TS, Approval, Status
from tests.contract.builders import a_decision, an_approval

FIRST, SECOND, THIRD = "apr_1", "apr_2", "apr_3"
TURN = an_approval().checkpoint_id


def an_item(name: str, **changes: object) -> Approval:
    mark = UNKNOWN_TS if name == FIRST else ""
    item = an_approval(approval_id=name, interrupt_id=name, batch=FIRST, batch_ts=mark)
    return replace(item, **changes)  # type: ignore[arg-type]


async def held(storage: Stores, name: str) -> int:
    claimed = await storage.approvals.claim(name, owner="me", now_ms=6_000, until_ms=9_000)
    assert claimed is not None
    return claimed.fence


async def test_a_new_approval_is_on_no_card_with_others(storage: Stores) -> None:
    await storage.approvals.add(an_approval())
    stored = await storage.approvals.get(an_approval().approval_id)
    assert (stored.batch, stored.batch_left, stored.batch_ts) == ("", False, "")
    assert not stored.is_batched


async def test_the_card_of_several_is_where_it_was_put(storage: Stores) -> None:
    await storage.approvals.add(an_item(FIRST, due_ms=5_000))
    fence = await held(storage, FIRST)

    assert await storage.approvals.mark_batch(FIRST, fence=fence, batch_ts="1.5")

    stored = await storage.approvals.get(FIRST)
    assert (stored.batch_ts, stored.is_batched, stored.revision) == ("1.5", True, 1)


async def test_one_that_leaves_has_no_post_of_its_own_yet(storage: Stores) -> None:
    await storage.approvals.add(an_item(FIRST, due_ms=5_000, post_tried=True, batch_ts="1.5"))
    fence = await held(storage, FIRST)

    assert await storage.approvals.mark_batch(FIRST, fence=fence, leaves=True)

    stored = await storage.approvals.get(FIRST)
    assert (stored.batch_left, stored.post_tried, stored.batch_ts) == (True, False, "1.5")
    assert await storage.approvals.mark_batch(FIRST, fence=fence, batch_ts="1.6")
    assert (await storage.approvals.get(FIRST)).batch_left


async def test_nobody_marks_it_without_the_lease(storage: Stores) -> None:
    await storage.approvals.add(an_item(FIRST, due_ms=5_000))
    fence = await held(storage, FIRST)

    assert not await storage.approvals.mark_batch(FIRST, fence=fence + 1, batch_ts="1.5")
    assert (await storage.approvals.get(FIRST)).batch_ts == UNKNOWN_TS


async def test_a_split_gives_each_that_waits_a_card_of_its_own(storage: Stores) -> None:
    decision = a_decision(status=Status.APPROVED)
    over = an_item(SECOND, status=Status.APPROVED, decision=decision, due_ms=None)
    other = an_approval(approval_id="apr_9", interrupt_id="9", batch="apr_9", due_ms=None)
    before = an_item(THIRD, post_tried=True, due_ms=None)
    await storage.approvals.add_all([an_item(FIRST), over, before, other])

    names = await storage.approvals.split(FIRST, checkpoint_id=TURN, now_ms=7_000)

    assert names == {FIRST, THIRD}
    stored = await storage.approvals.get(THIRD)
    assert stored == replace(before, batch_left=True, post_tried=False, revision=2, due_ms=7_000)
    assert await storage.approvals.get(SECOND) == over
    assert await storage.approvals.get("apr_9") == other
    assert await storage.approvals.split(FIRST, checkpoint_id=TURN, now_ms=8_000) == frozenset()
