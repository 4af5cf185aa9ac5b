"""The stores that forget keep the contract of their ports."""

from __future__ import annotations

import pytest

from agents import MemoryCheckpointStore, MemoryMessageLog
from agents.core.checkpoint import CheckpointStatus, CheckpointStore, MessageLog
from agents.core.errors import CheckpointConflictError

RUNNING, PENDING = CheckpointStatus.RUNNING, CheckpointStatus.PENDING


async def test_versions_base_and_journal() -> None:
    store: CheckpointStore = MemoryCheckpointStore()
    assert await store.load("a") is None
    assert await store.save("a", "1", status=RUNNING, expected_version=0) == 1
    await store.append("a", "e0", base=1, index=0)
    await store.append("a", "e1", base=1, index=1)
    assert await store.save("a", "2", status=PENDING, expected_version=1) == 2
    assert await store.claim("a", "why", expected_version=2) == 3
    await store.append("a", "f0", base=2, index=0)

    stored = await store.load("a")

    assert stored is not None
    assert (stored.data, stored.claim, stored.status) == ("2", "why", RUNNING)
    assert (stored.version, stored.base, tuple(stored.journal)) == (3, 2, ("f0",))


async def test_conflicts() -> None:
    store = MemoryCheckpointStore()
    await store.save("a", "1", status=RUNNING, expected_version=0)

    for attempt in (
        store.save("a", "x", status=PENDING, expected_version=0),
        store.save("b", "x", status=PENDING, expected_version=1),
        store.claim("a", "x", expected_version=1),
        store.claim("b", "x", expected_version=1),
        store.append("a", "x", base=0, index=0),
        store.append("a", "x", base=1, index=1),
        store.append("b", "x", base=1, index=0),
        store.close("a", expected_version=2),
    ):
        with pytest.raises(CheckpointConflictError):
            await attempt


async def test_close_may_be_repeated_and_drops_everything() -> None:
    store = MemoryCheckpointStore()
    await store.save("a", "1", status=RUNNING, expected_version=0)
    await store.append("a", "e", base=1, index=0)
    await store.close("a", expected_version=1)
    await store.close("a", expected_version=1)

    stored = await store.load("a")

    assert stored is not None
    assert (stored.data, stored.status, stored.journal) == ("", CheckpointStatus.CLOSED, ())
    with pytest.raises(CheckpointConflictError):
        await store.append("a", "e", base=1, index=0)
    for version in (0, 1, 2):
        with pytest.raises(CheckpointConflictError):
            await store.save("a", "2", status=PENDING, expected_version=version)


async def test_the_log_keeps_the_first_of_a_turn_in_order() -> None:
    log: MessageLog = MemoryMessageLog()
    await log.append("L", 2, "two")
    await log.append("L", 1, "one")
    await log.append("L", 1, "again")

    assert list(await log.load("L", before_turn=3)) == ["one", "two"]
    assert list(await log.load("L", before_turn=2)) == ["one"]
    assert list(await log.load("M", before_turn=2)) == []
