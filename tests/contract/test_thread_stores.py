"""The contract of ThreadStore, on every adapter and in memory."""

from __future__ import annotations

import pytest

from agents.core.checkpoint import CheckpointStatus, GraphThreadStore
from agents.core.errors import CheckpointConflictError
from agents.memory import MemoryCheckpointStore
from bot.stores import Stores

PENDING, RUNNING = CheckpointStatus.PENDING, CheckpointStatus.RUNNING


@pytest.fixture(params=["adapter", "memory"])
def store(request: pytest.FixtureRequest, storage: Stores) -> GraphThreadStore:
    checkpoints = storage.checkpoints if request.param == "adapter" else MemoryCheckpointStore()
    assert isinstance(checkpoints, GraphThreadStore)
    return checkpoints


async def save(store: GraphThreadStore, *ids: str, status: CheckpointStatus = PENDING) -> None:
    for thread_id in ids:
        await store.save(thread_id, "data", status=status, expected_version=0)


async def test_ids_are_told_in_order_page_by_page(store: GraphThreadStore) -> None:
    await save(store, "b", "a", "a@2", "a@10", "aa", "ü", "%", "A_")
    every = sorted(["b", "a", "a@2", "a@10", "aa", "ü", "%", "A_"])
    assert list(await store.ids()) == every
    assert list(await store.ids(limit=3)) == every[:3]
    assert list(await store.ids(after=every[2], limit=3)) == every[3:6]
    assert list(await store.ids(prefix="a@")) == ["a@10", "a@2"]
    assert list(await store.ids(prefix="a", after="a@10")) == ["a@2", "aa"]
    assert list(await store.ids(prefix="b", after="a")) == ["b"]
    assert list(await store.ids(prefix="zz")) == []
    assert list(await store.ids(prefix="%")) == ["%"]


async def test_what_is_deleted_is_gone_with_its_journal(store: GraphThreadStore) -> None:
    await save(store, "t", "other")
    await store.append("t", "entry", base=1, index=0)
    await store.append("other", "entry", base=1, index=0)
    await store.delete("t", expected_version=1)
    assert await store.load("t") is None
    await save(store, "t")
    await store.append("t", "new", base=1, index=0)
    kept = await store.load("other")
    assert kept is not None
    assert tuple(kept.journal) == ("entry",)


async def test_deleting_may_be_repeated_but_not_with_another_version(
    store: GraphThreadStore,
) -> None:
    await save(store, "t")
    for version in (0, 2):
        with pytest.raises(CheckpointConflictError):
            await store.delete("t", expected_version=version)
    await store.delete("t", expected_version=1)
    await store.delete("t", expected_version=1)
    await store.delete("t", expected_version=0)
