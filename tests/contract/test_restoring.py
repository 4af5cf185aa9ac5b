"""The contract of the store that marks what a copy left unfinished."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from bot.approvals.due.approval_pass import write_held
from bot.maintenance.restoring import asked_anew
from bot.records.approval import Status
from bot.stores import Stores
from storage.mongo.commands import Commands
from storage.mongo.storage import MongoCopyMarks
from tests.contract.builders import (
    APPROVAL_ID,
    THREAD_ID,
    a_decision,
    a_message,
    a_start,
    a_thread,
    an_approval,
    an_entry,
)
from tests.support.mongo import MongoServer
from tests.support.stores import MongoStores


async def test_an_empty_database_has_no_newest_moment(storage: Stores) -> None:
    assert await storage.restoring.newest_ms() == 0


async def test_the_newest_moment_is_that_of_whatever_came_last(storage: Stores) -> None:
    await storage.audit.append(an_entry(at_ms=3_000))
    await storage.audit.append(an_entry("entry-2", at_ms=9_000, action="restored"))
    assert await storage.restoring.newest_ms() == 3_000
    await storage.audit.append(an_entry("entry-3", at_ms=3_500, action="started"))
    assert await storage.restoring.newest_ms() == 3_500
    await storage.inbox.add(a_message(received_ms=4_000))
    assert await storage.restoring.newest_ms() == 4_000
    await storage.threads.ensure(a_thread(active_ms=5_000))
    assert await storage.restoring.newest_ms() == 5_000


async def test_what_is_leased_is_counted(storage: Stores) -> None:
    await storage.threads.ensure(a_thread(leased_until_ms=6))
    await storage.approvals.insert(an_approval(leased_until_ms=7))
    assert await storage.restoring.leased(now_ms=5) == 2
    assert await storage.restoring.leased(now_ms=6) == 1
    assert await storage.restoring.leased(now_ms=7) == 0


async def test_pending_approvals_come_page_by_page(storage: Stores) -> None:
    for number in range(5):
        await storage.approvals.insert(an_approval(approval_id=f"apr_{number}"))
    done = a_decision()
    await storage.approvals.insert(
        an_approval(approval_id="apr_5", status=Status.APPROVED, decision=done)
    )
    await storage.approvals.insert(an_approval(approval_id="apr_6", open=False))

    ids: list[str] = []
    page, after = await storage.restoring.pending(limit=2)
    while after:
        ids += [approval.approval_id for approval in page]
        page, after = await storage.restoring.pending(limit=2, after=after)

    assert ids == [f"apr_{number}" for number in range(5)]


@pytest.mark.parametrize("changes", [{"turn_open": True}, {"due_ms": 5}, {"due_ms": 0}])
async def test_a_thread_that_is_not_at_rest_is_found(
    storage: Stores, changes: dict[str, Any]
) -> None:
    await storage.threads.ensure(a_thread(**changes))
    await storage.threads.ensure(a_thread(thread_id="T1:C1:1"))

    threads, after = await storage.restoring.unfinished(limit=9)

    assert threads == [a_thread(**changes)]
    assert await storage.restoring.unfinished(limit=9, after=after) == ([], "")


async def test_threads_come_page_by_page(storage: Stores) -> None:
    for number in range(4):
        changes: dict[str, Any] = {"turn_open": True} if number % 2 else {"due_ms": 5}
        await storage.threads.ensure(a_thread(thread_id=f"T1:C1:{number}", **changes))

    ids: list[str] = []
    page, after = await storage.restoring.unfinished(limit=1)
    while after:
        ids += [thread.thread_id for thread in page]
        page, after = await storage.restoring.unfinished(limit=1, after=after)

    assert ids == [f"T1:C1:{number}" for number in range(4)]


async def test_an_approval_that_is_asked_anew_has_no_holder(storage: Stores) -> None:
    await storage.approvals.insert(an_approval(due_ms=5))
    old = await storage.approvals.claim(APPROVAL_ID, owner="old", now_ms=10, until_ms=10**14)
    assert old is not None
    anew = partial(asked_anew, to_ms=9, now_ms=20)

    assert await storage.restoring.rewrite(APPROVAL_ID, anew, now_ms=20)

    expected = anew(old)
    stored = await storage.approvals.get(APPROVAL_ID)
    assert stored == expected.changed(revision=stored.revision)
    assert [due.fence for due in await storage.approvals.due(now_ms=20, limit=9)] == [stored.fence]
    for owner in ("new", None):  # before and after the next claim
        assert not await write_held(
            storage.approvals, old, lambda approval: approval.with_card_ts("1.1")
        )
        new = await storage.approvals.claim(
            APPROVAL_ID, owner=owner or "late", now_ms=20, until_ms=99
        )
        assert (new is not None) == (owner == "new")
    assert (await storage.approvals.get(APPROVAL_ID)).leased_by == "new"


async def test_a_marked_thread_is_due_and_nobody_has_it(storage: Stores) -> None:
    await storage.threads.ensure(
        a_thread(turn=3, turn_open=True, leased_until_ms=99, leased_by="a", fence=4)
    )
    await storage.restoring.mark(THREAD_ID, epoch=7, now_ms=50, to_ms=40)

    thread = await storage.threads.claim(THREAD_ID, owner="b", now_ms=50, until_ms=60)
    assert thread is not None
    assert (thread.restored.epoch, thread.restored.to_ms, thread.fence) == (7, 40, 6)
    assert not await storage.threads.settle(THREAD_ID, fence=4, turn=3)
    assert await storage.threads.settle(THREAD_ID, fence=6, turn=3)
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.restored.epoch, thread.restored.to_ms, thread.restored.turn) == (0, 40, 3)


async def test_messages_that_stand_unread_in_the_copy_are_read_by_no_turn(storage: Stores) -> None:
    await storage.threads.ensure(a_thread())
    await storage.inbox.add(a_message())
    await storage.inbox.add(a_message("other", thread_id="T1:C1:1"))
    await storage.restoring.mark(THREAD_ID, epoch=7, now_ms=50, to_ms=40)
    await storage.inbox.add(a_message("since"))

    assert [message.ts for message in await storage.inbox.new(THREAD_ID, limit=9)] == ["since"]
    (old,) = await storage.inbox.of_turn(THREAD_ID, a_thread().unread_turn)
    assert old.message_id == a_message().message_id
    assert len(await storage.inbox.new("T1:C1:1", limit=9)) == 1


async def test_a_repeated_restore_finds_what_the_first_one_set_aside(storage: Stores) -> None:
    await storage.threads.ensure(a_thread(turn=3))
    await storage.inbox.add(a_message())
    for epoch in (7, 9):  # the first restore died at its end
        await storage.restoring.mark(THREAD_ID, epoch=epoch, now_ms=50, to_ms=40)

    thread = await storage.threads.get(THREAD_ID)
    assert thread.restored.epoch == 9
    (unread,) = await storage.inbox.of_turn(THREAD_ID, thread.unread_turn)
    assert unread.message_id == a_message().message_id


async def test_each_return_to_a_copy_begins_an_era_that_none_was_before(storage: Stores) -> None:
    """Two returns to one copy are two epochs: a key of one life is not that of another."""
    assert await storage.restoring.epoch() == 0
    epochs = [await storage.restoring.begin_epoch() for _ in range(3)]
    assert epochs == sorted(set(epochs))
    assert epochs[0] > 0
    assert await storage.restoring.epoch() == epochs[-1]


async def test_the_era_is_the_greatest_whatever_its_number_of_digits(
    storage: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = iter([9, 2**31, 2**31])
    monkeypatch.setattr("secrets.randbelow", lambda _: next(steps) - 1)
    epochs = [await storage.restoring.begin_epoch() for _ in range(3)]
    assert epochs == [9, 2**31 + 9, 2**32 + 9]
    assert await storage.restoring.epoch() == epochs[-1]


async def test_what_is_of_the_copy_is_stamped_with_the_epoch(storage: Stores) -> None:
    """Whatever any clock says: what is there when the epoch begins is of the copy."""
    done: dict[str, Any] = {"status": Status.APPROVED, "decision": a_decision(at_ms=2**50)}
    await storage.approvals.insert(an_approval(**done))
    await storage.approvals.insert(an_approval(approval_id="due", **done, open=False, due_ms=5))
    over = an_approval(approval_id="over", **done, open=False, due_ms=None)
    await storage.approvals.insert(over)
    epoch = await storage.restoring.begin_epoch()
    await storage.approvals.insert(an_approval(approval_id="since", **done))

    async def stamp(approval_id: str) -> int:
        return (await storage.approvals.get(approval_id)).restored.epoch

    assert [await stamp(key) for key in (APPROVAL_ID, "due")] == [epoch, epoch]
    assert [await stamp(key) for key in ("over", "since")] == [0, 0]


async def test_a_database_is_no_copy_until_somebody_puts_one_in_its_place(storage: Stores) -> None:
    assert not await storage.restoring.is_copy()
    assert not await storage.restoring.is_copy()
    await storage.restoring.end()
    assert not await storage.restoring.is_copy()


@asynccontextmanager
async def identified(
    server: MongoServer, identity: Callable[[], str]
) -> AsyncIterator[tuple[MongoStores, MongoCopyMarks]]:
    """A database whose collections have this id; the servers of these tests give none."""

    async def current() -> str:
        return identity()

    storage = MongoStores(server.uri, database=server.new_database())
    await storage.open()
    records = [Commands(storage._client, name) for name in ("approvals", "threads")]
    yield storage, MongoCopyMarks(Commands(storage._client, "notes"), current, records)
    await storage.close()


@pytest.mark.mongo
async def test_collections_that_were_made_anew_are_a_copy(mongo_server: MongoServer) -> None:
    """As `mongorestore --drop` makes them."""
    ids = ["first"]
    async with identified(mongo_server, lambda: ids[-1]) as (_, store):
        assert not await store.is_copy()
        ids.append("second")
        assert await store.is_copy()
        ids.append("")
        assert not await store.is_copy()
        ids.append("second")
        await store.end()
        assert not await store.is_copy()
        ids.append("third")
        assert await store.is_copy()


@pytest.mark.mongo
async def test_records_without_a_note_of_their_collection_are_a_copy(
    mongo_server: MongoServer,
) -> None:
    """As `mongorestore --nsInclude` makes them, without the collection `health`."""
    async with identified(mongo_server, lambda: "restored") as (storage, store):
        await storage.approvals.insert(an_approval())
        assert await store.is_copy()
        assert await store.is_copy()
        await store.end()
        assert not await store.is_copy()


async def test_a_restore_marks_the_starts_that_are_due(storage: Stores) -> None:
    await storage.starts.insert(a_start(due_ms=5), a_start("thr_2"))
    await storage.restoring.begin_epoch()
    assert (await storage.starts.get("thr_1")).is_restored
    assert not (await storage.starts.get("thr_2")).is_restored
