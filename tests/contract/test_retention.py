"""The contract of the store that deletes threads."""

from typing import Any

import pytest

from agents.core.checkpoint import CheckpointStatus
from bot.records.approval import Status
from bot.records.erasures import wheres_of
from bot.records.messages import MessageStatus
from bot.stores import Stores
from storage.errors import RecordNotFoundError
from tests.contract.builders import (
    THREAD_ID,
    a_decision,
    a_delivery,
    a_grant,
    a_message,
    a_post,
    a_queue,
    a_start,
    a_thread,
    a_whisper,
    an_approval,
    an_entry,
)
from tests.support.stores import MongoStores, SqliteStores

OTHER_TS = "1700000000.000101"
OTHER = f"T1:C1:{OTHER_TS}"


async def fill(storage: Stores, thread_id: str = THREAD_ID, **changes: Any) -> None:
    """Everything that a thread with one finished turn leaves."""
    ts = thread_id.rpartition(":")[2]
    await storage.threads.ensure(a_thread(thread_id=thread_id, **changes))
    taken: dict[str, Any] = {"status": MessageStatus.TAKEN, "turn": 1}
    await storage.inbox.add(a_message(ts, thread_id=thread_id, **taken))
    done = a_decision(status=Status.REJECTED)
    await storage.approvals.insert(
        an_approval(
            approval_id=f"apr_{ts}",
            thread_id=thread_id,
            status=done.status,
            decision=done,
            open=False,
            due_ms=None,
        )
    )
    await storage.posts.add(a_post(f"{thread_id}#1:m", thread_id=thread_id, posted=True, ts="9"))
    await storage.ephemeral_messages.insert(a_whisper(f"w-{ts}", thread_ts=ts, due_ms=None))
    grant = a_grant(f"{thread_id}:grant:1", thread_id=thread_id)
    await storage.grants.add(grant.changed(ended_ms=9_000))
    await storage.starts.insert(a_start(f"thr_{ts}", thread_id=thread_id))
    await storage.audit.append(an_entry(f"e-{ts}", thread_id=thread_id))
    await storage.webhooks.queues.insert(a_queue(f"apr_{ts}", thread_id=thread_id))
    await storage.webhooks.keep(a_delivery(1, id=f"whe_1:{ts}", thread_id=thread_id))
    await storage.log.append(thread_id, 1, "said")
    await storage.log.append(f"{thread_id}#1/inner", 1, "said")
    for name in ("#1", "#1/inbox", "/inbox", "#1:sub"):
        key = f"{thread_id}{name}"
        await storage.checkpoints.save(
            key, "x", status=CheckpointStatus.RUNNING, expected_version=0
        )
        await storage.checkpoints.append(key, "y", base=1, index=0)


async def all_of(storage: Stores, thread_id: str) -> dict[str, int]:
    return dict(await storage.retention.counts(thread_id))


FULL = {
    "approvals": 1,
    "messages": 1,
    "ephemeral_messages": 1,
    "grants": 1,
    "posts": 1,
    "thread_starts": 1,
    "webhook_queues": 1,
    "webhook_deliveries": 1,
    "log": 2,
    "checkpoints": 4,
    "journal": 4,
    "audit": 1,
}


def test_something_of_each_kind_is_filled_in() -> None:
    beside = SqliteStores(None).database.ledgers.logs
    assert {*FULL} == {*beside, "audit", *wheres_of(THREAD_ID)}


def full(storage: Stores) -> dict[str, int]:
    """What `fill` makes: MongoDB keeps the journal of a run in the run."""
    apart = {"journal"} if isinstance(storage, MongoStores) else set()
    return {name: number for name, number in FULL.items() if name not in apart}


async def test_all_of_a_thread_is_erased_but_its_audit(storage: Stores) -> None:
    await fill(storage)
    assert await all_of(storage, THREAD_ID) == full(storage)

    erased = sum(full(storage).values()) - 1
    assert await storage.retention.erase(THREAD_ID, limit=100) == erased

    assert await all_of(storage, THREAD_ID) == {"audit": 1}
    assert await storage.retention.erase(THREAD_ID, limit=100) == 0
    assert await storage.checkpoints.load(f"{THREAD_ID}#1/inbox") is None
    assert await storage.log.load(THREAD_ID, before_turn=9) == []
    with pytest.raises(RecordNotFoundError):
        await storage.approvals.get("apr_1700000000.000100")


async def test_nothing_of_other_threads_is_erased(storage: Stores) -> None:
    await fill(storage)
    await fill(storage, OTHER)
    await fill(storage, "T1:C10:1700000000.000100")
    await storage.retention.erase(THREAD_ID, limit=100)
    await storage.retention.strip(THREAD_ID, limit=100)

    assert await all_of(storage, OTHER) == full(storage)
    (entry,) = await storage.audit.of_thread(OTHER, limit=9)
    assert (entry.erased, entry.detail) == (False, an_entry().detail)


async def test_pieces_are_as_small_as_asked_for(storage: Stores) -> None:
    await fill(storage)

    rounds = 0
    while await storage.retention.erase(THREAD_ID, limit=1):
        rounds += 1

    assert rounds > 1
    assert await all_of(storage, THREAD_ID) == {"audit": 1}


async def test_a_message_that_no_turn_has_read_stays(storage: Stores) -> None:
    await fill(storage)
    await storage.inbox.add(a_message("1700000009.000000"))

    await storage.retention.erase(THREAD_ID, limit=100)

    assert len(await storage.inbox.new(THREAD_ID, limit=9)) == 1


async def test_the_audit_keeps_who_what_and_when(storage: Stores) -> None:
    await storage.audit.append(an_entry())
    await storage.audit.append(an_entry("entry-2", at_ms=2_000))

    assert await storage.retention.strip(THREAD_ID, limit=1) == 1
    assert await storage.retention.strip(THREAD_ID, limit=9) == 1
    assert await storage.retention.strip(THREAD_ID, limit=9) == 0

    kept = an_entry(detail={"digest": an_entry().detail["digest"]}, erased=True)
    assert (await storage.audit.of_thread(THREAD_ID, limit=9))[0] == kept


async def test_a_thread_at_rest_is_sealed_once_and_dropped(storage: Stores) -> None:
    await fill(storage)
    retention = storage.retention

    sealed = await retention.seal(THREAD_ID, owner="a", now_ms=5, until_ms=9)
    assert sealed == 1
    assert await retention.seal(THREAD_ID, owner="b", now_ms=8, until_ms=99) is None
    assert await retention.drop(THREAD_ID, fence=1)

    assert not await retention.drop(THREAD_ID, fence=1)
    with pytest.raises(RecordNotFoundError):
        await storage.threads.get(THREAD_ID)


@pytest.mark.parametrize(
    "changes",
    [{"due_ms": 1}, {"turn_open": True}, {"leased_until_ms": 6}],
    ids=["due", "turn open", "leased"],
)
async def test_a_thread_that_does_not_rest_is_not_sealed(
    storage: Stores, changes: dict[str, Any]
) -> None:
    await fill(storage, **changes)

    assert await storage.retention.seal(THREAD_ID, owner="a", now_ms=5, until_ms=9) is None
    assert await storage.threads.get(THREAD_ID) == a_thread(**changes)


async def test_a_thread_that_is_not_there_is_not_sealed(storage: Stores) -> None:
    assert await storage.retention.seal("T1:C1:1", owner="a", now_ms=5, until_ms=9) is None


async def test_whoever_is_woken_meanwhile_is_not_dropped(storage: Stores) -> None:
    await fill(storage)
    sealed = await storage.retention.seal(THREAD_ID, owner="a", now_ms=5, until_ms=9)
    assert sealed is not None
    await storage.threads.wake(THREAD_ID, now_ms=6)

    assert not await storage.retention.drop(THREAD_ID, fence=1)
    await storage.retention.give_back(THREAD_ID, fence=sealed)
    claimed = await storage.threads.claim(THREAD_ID, owner="b", now_ms=7, until_ms=20)
    assert claimed is not None


async def test_whoever_lost_the_lease_drops_nothing(storage: Stores) -> None:
    await fill(storage)
    first = await storage.retention.seal(THREAD_ID, owner="a", now_ms=5, until_ms=9)
    second = await storage.retention.seal(THREAD_ID, owner="b", now_ms=9, until_ms=20)
    assert first is not None
    assert second is not None

    assert not await storage.retention.drop(THREAD_ID, fence=first)
    assert await storage.retention.drop(THREAD_ID, fence=second)


async def test_what_is_not_over_is_counted(storage: Stores) -> None:
    await fill(storage)
    assert await storage.retention.left(THREAD_ID) == {}

    await storage.approvals.insert(an_approval())
    await storage.approvals.insert(an_approval(approval_id="apr_2", open=False, due_ms=7))
    await storage.approvals.insert(an_approval(approval_id="apr_3", open=False, due_ms=None))
    await storage.inbox.add(a_message("1700000009.000000"))
    await storage.posts.add(a_post("post-2"))
    await storage.ephemeral_messages.insert(a_whisper("whisper-2"))

    assert await storage.retention.left(THREAD_ID) == {
        "requests": 2,
        "messages": 1,
        "texts": 1,
        "answers": 1,
    }
    assert await storage.retention.left(OTHER) == {}


async def test_resting_threads_come_longest_ago_first_page_by_page(storage: Stores) -> None:
    for number in range(5):
        await storage.threads.ensure(a_thread(thread_id=f"T1:C1:{number}", active_ms=100))
    await storage.threads.ensure(a_thread(thread_id="T1:C1:8", active_ms=50))
    await storage.threads.ensure(a_thread(thread_id="T1:C1:9", active_ms=200))
    await storage.threads.ensure(a_thread(thread_id="T1:C1:a", active_ms=60, turn_open=True))
    await storage.threads.ensure(a_thread(thread_id="T1:C1:b", active_ms=60, due_ms=1))

    thread_ids: list[str] = []
    after = (-1, "")
    while page := await storage.retention.resting(before_ms=200, limit=2, after=after):
        assert len(page) <= 2
        thread_ids += [thread_id for _, thread_id in page]
        after = page[-1]

    assert thread_ids == ["T1:C1:8", *(f"T1:C1:{number}" for number in range(5))]
    assert await storage.retention.resting(before_ms=50, limit=9) == []


async def test_a_wake_makes_a_thread_young(storage: Stores) -> None:
    await storage.threads.ensure(a_thread(active_ms=100))
    await storage.threads.wake(THREAD_ID, now_ms=300)
    thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=300, until_ms=400)
    assert thread is not None
    await storage.threads.release(THREAD_ID, fence=1, wakes=1, now_ms=310)

    assert await storage.retention.resting(before_ms=300, limit=9) == []
    assert len(await storage.retention.resting(before_ms=301, limit=9)) == 1


async def test_a_thread_is_found_by_its_place(storage: Stores) -> None:
    for team in ("T1", "T10", "T2"):
        for channel in ("C1", "C2"):
            thread_id = f"{team}:{channel}:1700000000.000100"
            await storage.threads.ensure(a_thread(thread_id=thread_id))

    thread_ids = await storage.retention.named("C2", "1700000000.000100")
    assert set(thread_ids) == {f"{team}:C2:1700000000.000100" for team in ("T1", "T10", "T2")}
    assert len(thread_ids) == 3
    assert await storage.retention.named("C2", "1700000000.000101") == []


async def test_private_answers_that_are_over_are_erased_by_age(storage: Stores) -> None:
    await storage.ephemeral_messages.insert(
        a_whisper("old", due_ms=None, created_ms=10, thread_ts="")
    )
    await storage.ephemeral_messages.insert(a_whisper("due", due_ms=5, created_ms=10))
    await storage.ephemeral_messages.insert(a_whisper("young", due_ms=None, created_ms=30))

    await storage.starts.insert(a_start("failed", failure="no channel", created_ms=10))
    await storage.starts.insert(a_start("begun", thread_id="T1:C1:1.0", created_ms=10))
    assert await storage.retention.erase_ephemeral(before_ms=30, limit=9) == 2
    assert await storage.retention.erase_ephemeral(before_ms=30, limit=9) == 0
    assert not await storage.ephemeral_messages.insert(a_whisper("young"))
    assert not await storage.starts.insert(a_start("begun"))
    assert await storage.ephemeral_messages.insert(a_whisper("old"))
