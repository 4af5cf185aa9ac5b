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
    checkpoints = storage.checkpoints if request.param == "adapter" else MemoryCheckpointStore()
    assert isinstance(checkpoints, AmendingStore)
    return checkpoints


async def test_a_change_is_added_and_the_run_waits_again_with_a_new_journal(
    store: AmendingStore,
) -> None:
    await store.save("c", "data", status=PENDING, expected_version=0)
    await store.claim("c", "answer", expected_version=1)
    await store.append("c", "entry", base=1, index=0)
    assert await store.amend("c", '{"keys":"\u2028 \x85"}', expected_version=2) == 3

    checkpoint = await store.load("c")
    assert checkpoint is not None
    assert (checkpoint.status, checkpoint.claim, checkpoint.data) == (PENDING, "", "data")
    assert (checkpoint.version, checkpoint.base, tuple(checkpoint.journal)) == (3, 3, ())
    assert tuple(checkpoint.changes) == ('{"keys":"\u2028 \x85"}',)
    with pytest.raises(CheckpointConflictError):
        await store.append("c", "late", base=1, index=0)
    assert await store.claim("c", "other", expected_version=3) == 4
    await store.append("c", "next", base=3, index=0)
    assert await store.amend("c", "second", expected_version=4) == 5
    checkpoint = await store.load("c")
    assert checkpoint is not None
    assert tuple(checkpoint.changes) == ('{"keys":"\u2028 \x85"}', "second")


async def test_what_is_saved_or_closed_has_no_changes(store: AmendingStore) -> None:
    await store.save("c", "data", status=RUNNING, expected_version=0)
    await store.amend("c", "change", expected_version=1)
    await store.save("c", "all", status=RUNNING, expected_version=2)
    checkpoint = await store.load("c")
    assert checkpoint is not None
    assert (checkpoint.data, tuple(checkpoint.changes)) == ("all", ())
    await store.amend("c", "change", expected_version=3)
    await store.close("c", expected_version=4)
    checkpoint = await store.load("c")
    assert checkpoint is not None
    assert (checkpoint.status, checkpoint.data, tuple(checkpoint.changes)) == (
        CheckpointStatus.CLOSED,
        "",
        (),
    )


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
