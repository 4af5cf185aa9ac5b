"""The contract of what is written or read together, or returns what it wrote."""

import asyncio

import pytest

from bot.records.approval import (
    Approval,
    CastVote,
    Comment,
    Emergency,
    Execution,
    ExecutionState,
    Grounds,
    LastEdit,
    RequesterMessage,
    StoredEdits,
)
from bot.records.approval_queries import get_all
from bot.stores import Stores
from storage.errors import RecordNotFoundError, RecordRefusedError
from tests.contract.builders import (
    APPROVAL_ID,
    a_decision,
    a_post,
    an_approval,
)


def some(count: int) -> list[Approval]:
    return [an_approval(approval_id=f"apr_{n}", position=n) for n in range(count)]


async def test_nothing_is_added_by_nothing(storage: Stores) -> None:
    assert await storage.approvals.insert() == frozenset()
    await storage.audit.append()
    assert await get_all(storage.approvals, []) == []
    assert await storage.inbox.take([], turn=1) == []


async def test_what_cannot_be_stored_is_refused_among_several(storage: Stores) -> None:
    with pytest.raises(RecordRefusedError):
        await storage.approvals.insert(an_approval(), an_approval(approval_id="b", tool="\ud83d"))


async def test_i4_what_people_and_programs_write_can_always_be_stored(storage: Stores) -> None:
    odd, whole = "a\ud83d", "a\ufffd"
    asked = Comment(by="U1", text=odd, at_ms=1)
    why = Emergency(what=odd, why_now=odd)
    vote = CastVote(by="U1", choice="reject", at_ms=1, digest="d", note=odd, result=odd)
    approval = an_approval(
        title=odd,
        why=odd,
        preview=odd,
        decision=a_decision(reason=odd, emergency=why, title=odd, preview=odd),
        dialog=(asked, asked.changed(answer=odd)),
        said=(RequesterMessage(by="U1", text=odd, at_ms=1),),
        votes=(vote.changed(grounds=Grounds(name=odd)),),
        edits=StoredEdits(last=LastEdit(at_ms=1, shown="d", note=odd)),
        execution=Execution(state=ExecutionState.FAILED, at_ms=1, text=odd),
    )
    await storage.approvals.insert(approval)

    assert str(await storage.approvals.get(APPROVAL_ID)).count(whole) == 17


async def test_several_are_read_in_the_order_of_their_ids(storage: Stores) -> None:
    first, second, third = some(3)
    await storage.approvals.insert(first, second, third)

    assert list(await get_all(storage.approvals, ["apr_2", "apr_0"])) == [third, first]
    with pytest.raises(RecordNotFoundError, match="'apr_9'"):
        await get_all(storage.approvals, ["apr_0", "apr_9"])


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
