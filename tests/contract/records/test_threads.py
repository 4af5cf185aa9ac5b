"""The contract of ThreadStore, beside what each collection does: see `test_documents`."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bot.records.thread import Thread, ThreadStore
from bot.stores import Stores
from storage.errors import RecordNotFoundError
from tests.contract.builders import THREAD_ID, a_thread

OTHER_ID = "T1:C1:1700000000.000200"


async def claimed(storage: Stores, *, now_ms: int = 10, until_ms: int = 100) -> Thread:
    await storage.threads.ensure(a_thread())
    await storage.threads.wake(THREAD_ID, now_ms=now_ms)
    thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=now_ms, until_ms=until_ms)
    assert thread is not None
    return thread


async def test_ensure_keeps_the_first(storage: Stores) -> None:
    first = a_thread(requester_id="U1", due_ms=5, turn=3, turn_open=True, attempts=2)

    assert await storage.threads.ensure(first) == first
    assert await storage.threads.ensure(a_thread(requester_id="U2")) == first
    assert await storage.threads.get(THREAD_ID) == first


async def test_of_many_that_ensure_all_get_one(storage: Stores) -> None:
    threads = await asyncio.gather(
        *(storage.threads.ensure(a_thread(requester_id=f"U{i}")) for i in range(20))
    )

    assert len({thread.requester_id for thread in threads}) == 1


async def test_an_unknown_thread_is_named(storage: Stores) -> None:
    with pytest.raises(RecordNotFoundError, match="no thread has the id 'T9'"):
        await storage.threads.get("T9")
    with pytest.raises(RecordNotFoundError):
        await storage.threads.wake("T9", now_ms=1)
    assert await storage.threads.claim("T9", owner="a", now_ms=1, until_ms=2) is None


async def test_i14_a_parked_thread_that_fails_lets_the_others_go_first(storage: Stores) -> None:
    """Otherwise 25 threads that Slack refuses would keep all younger ones parked for ever."""
    threads = storage.threads
    for name, parked_ms in ((THREAD_ID, 1), (OTHER_ID, 2)):
        await threads.ensure(
            a_thread(thread_id=name, parked_ms=parked_ms, parked_by="f1", due_ms=5)
        )
    assert await threads.parked() == [(THREAD_ID, "f1"), (OTHER_ID, "f1")]
    thread = await threads.claim(THREAD_ID, owner="a", now_ms=10, until_ms=100)
    assert thread is not None

    await threads.release(THREAD_ID, fence=thread.fence, wakes=0, now_ms=20, retry_ms=50)

    assert await threads.parked() == [(OTHER_ID, "f1"), (THREAD_ID, "f1")]


async def test_a_wake_makes_work_due(storage: Stores) -> None:
    await storage.threads.ensure(a_thread())
    assert await storage.threads.due(now_ms=10, limit=5) == []

    await storage.threads.wake(THREAD_ID, now_ms=10)

    assert await storage.threads.due(now_ms=9, limit=5) == []
    assert [t.wakes for t in await storage.threads.due(now_ms=10, limit=5)] == [1]
    assert (await storage.threads.get(THREAD_ID)).active_ms == 10


async def test_running_threads_of_a_requester_are_those_with_a_lease_and_an_open_turn(
    storage: Stores,
) -> None:
    def a_running(number: int, **changes: object) -> Thread:
        fields = {"leased_by": "a", "leased_until_ms": 100, "due_ms": 100, "turn_open": True}
        made = {"thread_id": f"T1:C1:{number}", "created_ms": number, "requester_id": "U1"}
        return a_thread(**{**made, **fields, **changes})

    for thread in (
        a_running(1),
        a_running(2, due_ms=10),  # woken meanwhile
        a_running(3, turn_open=False),
        a_running(4, leased_until_ms=50),
        a_running(5, requester_id="U2"),
        a_running(6, leased_until_ms=0, due_ms=None),
        a_running(7, thread_id="T2:C1:7"),
    ):
        await storage.threads.ensure(thread)

    threads = await storage.threads.running("T1", "U1", now_ms=50, limit=9)
    assert [running.created_ms for running in threads] == [2, 1]
    assert len(await storage.threads.running("T1", "U1", now_ms=50, limit=1)) == 1
    assert await storage.threads.running("T1", "U1", now_ms=50, limit=0) == []


async def test_two_processes_claim_once(two_processes: list[Stores]) -> None:
    await two_processes[0].threads.ensure(a_thread(due_ms=10))

    claims = await asyncio.gather(
        *(
            two_processes[i % 2].threads.claim(THREAD_ID, owner=f"p{i}", now_ms=10, until_ms=100)
            for i in range(20)
        )
    )

    assert sum(thread is not None for thread in claims) == 1


async def test_the_holder_may_extend(storage: Stores) -> None:
    thread = await claimed(storage)

    assert await storage.threads.extend(THREAD_ID, fence=thread.fence, until_ms=300)

    stored = await storage.threads.get(THREAD_ID)
    assert (stored.leased_until_ms, stored.due_ms) == (300, 100)


async def test_who_lost_the_lease_changes_nothing(storage: Stores) -> None:
    first = await claimed(storage, until_ms=100)
    second = await storage.threads.claim(THREAD_ID, owner="b", now_ms=100, until_ms=200)

    assert not await storage.threads.extend(THREAD_ID, fence=first.fence, until_ms=900)
    assert not await storage.threads.set_turn(THREAD_ID, fence=first.fence, turn=7, turn_open=True)
    assert not await storage.threads.release(
        THREAD_ID, fence=first.fence, wakes=first.wakes, now_ms=150
    )
    assert await storage.threads.get(THREAD_ID) == second


async def test_who_gave_the_lease_back_cannot_extend_it(storage: Stores) -> None:
    thread = await claimed(storage)
    await storage.threads.release(THREAD_ID, fence=thread.fence, wakes=thread.wakes, now_ms=20)

    assert not await storage.threads.extend(THREAD_ID, fence=thread.fence, until_ms=900)
    assert (await storage.threads.get(THREAD_ID)).leased_until_ms == 0


async def test_the_holder_records_its_turn(storage: Stores) -> None:
    thread = await claimed(storage)

    assert await storage.threads.set_turn(THREAD_ID, fence=thread.fence, turn=1, turn_open=True)

    stored = await storage.threads.get(THREAD_ID)
    assert (stored.turn, stored.turn_open, stored.checkpoint_id) == (1, True, f"{THREAD_ID}#1")


async def test_a_release_leaves_nothing_due(storage: Stores) -> None:
    thread = await claimed(storage)

    assert await storage.threads.release(
        THREAD_ID, fence=thread.fence, wakes=thread.wakes, now_ms=20
    )

    stored = await storage.threads.get(THREAD_ID)
    assert (stored.due_ms, stored.leased_by, stored.leased_until_ms) == (None, "", 0)
    assert await storage.threads.due(now_ms=10_000, limit=5) == []


async def test_a_wake_during_the_lease_is_not_lost(storage: Stores) -> None:
    thread = await claimed(storage)
    await storage.threads.wake(THREAD_ID, now_ms=15)
    await storage.threads.extend(THREAD_ID, fence=thread.fence, until_ms=300)

    assert not await storage.threads.release(
        THREAD_ID, fence=thread.fence, wakes=thread.wakes, now_ms=20
    )

    stored = await storage.threads.get(THREAD_ID)
    assert (stored.due_ms, stored.leased_until_ms) == (20, 0)
    again = await storage.threads.claim(THREAD_ID, owner="b", now_ms=20, until_ms=200)
    assert again is not None
    assert again.wakes == 2


@pytest.mark.parametrize("is_woken", [False, True])
async def test_a_release_may_end_the_turn_in_the_same_write(
    storage: Stores, *, is_woken: bool
) -> None:
    await storage.threads.ensure(a_thread(turn=3, turn_open=True))
    await storage.threads.wake(THREAD_ID, now_ms=1_000)
    thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=1_000, until_ms=2_000)
    assert thread is not None
    if is_woken:
        await storage.threads.wake(THREAD_ID, now_ms=1_500)
    for fence, is_open in ((thread.fence - 1, True), (thread.fence, False)):
        await storage.threads.release(
            THREAD_ID, fence=fence, wakes=thread.wakes, now_ms=1_600, ends_turn=True
        )
        stored = await storage.threads.get(THREAD_ID)
        assert (stored.turn, stored.turn_open) == (3, is_open)
    released = await storage.threads.get(THREAD_ID)
    assert released.due_ms == (1_600 if is_woken else None)


async def test_a_wake_at_the_moment_of_release_is_not_lost(storage: Stores) -> None:
    for round_ in range(10):
        thread_id = f"T1:C1:{round_}"
        await storage.threads.ensure(a_thread(thread_id=thread_id, due_ms=10))
        thread = await storage.threads.claim(thread_id, owner="a", now_ms=10, until_ms=100)
        assert thread is not None

        await asyncio.gather(
            storage.threads.release(thread_id, fence=1, wakes=thread.wakes, now_ms=20),
            storage.threads.wake(thread_id, now_ms=20),
        )

        assert (await storage.threads.get(thread_id)).due_ms == 20


async def test_attempts_count_errors_in_a_row(storage: Stores) -> None:
    await storage.threads.ensure(a_thread(due_ms=10))
    seen = []
    for retry_ms in (20, 30, None):
        thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=50, until_ms=99)
        assert thread is not None
        await storage.threads.release(
            THREAD_ID, fence=thread.fence, wakes=thread.wakes, now_ms=10, retry_ms=retry_ms
        )
        stored = await storage.threads.get(THREAD_ID)
        seen.append((stored.attempts, stored.due_ms))

    assert seen == [(1, 20), (2, 30), (0, None)]


async def test_a_retry_that_is_due_already_is_more_to_do(storage: Stores) -> None:
    thread = await claimed(storage)

    assert not await storage.threads.release(
        THREAD_ID, fence=thread.fence, wakes=thread.wakes, now_ms=20, retry_ms=20
    )


async def test_an_error_counts_even_when_somebody_woke_the_thread(storage: Stores) -> None:
    thread = await claimed(storage)
    await storage.threads.wake(THREAD_ID, now_ms=15)

    assert not await storage.threads.release(
        THREAD_ID, fence=thread.fence, wakes=thread.wakes, now_ms=20, retry_ms=500
    )

    stored = await storage.threads.get(THREAD_ID)
    assert (stored.attempts, stored.due_ms) == (1, 20)


async def test_whose_words_were_read_is_recorded_by_the_holder_of_the_lease(
    storage: Stores,
) -> None:
    first = await claimed(storage)
    requesters = ("U1", "U2")
    assert await storage.threads.set_requesters(THREAD_ID, fence=first.fence, requesters=requesters)

    second = await storage.threads.claim(THREAD_ID, owner="b", now_ms=100, until_ms=200)
    assert second is not None
    assert second.requesters == requesters
    assert not await storage.threads.set_requesters(THREAD_ID, fence=first.fence, requesters=())
    await storage.threads.release(THREAD_ID, fence=second.fence, wakes=second.wakes, now_ms=101)
    assert not await storage.threads.set_requesters(THREAD_ID, fence=second.fence, requesters=())
    assert (await storage.threads.get(THREAD_ID)).requesters == requesters


Write = Callable[[ThreadStore, Thread], Awaitable[bool]]
WRITES: dict[str, Write] = {
    "set_aside": lambda store, thread: store.set_aside(
        thread.thread_id, fence=thread.fence, why="damaged"
    ),
    "extend": lambda store, thread: store.extend(
        thread.thread_id, fence=thread.fence, until_ms=300
    ),
    "set_turn": lambda store, thread: store.set_turn(
        thread.thread_id, fence=thread.fence, turn=7, turn_open=True, requesters=["U7"]
    ),
    "set_requesters": lambda store, thread: store.set_requesters(
        thread.thread_id, fence=thread.fence, requesters=["U7"]
    ),
    "release": lambda store, thread: store.release(
        thread.thread_id, fence=thread.fence, wakes=thread.wakes, now_ms=20
    ),
}


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_changes_the_thread_that_it_names_and_no_other(
    storage: Stores, name: str
) -> None:
    other = await claimed(storage)
    await storage.threads.ensure(a_thread(thread_id=OTHER_ID, due_ms=10))
    thread = await storage.threads.claim(OTHER_ID, owner="a", now_ms=10, until_ms=100)
    assert thread is not None
    assert thread.fence == other.fence

    assert await WRITES[name](storage.threads, thread)

    assert await storage.threads.get(THREAD_ID) == other
    changed = await storage.threads.get(OTHER_ID)
    assert changed.thread_id == OTHER_ID
    assert changed != thread


async def test_a_turn_begins_with_its_requesters_or_leaves_them_as_they_are(
    storage: Stores,
) -> None:
    thread = await claimed(storage)
    name, fence = THREAD_ID, thread.fence
    requesters = ("U7",)

    assert await storage.threads.set_turn(
        name, fence=fence, turn=1, turn_open=True, requesters=requesters
    )
    assert (await storage.threads.get(name)).requesters == requesters

    assert await storage.threads.set_turn(name, fence=fence, turn=2, turn_open=True)
    assert (await storage.threads.get(name)).requesters == requesters


async def test_work_that_was_cut_off_is_known_and_counted(storage: Stores) -> None:
    first = await claimed(storage)
    assert not first.was_cut_off
    second = await storage.threads.claim(THREAD_ID, owner="b", now_ms=100, until_ms=200)
    assert second is not None
    assert second.was_cut_off
    assert not await storage.threads.count_crash(THREAD_ID, fence=first.fence)
    assert await storage.threads.count_crash(THREAD_ID, fence=second.fence)
    third = await storage.threads.claim(THREAD_ID, owner="b", now_ms=200, until_ms=300)
    assert third is not None
    assert (third.was_cut_off, third.crashes) == (True, 1)
    await storage.threads.release(
        THREAD_ID, fence=third.fence, wakes=third.wakes, now_ms=210, retry_ms=220
    )
    last = await storage.threads.claim(THREAD_ID, owner="b", now_ms=220, until_ms=300)
    assert last is not None
    assert (last.was_cut_off, last.crashes) == (False, 0)


async def test_what_was_set_aside_was_not_cut_off_and_keeps_its_count(storage: Stores) -> None:
    first = await claimed(storage)
    await storage.threads.count_crash(THREAD_ID, fence=first.fence)
    assert await storage.threads.set_aside(THREAD_ID, fence=first.fence, why="it crashes")
    stored = await storage.threads.get(THREAD_ID)
    assert (stored.clean_fence, stored.crashes) == (first.fence, 1)
