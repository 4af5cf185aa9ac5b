"""The contract of the counts that metrics show."""

from bot.records.approval import Decision, Status
from bot.records.approval_queries import count_due, count_pending
from bot.stores import Stores
from tests.contract.builders import THREAD_ID, a_thread, an_approval
from tests.support.decided import decide


async def test_threads_that_are_due(storage: Stores) -> None:
    assert await storage.threads.count_due(now_ms=50) == 0
    for number, due_ms in enumerate([30, 10, None, 99]):
        await storage.threads.ensure(a_thread(thread_id=f"T1:C1:{number}", due_ms=due_ms))
    assert await storage.threads.count_due(now_ms=50) == 2
    await storage.threads.claim("T1:C1:1", owner="a", now_ms=50, until_ms=80)
    assert await storage.threads.count_due(now_ms=50) == 1
    assert await storage.threads.count_due(now_ms=80) == 2


async def test_approvals_that_are_due_or_pending(storage: Stores) -> None:
    await storage.threads.ensure(a_thread())
    assert await count_pending(storage.approvals) == 0
    for number, due_ms in enumerate([30, 10, 99]):
        approval = an_approval(
            approval_id=f"apr_{number}", thread_id=THREAD_ID, due_ms=due_ms, expires_ms=1_000
        )
        await storage.approvals.insert(approval)
    assert await count_pending(storage.approvals) == 3
    assert await count_due(storage.approvals, now_ms=50) == 2
    decision = Decision(status=Status.APPROVED, by="U2", at_ms=60)
    await decide(storage.approvals, "apr_2", decision, digest=an_approval().digest)
    assert await count_pending(storage.approvals) == 2
    assert await count_due(storage.approvals, now_ms=60) == 3
