"""The contract of the write of a run that takes the lease along, so that no claim is needed."""

from __future__ import annotations

import pytest

from storage.base import Storage
from storage.errors import RecordNotFoundError
from storage.records import Approval, Lease, Status
from tests.contract.builders import APPROVAL_ID, THREAD_ID, a_decision, a_thread, an_approval

LEASE = Lease(owner="a", until_ms=9_500)


def let_run(**changes: object) -> Approval:
    return an_approval(status=Status.APPROVED, decision=a_decision(), **changes)


async def marked(storage: Storage, *, now_ms: int = 2_000) -> Approval:
    """What a run writes on its approval."""
    stored = await storage.approvals.mark_run(
        APPROVAL_ID, was="", run_json="{1}", now_ms=now_ms, lease=LEASE
    )
    assert stored is not None
    return stored


async def test_the_lease_that_nobody_has_is_taken(storage: Storage) -> None:
    await storage.approvals.add(let_run(fence=3, due_ms=5_000))

    stored = await marked(storage)

    assert LEASE.is_on(stored)
    assert (stored.fence, stored.run_json, stored.revision) == (4, "{1}", 2)
    assert await storage.approvals.get(APPROVAL_ID) == stored
    other = await storage.approvals.claim(APPROVAL_ID, owner="b", now_ms=9_499, until_ms=20_000)
    assert other is None
    assert await storage.approvals.release(
        APPROVAL_ID, fence=4, revision=stored.revision, due_ms=None, now_ms=2_100
    )


async def test_a_lease_that_is_over_is_taken(storage: Storage) -> None:
    await storage.approvals.add(let_run(leased_by="b", leased_until_ms=2_000, fence=1))

    assert LEASE.is_on(await marked(storage))

    assert not await storage.approvals.release(
        APPROVAL_ID, fence=1, revision=1, due_ms=None, now_ms=2_100
    )


@pytest.mark.parametrize("owner", ["a", "b"])
async def test_a_lease_is_left_to_who_has_it(storage: Storage, owner: str) -> None:
    held = let_run(leased_by=owner, leased_until_ms=2_001, due_ms=2_001, fence=1)
    await storage.approvals.add(held)

    stored = await marked(storage)

    assert not LEASE.is_on(stored)
    lease = (held.leased_by, held.leased_until_ms, held.fence)
    assert (stored.leased_by, stored.leased_until_ms, stored.fence) == lease
    assert stored.due_ms == 2_000  # who has it sees at the release that more is to be done


async def test_a_taken_lease_that_nobody_gives_back_is_due_at_its_end(storage: Storage) -> None:
    await storage.approvals.add(let_run(due_ms=None))
    stored = await marked(storage)

    assert not await storage.approvals.due(now_ms=9_499, limit=9)
    assert list(await storage.approvals.due(now_ms=9_500, limit=9)) == [stored]


async def test_a_run_that_cannot_be_noted_takes_no_lease(storage: Storage) -> None:
    record = let_run(run_json="{0}", due_ms=None)
    await storage.approvals.add(record)

    assert not await storage.approvals.mark_run(
        APPROVAL_ID, was="", run_json="{1}", now_ms=2_000, lease=LEASE
    )

    assert await storage.approvals.get(APPROVAL_ID) == record


async def test_a_wake_takes_the_lease_that_nobody_has(storage: Storage) -> None:
    await storage.threads.ensure(a_thread())

    woken = await storage.threads.wake(THREAD_ID, now_ms=2_000, lease=LEASE)

    assert woken is not None
    assert LEASE.is_on(woken)
    assert (woken.fence, woken.wakes, woken.active_ms) == (1, 1, 2_000)
    assert await storage.threads.get(THREAD_ID) == woken
    assert not await storage.threads.claim(THREAD_ID, owner="b", now_ms=9_499, until_ms=20_000)
    assert await storage.threads.release(THREAD_ID, fence=1, wakes=1, now_ms=2_100)
    assert (await storage.threads.get(THREAD_ID)).due_ms is None


async def test_a_wake_leaves_a_lease_to_who_has_it(storage: Storage) -> None:
    await storage.threads.ensure(a_thread())
    first = await storage.threads.wake(THREAD_ID, now_ms=2_000, lease=LEASE)
    assert first is not None

    other = Lease(owner="b", until_ms=17_000)
    second = await storage.threads.wake(THREAD_ID, now_ms=2_001, lease=other)

    assert second is not None
    assert not other.is_on(second)
    lease = (first.leased_by, first.leased_until_ms, first.fence)
    assert (second.leased_by, second.leased_until_ms, second.fence) == lease
    assert (second.wakes, second.due_ms) == (2, 2_001)
    assert not await storage.threads.release(
        THREAD_ID, fence=first.fence, wakes=first.wakes, now_ms=2_100
    )


async def test_a_wake_takes_a_lease_that_is_over(storage: Storage) -> None:
    await storage.threads.ensure(a_thread())
    await storage.threads.wake(THREAD_ID, now_ms=2_000, lease=LEASE)

    other = Lease(owner="b", until_ms=25_000)
    woken = await storage.threads.wake(THREAD_ID, now_ms=9_500, lease=other)

    assert woken is not None
    assert other.is_on(woken)
    assert woken.fence == 2


async def test_a_wake_of_no_thread_takes_nothing(storage: Storage) -> None:
    with pytest.raises(RecordNotFoundError):
        await storage.threads.wake("T1:C1:9.9", now_ms=2_000, lease=LEASE)


async def test_a_thread_is_born_with_a_lease(storage: Storage) -> None:
    born = a_thread(leased_by="a", leased_until_ms=9_500, due_ms=9_500, fence=1, wakes=1)
    assert LEASE.is_on(born)

    assert await storage.threads.add(born)

    assert await storage.threads.get(THREAD_ID) == born
    assert not await storage.threads.claim(THREAD_ID, owner="b", now_ms=9_499, until_ms=20_000)
    assert await storage.threads.claim(THREAD_ID, owner="b", now_ms=9_500, until_ms=20_000)


async def test_a_thread_that_is_there_stays_as_it_is(storage: Storage) -> None:
    first = a_thread(due_ms=5)
    assert await storage.threads.add(first)

    assert not await storage.threads.add(a_thread(requester_id="U2"))

    assert await storage.threads.get(THREAD_ID) == first
