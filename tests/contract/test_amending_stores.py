"""The contract of AmendingStore, on every adapter and in memory."""

from __future__ import annotations

import pytest

from agents.core.checkpoint import AmendingStore, CheckpointStatus
from agents.core.errors import CheckpointConflictError
from agents.memory import MemoryCheckpointStore
from bot.stores import Stores

PENDING, RUNNING = CheckpointStatus.PENDING, CheckpointStatus.RUNNING


@pytest.fixture(params=["adapter", "memory"])
def store(request: pytest.FixtureRequest, storage: Stores) -> AmendingStore:
    found = storage.checkpoints if request.param == "adapter" else MemoryCheckpointStore()
    assert isinstance(found, AmendingStore)
    return found


async def test_a_change_is_added_and_the_run_waits_again_with_a_new_journal(
    store: AmendingStore,
) -> None:
    await store.save("c", "data", status=PENDING, expected_version=0)
    await store.claim("c", "answer", expected_version=1)
    await store.append("c", "entry", base=1, index=0)
    assert await store.amend("c", '{"keys":"\u2028 \x85"}', expected_version=2) == 3

    found = await store.load("c")
    assert found is not None
    assert (found.status, found.claim, found.data) == (PENDING, "", "data")
    assert (found.version, found.base, tuple(found.journal)) == (3, 3, ())
    assert tuple(found.changes) == ('{"keys":"\u2028 \x85"}',)
    with pytest.raises(CheckpointConflictError):
        await store.append("c", "late", base=1, index=0)
    assert await store.claim("c", "other", expected_version=3) == 4
    await store.append("c", "next", base=3, index=0)
    assert await store.amend("c", "second", expected_version=4) == 5
    found = await store.load("c")
    assert found is not None
    assert tuple(found.changes) == ('{"keys":"\u2028 \x85"}', "second")


async def test_what_is_saved_or_closed_has_no_changes(store: AmendingStore) -> None:
    await store.save("c", "data", status=RUNNING, expected_version=0)
    await store.amend("c", "change", expected_version=1)
    await store.save("c", "all", status=RUNNING, expected_version=2)
    found = await store.load("c")
    assert found is not None
    assert (found.data, tuple(found.changes)) == ("all", ())
    await store.amend("c", "change", expected_version=3)
    await store.close("c", expected_version=4)
    found = await store.load("c")
    assert found is not None
    assert (found.status, found.data, tuple(found.changes)) == (CheckpointStatus.CLOSED, "", ())


async def test_only_what_runs_is_changed_and_once(store: AmendingStore) -> None:
    await store.save("c", "data", status=PENDING, expected_version=0)
    for version in (0, 1, 2):
        with pytest.raises(CheckpointConflictError):
            await store.amend("c", "x", expected_version=version)
    await store.claim("c", "", expected_version=1)
    for version in (1, 3):
        with pytest.raises(CheckpointConflictError):
            await store.amend("c", "x", expected_version=version)
    await store.amend("c", "x", expected_version=2)
    with pytest.raises(CheckpointConflictError):
        await store.amend("c", "x", expected_version=2)
    with pytest.raises(CheckpointConflictError):
        await store.amend("nobody", "x", expected_version=1)
    await store.claim("c", "", expected_version=3)
    await store.close("c", expected_version=4)
    with pytest.raises(CheckpointConflictError):
        await store.amend("c", "x", expected_version=5)
