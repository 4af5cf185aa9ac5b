"""The contract of what is written or read together, or returns what it wrote."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bot.stores import Stores
from bot.threads.messages import Message, MessageStatus
from storage.errors import RecordFormatError, RecordNotFoundError, RecordRefusedError
from storage.records import Approval, ApprovalHead, DrawnCard, Kind, Status
from tests.contract.builders import (
    APPROVAL_ID,
    DIGEST,
    THREAD_ID,
    a_decision,
    a_message,
    a_post,
    a_thread,
    an_approval,
    an_entry,
)
from tests.contract.spoiling import spoil


def some(count: int) -> list[Approval]:
    return [an_approval(approval_id=f"apr_{n}", position=n) for n in range(count)]


async def claimed(storage: Stores, **changes: object) -> Approval:
    await storage.approvals.add(an_approval(**changes))
    approval = await storage.approvals.claim(APPROVAL_ID, owner="a", now_ms=1_000, until_ms=1_500)
    assert approval is not None
    return approval


async def test_several_approvals_are_added_with_their_entries(storage: Stores) -> None:
    approvals = some(3)
    entries = [an_entry(f"{one.approval_id}:requested") for one in approvals]

    new = await storage.approvals.add_all(approvals, entries=entries)

    assert new == {"apr_0", "apr_1", "apr_2"}
    assert list(await storage.approvals.open_of(THREAD_ID)) == approvals
    assert list(await storage.audit.of_thread(THREAD_ID, limit=9)) == entries


async def test_adding_several_again_changes_nothing_and_adds_what_is_missing(
    storage: Stores,
) -> None:
    first, second, third = some(3)
    await storage.approvals.add_all([first, second], entries=[an_entry("e0")])
    changed = [replace(first, title="another"), second, third]

    new = await storage.approvals.add_all(
        changed, entries=[an_entry("e0", action="forged"), an_entry("e1")]
    )

    assert new == {third.approval_id}
    assert list(await storage.approvals.open_of(THREAD_ID)) == [first, second, third]
    entries = await storage.audit.of_thread(THREAD_ID, limit=9)
    assert list(entries) == [an_entry("e0"), an_entry("e1")]


async def test_nothing_is_added_by_nothing(storage: Stores) -> None:
    assert await storage.approvals.add_all([]) == frozenset()
    await storage.audit.append_all([])
    await storage.approvals.close_all([])
    assert await storage.approvals.get_all([]) == []
    assert await storage.inbox.take([], turn=1) == []


async def test_of_several_at_once_each_is_new_to_one_caller(storage: Stores) -> None:
    results = await asyncio.gather(*(storage.approvals.add_all(some(4)) for _ in range(5)))

    assert sorted(name for new in results for name in new) == [f"apr_{n}" for n in range(4)]


async def test_an_entry_that_is_not_json_refuses_all_of_them(storage: Stores) -> None:
    with pytest.raises(RecordRefusedError):
        await storage.approvals.add_all(some(2), entries=[an_entry(detail={"x": object()})])

    assert await storage.approvals.open_of(THREAD_ID) == []


async def test_what_cannot_be_stored_is_refused_among_several(storage: Stores) -> None:
    with pytest.raises(RecordRefusedError):
        await storage.approvals.add_all(
            [an_approval(), an_approval(approval_id="b", title="\ud83d")]
        )


async def test_several_entries_are_kept_once(storage: Stores) -> None:
    await storage.audit.append(an_entry("a"))
    await storage.audit.append_all([an_entry("a", action="forged"), an_entry("b")])

    entries = await storage.audit.of_thread(THREAD_ID, limit=9)
    assert list(entries) == [an_entry("a"), an_entry("b")]


async def test_several_are_read_in_the_order_of_their_ids(storage: Stores) -> None:
    first, second, third = some(3)
    await storage.approvals.add_all([first, second, third])

    assert list(await storage.approvals.get_all(["apr_2", "apr_0"])) == [third, first]
    with pytest.raises(RecordNotFoundError, match="'apr_9'"):
        await storage.approvals.get_all(["apr_0", "apr_9"])


async def test_several_are_closed_and_only_they(storage: Stores) -> None:
    await storage.approvals.add_all(some(3))

    await storage.approvals.close_all(["apr_0", "apr_2", "apr_9"])
    await storage.approvals.close_all(["apr_0"])

    assert [one.approval_id for one in await storage.approvals.open_of(THREAD_ID)] == ["apr_1"]
    assert (await storage.approvals.get("apr_2")).open is False


async def test_heads_say_where_open_approvals_stand(storage: Stores) -> None:
    first, second, third = some(3)
    second = replace(second, kind=Kind.QUESTION, created_ms=500)
    await storage.approvals.add_all([first, second, third])
    await storage.approvals.add(an_approval(approval_id="x", thread_id="another"))
    await storage.approvals.decide("apr_0", a_decision(), digest=DIGEST)
    await storage.approvals.close("apr_2")

    heads = await storage.approvals.heads_of(THREAD_ID)

    revision = (await storage.approvals.get("apr_0")).revision
    changed = replace(_head(first), status=Status.APPROVED, revision=revision)
    assert revision > first.revision
    assert list(heads) == [_head(second), changed]


def _head(approval: Approval) -> ApprovalHead:
    return ApprovalHead(
        approval_id=approval.approval_id,
        kind=approval.kind,
        checkpoint_id=approval.checkpoint_id,
        interrupt_id=approval.interrupt_id,
        created_ms=approval.created_ms,
        status=approval.status,
        revision=approval.revision,
    )


@pytest.mark.parametrize("fields", [{"v": 2}, {"status": "?"}, {"interrupt_id": 7}])
async def test_a_head_that_cannot_be_read_is_not_left_out(
    storage: Stores, fields: dict[str, object]
) -> None:
    await storage.approvals.add_all(some(2))
    await spoil(storage, "approvals", "apr_0", **fields)

    with pytest.raises(RecordFormatError, match="apr_0"):
        await storage.approvals.heads_of(THREAD_ID)


async def test_what_became_of_a_call_comes_back_as_written(storage: Stores) -> None:
    await storage.approvals.add(an_approval())
    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)

    marked = await storage.approvals.mark_run(APPROVAL_ID, was="", run_json="{}", now_ms=3_000)

    assert marked is not None
    assert marked.run_json == "{}"
    assert marked == await storage.approvals.get(APPROVAL_ID)


async def test_what_is_stuck_comes_back_as_written(storage: Stores) -> None:
    approval = await claimed(storage)

    stuck = await storage.approvals.mark_stuck(
        APPROVAL_ID, fence=approval.fence, digest=DIGEST, stuck="Ada is away."
    )

    assert stuck is not None
    assert stuck.stuck == "Ada is away."
    assert stuck == await storage.approvals.get(APPROVAL_ID)


async def test_a_release_records_the_card_that_was_drawn(storage: Stores) -> None:
    approval = await claimed(storage, undeliverable="is_archived")

    assert await storage.approvals.release(
        APPROVAL_ID,
        fence=approval.fence,
        revision=1,
        due_ms=5_000,
        now_ms=2_000,
        drawn=DrawnCard(card_ts="1.2", revision=1),
    )

    assert await storage.approvals.get(APPROVAL_ID) == replace(
        an_approval(),
        fence=approval.fence,
        due_ms=5_000,
        card_ts="1.2",
        drawn_revision=1,
        post_tried=True,
    )


async def test_a_card_is_recorded_also_when_there_is_more_to_show(storage: Stores) -> None:
    approval = await claimed(storage)
    await storage.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)

    assert not await storage.approvals.release(
        APPROVAL_ID,
        fence=approval.fence,
        revision=1,
        due_ms=5_000,
        now_ms=2_500,
        drawn=DrawnCard(card_ts="1.2", revision=1),
    )

    stored = await storage.approvals.get(APPROVAL_ID)
    assert (stored.card_ts, stored.drawn_revision, stored.post_tried) == ("1.2", 1, True)
    assert (stored.due_ms, stored.revision) == (2_500, 2)


async def test_who_lost_the_lease_records_no_card(storage: Stores) -> None:
    approval = await claimed(storage)
    await storage.approvals.claim(APPROVAL_ID, owner="b", now_ms=1_500, until_ms=2_000)

    assert not await storage.approvals.release(
        APPROVAL_ID,
        fence=approval.fence,
        revision=1,
        due_ms=None,
        now_ms=1_600,
        drawn=DrawnCard(card_ts="1.2", revision=1),
    )

    stored = await storage.approvals.get(APPROVAL_ID)
    assert (stored.card_ts, stored.leased_by) == ("", "b")


async def test_a_release_without_a_card_leaves_it_as_it_is(storage: Stores) -> None:
    approval = await claimed(storage, card_ts="1.2", post_tried=True, undeliverable="is_archived")

    await storage.approvals.release(
        APPROVAL_ID, fence=approval.fence, revision=1, due_ms=None, now_ms=2_000
    )

    stored = await storage.approvals.get(APPROVAL_ID)
    assert (stored.card_ts, stored.post_tried) == ("1.2", True)
    assert stored.undeliverable == "is_archived"


async def test_a_post_that_is_known_comes_back_instead(storage: Stores) -> None:
    assert await storage.posts.add_or_get(a_post(text="")) is None
    await storage.posts.begin("post-1", ts="1.3")

    assert await storage.posts.add_or_get(a_post()) == a_post(text="", ts="1.3", revision=1)
    assert await storage.posts.get("post-1") == a_post(text="", ts="1.3", revision=1)


async def test_of_many_who_add_a_post_one_is_first(storage: Stores) -> None:
    results = await asyncio.gather(*(storage.posts.add_or_get(a_post()) for _ in range(10)))

    assert results.count(None) == 1
    assert results.count(a_post()) == 9


async def test_a_post_is_finished_with_its_text(storage: Stores) -> None:
    await storage.posts.add(a_post("grew", text=""))
    await storage.posts.add(a_post("whole"))

    await storage.posts.finish("grew", ts="1.4", text="All of it.")
    await storage.posts.finish("whole", ts="1.5")

    grown = a_post("grew", text="All of it.", ts="1.4", posted=True, revision=1)
    assert await storage.posts.get("grew") == grown
    assert await storage.posts.get("whole") == a_post("whole", ts="1.5", posted=True, revision=1)


def _taken(message: Message, turn: int) -> Message:
    return message.changed(status=MessageStatus.TAKEN, turn=turn, revision=1)


@pytest.mark.parametrize("names", [["2"], ["3", "2"], ["2", "unknown"]])
async def test_taking_gives_what_the_turn_has_now(storage: Stores, names: list[str]) -> None:
    messages = {name: a_message(name) for name in ("1", "2", "3")}
    for message in messages.values():
        await storage.inbox.add(message)
    await storage.inbox.take([messages["1"].message_id], turn=1)

    taken = await storage.inbox.take(
        [messages["1"].message_id, *(f"T1:C1:{name}" for name in names)], turn=2
    )

    expected = [_taken(messages[name], 2) for name in sorted(names) if name in messages]
    assert list(taken) == expected


async def test_what_was_taken_before_is_not_given(storage: Stores) -> None:
    await storage.inbox.add(a_message())
    (first,) = await storage.inbox.take([a_message().message_id], turn=1)

    assert first == _taken(a_message(), 1)
    assert await storage.inbox.take([a_message().message_id], turn=2) == []


async def test_a_turn_is_recorded_with_whose_words_it_reads(storage: Stores) -> None:
    await storage.threads.ensure(a_thread(due_ms=10, requesters=("U1",)))
    thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=10, until_ms=20)
    assert thread is not None

    async def set_turn(turn: int, requesters: Sequence[str] | None) -> tuple[str, ...]:
        assert await storage.threads.set_turn(
            THREAD_ID,
            fence=thread.fence,
            turn=turn,
            turn_open=True,
            requesters=requesters,
        )
        return (await storage.threads.get(THREAD_ID)).requesters

    assert await set_turn(1, None) == ("U1",)
    assert await set_turn(1, ["U1", "U2"]) == ("U1", "U2")


async def test_a_thread_is_ensured_by_one_who_is_late(
    new_storage: Callable[[], Stores], storage: Stores
) -> None:
    first = await storage.threads.ensure(a_thread())
    await storage.threads.wake(THREAD_ID, now_ms=7)

    again = await storage.threads.ensure(a_thread(requester_id="U9"))

    assert first == a_thread()
    assert again == await storage.threads.get(THREAD_ID)
    assert again.wakes == 1
