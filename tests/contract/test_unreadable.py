"""I14: one record that cannot be read never keeps others from their end, and is never lost."""

import logging
from typing import Any

import pytest

from agents.core.checkpoint import CheckpointStatus
from bot.records.approval_queries import newest_of, open_of
from bot.stores import Stores
from storage import documents
from storage.errors import RecordFormatError
from tests.contract.builders import (
    APPROVAL_ID,
    THREAD_ID,
    a_decision,
    a_message,
    a_post,
    a_thread,
    a_whisper,
    an_approval,
    an_entry,
)
from tests.contract.spoiling import raw, spoil
from tests.support.decided import decide
from tests.support.stores import SqliteStores

MANY = 9
POISON, GOOD, OTHER = "T1:C1:poison", "T1:C1:good", "T1:C1:other"
NEWER = {"v": 3}
LARGE = "x" * 3_000_000
TABLES = ("threads", "approvals", "ephemeral_messages")
DAMAGED = {"turn": "many"}
KINDS: dict[str, dict[str, Any]] = {
    "damaged": DAMAGED,
    "newer": NEWER,
    "large": {"requester_id": LARGE},
}


async def add(storage: Stores, *keys: str, due_ms: int = 5) -> None:
    for key in keys:
        await storage.threads.ensure(a_thread(thread_id=key, due_ms=due_ms))


async def names(storage: Stores) -> set[str]:
    return {record.record_id for record in await storage.unreadable(limit=9)}


@pytest.mark.parametrize("name", KINDS)
async def test_one_poisoned_record_among_many(storage: Stores, name: str) -> None:
    await add(storage, POISON, due_ms=1)
    await spoil(storage, "threads", POISON, **KINDS[name])
    good = {f"{GOOD}-{number}" for number in range(MANY)}
    await add(storage, *good)
    threads, seen = storage.threads, set()

    for now in (10, 20):  # two ticks: the poison takes one place of the first
        for thread in await threads.due(now_ms=now, limit=MANY):
            key = thread.thread_id
            assert await threads.claim(key, owner="a", now_ms=now, until_ms=now + 1_000)
            seen.add(key)

    is_readable = name == "large"
    assert seen == (good | {POISON} if is_readable else good)
    assert await threads.due(now_ms=30, limit=9) == []
    assert await names(storage) == (set() if is_readable else {POISON})
    assert await storage.count_unreadable() == (0 if is_readable else 1)


async def test_a_claim_of_what_cannot_be_read_gives_its_lease_back_and_no_other(
    storage: Stores,
) -> None:
    await add(storage, GOOD, POISON)
    await spoil(storage, "threads", POISON, **DAMAGED)
    claim = storage.threads.claim
    assert await claim(GOOD, owner="a", now_ms=5, until_ms=100) is not None

    assert await claim(POISON, owner="a", now_ms=5, until_ms=100) is None

    good, kept = [await raw(storage, "threads", name) for name in (GOOD, POISON)]
    assert (kept["leased_by"], kept["leased_until_ms"]) == ("", 0)
    assert kept["quarantine_reason"] != ""
    assert kept["turn"] == "many"
    assert (good["leased_by"], good["leased_until_ms"], good.get("quarantined_by", "")) == (
        "a",
        100,
        "",
    )
    assert await claim(POISON, owner="a", now_ms=500, until_ms=600) is None
    assert (await raw(storage, "threads", POISON))["fence"] == kept["fence"]  # not taken again


async def test_another_release_looks_at_it_again(storage: Stores) -> None:
    await add(storage, POISON)
    await spoil(storage, "threads", POISON, **DAMAGED)
    assert await storage.threads.due(now_ms=5, limit=9) == []

    # To another release it was never set aside by itself; and it understands what stands there.
    await spoil(storage, "threads", POISON, quarantined_by="another", turn=0)

    assert len(await storage.threads.due(now_ms=5, limit=9)) == 1
    assert await storage.threads.claim(POISON, owner="a", now_ms=5, until_ms=100) is not None
    assert (await raw(storage, "threads", POISON)).get("quarantined_by", "") == ""


async def test_to_look_again_forgets_what_this_release_could_not_read_and_nothing_else(
    storage: Stores,
) -> None:
    others = {"quarantined_by": "another", "quarantine_reason": "a new field"}
    await add(storage, POISON, OTHER)
    await spoil(storage, "threads", OTHER, **others)
    await spoil(storage, "threads", POISON, **DAMAGED)
    assert len(await storage.threads.due(now_ms=5, limit=9)) == 1
    assert (await raw(storage, "threads", POISON))["quarantine_reason"] != ""

    await storage.reconsider()

    poison, other = [await raw(storage, "threads", name) for name in (POISON, OTHER)]
    assert [poison.get(name, "") for name in others] == ["", ""]
    assert {name: other[name] for name in others} == others


async def test_the_count_of_due_work_leaves_them_out(storage: Stores) -> None:
    await add(storage, POISON, GOOD)
    await spoil(storage, "threads", POISON, **DAMAGED)
    await add(storage, OTHER, due_ms=7)
    await spoil(storage, "threads", OTHER, **NEWER)
    await storage.threads.due(now_ms=5, limit=9)

    assert await storage.count_unreadable() == 1
    await storage.threads.due(now_ms=7, limit=9)
    assert await storage.count_unreadable() == 2
    assert await storage.threads.count_due(now_ms=7) == 1


async def test_a_thread_can_be_set_quarantined_by_its_holder_alone(storage: Stores) -> None:
    await add(storage, THREAD_ID)
    thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=5, until_ms=50)
    assert thread is not None
    assert not await storage.threads.set_aside(THREAD_ID, fence=thread.fence - 1, why="no")

    assert await storage.threads.set_aside(THREAD_ID, fence=thread.fence, why="message m is odd")

    await storage.threads.wake(THREAD_ID, now_ms=60)  # somebody writes
    assert await storage.threads.due(now_ms=99, limit=9) == []
    assert await storage.threads.claim(THREAD_ID, owner="b", now_ms=99, until_ms=200) is None
    (named,) = await storage.unreadable(limit=9)
    assert (named.kind, named.record_id, named.why) == ("thread", THREAD_ID, "message m is odd")


async def test_a_thread_that_is_set_aside_has_no_holder_and_takes_no_other_with_it(
    storage: Stores,
) -> None:
    await add(storage, THREAD_ID, OTHER)
    for thread_id in (THREAD_ID, OTHER):
        assert await storage.threads.claim(thread_id, owner="a", now_ms=5, until_ms=50)
    thread, other = [await storage.threads.get(name) for name in (THREAD_ID, OTHER)]
    assert thread.fence == other.fence

    assert await storage.threads.set_aside(THREAD_ID, fence=thread.fence, why="message m is odd")

    kept = await raw(storage, "threads", THREAD_ID)
    assert (kept["leased_by"], kept["leased_until_ms"]) == ("", 0)
    assert [record.record_id for record in await storage.unreadable(limit=9)] == [THREAD_ID]
    assert await storage.threads.extend(OTHER, fence=other.fence, until_ms=90)


@pytest.mark.parametrize("thread_id", ["", "T1:C1", "T1::1700000000.000100", "T1:C1:1:1"])
async def test_an_approval_without_a_whole_thread_id_is_unreadable(
    storage: Stores, thread_id: str
) -> None:
    await storage.approvals.insert(an_approval())
    await spoil(storage, "approvals", APPROVAL_ID, thread_id=thread_id)

    with pytest.raises(RecordFormatError, match="'thread_id'"):
        await storage.approvals.get(APPROVAL_ID)


async def test_an_unreadable_approval_is_never_taken_for_none(storage: Stores) -> None:
    await storage.approvals.insert(an_approval())
    await storage.approvals.insert(an_approval(approval_id="apr_2", thread_id=OTHER))
    await spoil(storage, "approvals", APPROVAL_ID, kind="vote")

    with pytest.raises(RecordFormatError, match=APPROVAL_ID):
        await open_of(storage.approvals, THREAD_ID)
    with pytest.raises(RecordFormatError, match=APPROVAL_ID):
        await storage.approvals.get(APPROVAL_ID)
    assert len(await open_of(storage.approvals, OTHER)) == 1


async def test_an_unreadable_approval_is_left_out_where_it_is_only_shown(storage: Stores) -> None:
    await storage.approvals.insert(an_approval())
    await storage.approvals.insert(an_approval(approval_id="apr_2", position=1))
    await spoil(storage, "approvals", APPROVAL_ID, kind="vote")

    approvals = await newest_of(storage.approvals, THREAD_ID, limit=9)

    assert [approval.approval_id for approval in approvals] == ["apr_2"]


async def test_what_was_decided_stays_decided_when_it_cannot_be_read(storage: Stores) -> None:
    await storage.approvals.insert(an_approval())
    decided = await decide(storage.approvals, APPROVAL_ID, a_decision(), digest="d" * 64)
    await spoil(storage, "approvals", APPROVAL_ID, kind="vote")
    await storage.approvals.due(now_ms=10**6, limit=9)

    await spoil(storage, "approvals", APPROVAL_ID, kind="approval")

    stored = await storage.approvals.get(APPROVAL_ID)
    assert stored == decided.changed(revision=stored.revision)


@pytest.mark.parametrize("fields", [{"status": "new", "received_ms": "late"}, NEWER])
async def test_an_unreadable_message_stops_its_own_thread(
    storage: Stores, fields: dict[str, Any]
) -> None:
    await storage.inbox.add(a_message("1.1"))
    await storage.inbox.add(a_message("1.2", thread_id=OTHER))
    await spoil(storage, "messages", "T1:C1:1.1", **fields)

    with pytest.raises(RecordFormatError, match=r"T1:C1:1\.1"):
        await storage.inbox.new(THREAD_ID, limit=9)
    assert len(await storage.inbox.new(OTHER, limit=9)) == 1

    with pytest.raises(RecordFormatError, match=r"T1:C1:1\.1"):
        await storage.inbox.take(["T1:C1:1.1"], turn=1)


async def test_an_unreadable_post_does_not_hold_up_the_others(
    storage: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        await storage.posts.add(a_post(f"post-{number}", created_ms=number))
    await spoil(storage, "posts", "post-1", created_ms="noon")

    with caplog.at_level(logging.ERROR, documents.__name__):
        unfinished = [await storage.posts.unfinished(THREAD_ID) for _ in range(3)]

    assert [[post.post_id for post in each] for each in unfinished] == [["post-0", "post-2"]] * 3
    assert len(caplog.records) == 1
    assert await names(storage) == {"post-1"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"detail": "[1]"}, "field 'detail' is damaged"), (NEWER, ""), ({"detail": "["}, "detail")],
)
async def test_the_audit_says_that_an_entry_cannot_be_read(
    storage: Stores, fields: dict[str, Any], why: str
) -> None:
    for number in range(3):
        await storage.audit.append(an_entry(f"entry-{number}", at_ms=number))
    await spoil(storage, "audit", "entry-1", **fields)

    entries = await storage.audit.of_thread(THREAD_ID, limit=9)

    assert [entry.action for entry in entries] == ["decided", "unreadable", "decided"]
    assert (entries[1].entry_id, entries[1].approval_id) == ("entry-1", APPROVAL_ID)
    assert why in str(entries[1].detail["why"])


async def test_an_entry_with_a_damaged_time_holds_up_no_restore(storage: Stores) -> None:
    for number in range(3):
        await storage.audit.append(an_entry(f"entry-{number}", at_ms=number))
    await spoil(storage, "audit", "entry-2", at_ms="noon")

    assert await storage.trail.newest_ms() == 1


async def test_an_unreadable_history_is_said(storage: Stores) -> None:
    await storage.log.append("l", 1, "x")
    await spoil(storage, "log", f"l/{1:016}", v=9)

    with pytest.raises(RecordFormatError, match="log entry l"):
        await storage.log.load("l", before_turn=2)


@pytest.mark.parametrize("fields", [{"status": "resting"}, {"version": "new"}, NEWER])
async def test_an_unreadable_checkpoint_is_said(storage: Stores, fields: dict[str, Any]) -> None:
    await storage.checkpoints.save("c", "x", status=CheckpointStatus.PENDING, expected_version=0)
    await spoil(storage, "checkpoints", "c", **fields)

    with pytest.raises(RecordFormatError, match="checkpoint c"):
        await storage.checkpoints.load("c")


@pytest.mark.parametrize("name", ["title", "why", "arguments"])
async def test_a_text_that_is_none_is_the_fault_of_its_record_alone(name: str) -> None:
    storage = SqliteStores(None)  # MongoDB's drivers write no such text
    await storage.open()
    for key in (POISON, GOOD):
        await storage.approvals.insert(an_approval(approval_id=key, due_ms=5))
    await spoil(storage, "approvals", POISON, **{name: b"\xff\xfe"})

    approvals = await storage.approvals.due(now_ms=9, limit=9)

    assert [approval.approval_id for approval in approvals] == [GOOD]
    await storage.close()


@pytest.mark.parametrize("fields", [{"created_ms": "now"}, NEWER, {"created_ms": b"\xff no JSON"}])
async def test_what_no_worker_has_met_is_named_too(storage: Stores, fields: dict[str, Any]) -> None:
    for key in (GOOD, POISON):
        await add(storage, key, due_ms=1 << 40)
        await storage.approvals.insert(an_approval(approval_id=key, due_ms=1 << 40))
        await storage.ephemeral_messages.insert(a_whisper(key, due_ms=1 << 40))
    for table in TABLES:
        await spoil(storage, table, POISON, **fields)

    assert {(record.kind, record.record_id) for record in await storage.unreadable(limit=9)} == {
        ("thread", POISON),
        ("approval", POISON),
        ("ephemeral message", POISON),
    }
    for table in TABLES:
        assert not (await raw(storage, table, GOOD)).get("quarantine_reason")


@pytest.mark.parametrize("fields", [DAMAGED, NEWER])
async def test_a_thread_that_is_due_and_cannot_be_read_can_be_deleted(
    storage: Stores, fields: dict[str, Any]
) -> None:
    await add(storage, THREAD_ID, due_ms=5)
    await spoil(storage, "threads", THREAD_ID, **fields)

    fence = await storage.retention.seal(THREAD_ID, owner="a", now_ms=10, until_ms=99)

    assert fence is not None
    assert await storage.retention.drop(THREAD_ID, fence=fence)
    assert await names(storage) == set()
