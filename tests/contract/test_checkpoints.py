"""The contracts of CheckpointStore and MessageLog."""

import asyncio

import pytest

from agents.checkpoint import CheckpointStatus, StoredCheckpoint
from agents.errors import CheckpointConflictError
from storage.base import Storage

ID = "T1:C1:1700000000.000100#1"
RUNNING, PENDING, CLOSED = (
    CheckpointStatus.RUNNING,
    CheckpointStatus.PENDING,
    CheckpointStatus.CLOSED,
)


async def test_nothing_is_loaded_where_nothing_was_saved(storage: Storage) -> None:
    assert await storage.checkpoints.load(ID) is None


async def test_a_checkpoint_is_loaded_as_it_was_saved(storage: Storage) -> None:
    data = '{"v":1,"ü":"\U0001f600"}'

    assert await storage.checkpoints.save(ID, data, status=PENDING, expected_version=0) == 1
    assert await storage.checkpoints.load(ID) == StoredCheckpoint(
        data=data, claim="", status=PENDING, version=1, base=1, journal=()
    )


async def test_a_first_save_wants_that_there_is_none(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=RUNNING, expected_version=0)

    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.save(ID, "b", status=RUNNING, expected_version=0)


@pytest.mark.parametrize("expected", [2, 7])
async def test_a_save_wants_the_version_it_knows(storage: Storage, expected: int) -> None:
    await storage.checkpoints.save(ID, "a", status=RUNNING, expected_version=0)

    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.save(ID, "b", status=RUNNING, expected_version=expected)
    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.save("other", "b", status=RUNNING, expected_version=expected)


@pytest.mark.parametrize("version", [0, 1])
async def test_of_many_saves_one_wins(storage: Storage, version: int) -> None:
    if version:
        await storage.checkpoints.save(ID, "a", status=RUNNING, expected_version=0)

    found = await asyncio.gather(
        *(
            storage.checkpoints.save(ID, f"{i}", status=PENDING, expected_version=version)
            for i in range(20)
        ),
        return_exceptions=True,
    )

    assert sum(isinstance(each, int) for each in found) == 1
    assert sum(isinstance(each, CheckpointConflictError) for each in found) == 19


async def test_a_claim_takes_a_pending_checkpoint(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=PENDING, expected_version=0)
    await storage.checkpoints.append(ID, "j", base=1, index=0)

    assert await storage.checkpoints.claim(ID, "answers", expected_version=1) == 2
    assert await storage.checkpoints.load(ID) == StoredCheckpoint(
        data="a", claim="answers", status=RUNNING, version=2, base=1, journal=("j",)
    )


async def test_a_running_checkpoint_cannot_be_claimed(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=RUNNING, expected_version=0)

    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.claim(ID, "answers", expected_version=1)
    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.claim("other", "answers", expected_version=0)


async def test_of_many_claims_one_wins(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=PENDING, expected_version=0)

    found = await asyncio.gather(
        *(storage.checkpoints.claim(ID, f"{i}", expected_version=1) for i in range(30)),
        return_exceptions=True,
    )

    winners = [number for number, each in enumerate(found) if each == 2]
    assert len(winners) == 1
    stored = await storage.checkpoints.load(ID)
    assert stored is not None
    assert stored.claim == str(winners[0])


async def test_two_processes_claim_once(two_processes: list[Storage]) -> None:
    await two_processes[0].checkpoints.save(ID, "a", status=PENDING, expected_version=0)

    found = await asyncio.gather(
        *(two_processes[i % 2].checkpoints.claim(ID, "x", expected_version=1) for i in range(20)),
        return_exceptions=True,
    )

    assert sum(each == 2 for each in found) == 1


async def test_the_journal_comes_in_order(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=RUNNING, expected_version=0)
    for index in range(12):
        await storage.checkpoints.append(ID, f"entry {index}", base=1, index=index)

    stored = await storage.checkpoints.load(ID)

    assert stored is not None
    assert list(stored.journal) == [f"entry {index}" for index in range(12)]


async def test_a_long_journal_is_whole(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=RUNNING, expected_version=0)
    for index in range(130):
        await storage.checkpoints.append(ID, str(index), base=1, index=index)

    stored = await storage.checkpoints.load(ID)

    assert stored is not None
    assert list(stored.journal) == [str(index) for index in range(130)]


async def test_an_index_is_given_once(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=RUNNING, expected_version=0)

    found = await asyncio.gather(
        *(storage.checkpoints.append(ID, f"{i}", base=1, index=0) for i in range(20)),
        return_exceptions=True,
    )

    assert sum(each is None for each in found) == 1
    assert sum(isinstance(each, CheckpointConflictError) for each in found) == 19


async def test_a_save_begins_a_new_journal(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=PENDING, expected_version=0)
    await storage.checkpoints.append(ID, "old", base=1, index=0)
    await storage.checkpoints.claim(ID, "answers", expected_version=1)

    assert await storage.checkpoints.save(ID, "b", status=PENDING, expected_version=2) == 3
    await storage.checkpoints.append(ID, "new", base=3, index=0)

    assert await storage.checkpoints.load(ID) == StoredCheckpoint(
        data="b", claim="", status=PENDING, version=3, base=3, journal=("new",)
    )


async def test_journals_do_not_mix(storage: Storage) -> None:
    for name in (ID, ID + "0", ID + "/1"):
        await storage.checkpoints.save(name, "a", status=RUNNING, expected_version=0)
        await storage.checkpoints.append(name, name, base=1, index=0)

    for name in (ID, ID + "0", ID + "/1"):
        stored = await storage.checkpoints.load(name)
        assert stored is not None
        assert list(stored.journal) == [name]


async def test_a_closed_run_leaves_only_its_end(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=RUNNING, expected_version=0)
    await storage.checkpoints.append(ID, "j", base=1, index=0)

    await storage.checkpoints.close(ID, expected_version=1)
    await storage.checkpoints.close(ID, expected_version=1)

    stored = await storage.checkpoints.load(ID)
    assert stored is not None
    assert (stored.data, stored.claim, stored.status) == ("", "", CLOSED)
    assert list(stored.journal) == []


@pytest.mark.parametrize("expected", [0, 1, 2])
async def test_a_closed_run_stays_closed(storage: Storage, expected: int) -> None:
    await storage.checkpoints.save(ID, "a", status=PENDING, expected_version=0)
    await storage.checkpoints.close(ID, expected_version=1)

    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.save(ID, "b", status=RUNNING, expected_version=expected)
    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.claim(ID, "answers", expected_version=expected)


async def test_who_slept_through_the_end_cannot_append(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=RUNNING, expected_version=0)
    await storage.checkpoints.append(ID, "call started", base=1, index=0)
    await storage.checkpoints.close(ID, expected_version=1)

    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.append(ID, "call started", base=1, index=0)


async def test_nobody_closes_what_another_one_saved(storage: Storage) -> None:
    await storage.checkpoints.save(ID, "a", status=RUNNING, expected_version=0)
    await storage.checkpoints.save(ID, "b", status=PENDING, expected_version=1)

    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.close(ID, expected_version=1)
    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.close(ID, expected_version=0)
    with pytest.raises(CheckpointConflictError):
        await storage.checkpoints.close("other", expected_version=0)
    stored = await storage.checkpoints.load(ID)
    assert stored is not None
    assert (stored.data, stored.status) == ("b", PENDING)


async def test_the_log_keeps_each_turn_once(storage: Storage) -> None:
    for turn, data in [(2, "two"), (1, "one"), (10, "ten"), (1, "again")]:
        await storage.log.append("log", turn, data)
    await storage.log.append("other", 1, "other")

    assert list(await storage.log.load("log", before_turn=11)) == ["one", "two", "ten"]
    assert list(await storage.log.load("log", before_turn=10)) == ["one", "two"]
    assert list(await storage.log.load("log", before_turn=1)) == []
    assert list(await storage.log.load("none", before_turn=9)) == []
