"""The contracts of PostStore and AuditStore."""

import pytest

from bot.stores import Stores
from storage.errors import RecordRefusedError
from tests.contract.builders import THREAD_ID, a_post, an_entry


async def test_a_post_is_added_once(storage: Stores) -> None:
    assert await storage.posts.add(a_post())
    assert not await storage.posts.add(a_post(text="another"))

    assert await storage.posts.get("post-1") == a_post()
    assert await storage.posts.get("unknown") is None


async def test_unfinished_posts_come_oldest_first(storage: Stores) -> None:
    for name, created_ms in [("c", 30), ("b", 10), ("a", 10), ("d", 5)]:
        await storage.posts.add(a_post(name, created_ms=created_ms))
    await storage.posts.add(a_post("x", thread_id="another"))

    await storage.posts.finish("d", ts="1.2")

    assert [p.post_id for p in await storage.posts.unfinished(THREAD_ID)] == ["a", "b", "c"]
    done = a_post("d", created_ms=5, ts="1.2", posted=True, revision=1)
    assert await storage.posts.get("d") == done


async def test_the_audit_comes_oldest_first(storage: Stores) -> None:
    for name, at_ms in [("c", 30), ("b", 10), ("a", 10)]:
        await storage.audit.append(an_entry(name, at_ms=at_ms))
    await storage.audit.append(an_entry("x", thread_id="another"))

    assert [e.entry_id for e in await storage.audit.of_thread(THREAD_ID, limit=9)] == list("abc")
    assert [e.entry_id for e in await storage.audit.of_thread(THREAD_ID, limit=2)] == list("ab")
    assert await storage.audit.of_thread(THREAD_ID, limit=0) == []


@pytest.mark.parametrize("detail", [{"x": object()}, {"x": float("nan")}])
async def test_detail_that_is_not_json_is_refused(
    storage: Stores, detail: dict[str, object]
) -> None:
    with pytest.raises(RecordRefusedError, match="not JSON data"):
        await storage.audit.append(an_entry(detail=detail))


async def test_a_post_grows_and_may_fail(storage: Stores) -> None:
    await storage.posts.add(a_post("grows", text=""))
    await storage.posts.add(a_post("fails"))

    await storage.posts.begin("grows", ts="1.3")
    await storage.posts.fail("fails", reason="is_archived")

    growing = a_post("grows", text="", ts="1.3", revision=1)
    assert await storage.posts.unfinished(THREAD_ID) == [growing]
    assert await storage.posts.get("fails") == a_post("fails", failure="is_archived", revision=1)


async def test_posts_are_found_by_their_checkpoint(storage: Stores) -> None:
    await storage.posts.add(a_post("T1:C1:1.1#1:text", thread_id="T1:C1:1.1"))

    assert await storage.posts.any_of("T1:C1:1.1#1")
    assert not await storage.posts.any_of("T1:C1:1.1#")
    assert not await storage.posts.any_of("T1:C1:1.1#2")
    assert not await storage.posts.any_of("T1:C1:1.1#11")
