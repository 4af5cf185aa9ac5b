"""What stands in MongoDB itself, besides what the ports show."""

import asyncio
import json
from typing import Any

import pytest
from pymongo.errors import DuplicateKeyError

from agents.core.checkpoint import CheckpointStatus
from agents.core.errors import CheckpointConflictError
from storage.base import Storage
from storage.errors import RecordFormatError
from storage.mongo import MongoStorage
from storage.mongo.client import GONE, INDEXES
from tests.contract.builders import (
    APPROVAL_ID,
    DIGEST,
    THREAD_ID,
    a_decision,
    a_thread,
    an_approval,
    an_entry,
)

pytestmark = pytest.mark.mongo


@pytest.fixture
def mongo(two_processes: list[Storage]) -> MongoStorage:
    storage = two_processes[0]
    assert isinstance(storage, MongoStorage)
    return storage


def collection(storage: MongoStorage, name: str) -> Any:
    return storage._client.collection(name)


async def old_run(mongo: MongoStorage, *texts: str) -> None:
    """A run as an earlier release stored it, with its journal beside it."""
    head = {"_id": "c", "v": 1, "open": True, "data": "data", "claim": "", "status": "running"}
    await collection(mongo, "checkpoints").insert_one({**head, "version": 1, "base": 1})
    for index, text in enumerate(texts):
        entry = {"v": 1, "checkpoint_id": "c", "base": 1, "index": index, "entry": text}
        await collection(mongo, "journal").insert_one({"_id": f"c/1/{index}", **entry})


async def journal_of(mongo: MongoStorage) -> list[str]:
    found = await mongo.checkpoints.load("c")
    assert found is not None
    return list(found.journal)


async def test_a_closed_run_keeps_no_content_and_leaves_nothing_beside_it(
    mongo: MongoStorage,
) -> None:
    await mongo.checkpoints.save("c", "data", status=CheckpointStatus.RUNNING, expected_version=0)
    await mongo.checkpoints.append("c", "secret", base=1, index=0)

    await mongo.checkpoints.close("c", expected_version=1)

    (head,) = await collection(mongo, "checkpoints").find({}).to_list(9)
    assert head == {"_id": "c", "v": 2, "open": False, "status": "closed", "version": 2, "base": 1}
    assert await collection(mongo, "journal").find({}).to_list(9) == []


async def test_a_run_of_an_earlier_release_goes_on_where_it_was(mongo: MongoStorage) -> None:
    await old_run(mongo, "a", "b")
    assert await journal_of(mongo) == ["a", "b"]

    with pytest.raises(CheckpointConflictError):
        await mongo.checkpoints.append("c", "late", base=1, index=1)
    await mongo.checkpoints.append("c", "c", base=1, index=2)
    await mongo.checkpoints.append("c", "d", base=1, index=3)

    assert await journal_of(mongo) == ["a", "b", "c", "d"]


async def test_a_process_of_an_earlier_release_loses_a_run_that_was_taken_over(
    mongo: MongoStorage,
) -> None:
    await old_run(mongo, "a")
    await mongo.checkpoints.append("c", "b", base=1, index=1)

    # What it would append next, by the key alone.
    with pytest.raises(DuplicateKeyError):
        await collection(mongo, "journal").insert_one({"_id": "c/1/1", "entry": "b2"})


async def test_a_run_is_not_taken_over_from_a_process_that_was_quicker(mongo: MongoStorage) -> None:
    await old_run(mongo, "a", "quicker")

    with pytest.raises(CheckpointConflictError):
        await mongo.checkpoints.append("c", "b", base=1, index=1)

    assert await journal_of(mongo) == ["a", "quicker"]


async def test_a_take_over_that_was_cut_off_is_repeated(mongo: MongoStorage) -> None:
    await old_run(mongo, "a")
    mark = {"_id": "c/1/1", "v": 1, "checkpoint_id": "c", "base": 1, "index": 1}
    await collection(mongo, "journal").insert_one(mark)

    await mongo.checkpoints.append("c", "b", base=1, index=1)

    assert await journal_of(mongo) == ["a", "b"]


async def test_of_two_who_take_a_run_over_one_goes_on(two_processes: list[Storage]) -> None:
    mongo = two_processes[0]
    assert isinstance(mongo, MongoStorage)
    await old_run(mongo, "a")

    results = await asyncio.gather(
        *(two_processes[n % 2].checkpoints.append("c", f"b{n}", base=1, index=1) for n in range(6)),
        return_exceptions=True,
    )

    assert results.count(None) == 1
    assert len(await journal_of(mongo)) == 2


async def test_a_run_of_an_earlier_release_is_saved_and_closed(mongo: MongoStorage) -> None:
    await old_run(mongo, "a")

    version = await mongo.checkpoints.save(
        "c", "new", status=CheckpointStatus.RUNNING, expected_version=1
    )
    assert await journal_of(mongo) == []
    await mongo.checkpoints.append("c", "b", base=version, index=0)
    assert await journal_of(mongo) == ["b"]


async def test_the_end_of_a_run_of_an_earlier_release_empties_its_journal(
    mongo: MongoStorage,
) -> None:
    await old_run(mongo, "secret")

    await mongo.checkpoints.close("c", expected_version=1)

    (entry,) = await collection(mongo, "journal").find({}).to_list(9)
    assert entry == {"_id": "c/1/0", "v": 1, "checkpoint_id": "c", "base": 1, "index": 0}


async def test_what_a_cut_left_of_a_closed_run_goes_when_it_is_read(mongo: MongoStorage) -> None:
    await old_run(mongo, "secret")
    ended = {"$set": {"status": "closed", "open": False}, "$unset": {"data": "", "claim": ""}}
    await collection(mongo, "checkpoints").update_one({"_id": "c"}, ended)

    assert await journal_of(mongo) == []

    assert "entry" not in await collection(mongo, "journal").find_one({"_id": "c/1/0"})


@pytest.mark.parametrize("changes", [{"entries": 2}, {"journal": "a"}, {"journal": [7]}])
async def test_a_damaged_journal_is_no_empty_one(
    mongo: MongoStorage, changes: dict[str, Any]
) -> None:
    await mongo.checkpoints.save("c", "data", status=CheckpointStatus.RUNNING, expected_version=0)
    await mongo.checkpoints.append("c", "a", base=1, index=0)
    await collection(mongo, "checkpoints").update_one({"_id": "c"}, {"$set": changes})

    with pytest.raises(RecordFormatError, match="checkpoint c"):
        await mongo.checkpoints.load("c")


async def test_what_is_not_due_has_no_due_time(mongo: MongoStorage) -> None:
    await mongo.threads.ensure(a_thread(due_ms=5))
    thread = await mongo.threads.claim(THREAD_ID, owner="a", now_ms=5, until_ms=9)
    assert thread is not None
    await mongo.threads.release(THREAD_ID, fence=thread.fence, wakes=thread.wakes, now_ms=6)

    assert "due_ms" not in await collection(mongo, "threads").find_one({"_id": THREAD_ID})


async def test_records_of_a_newer_release_are_left_alone(mongo: MongoStorage) -> None:
    await mongo.threads.ensure(a_thread(due_ms=1))
    await mongo.approvals.add(an_approval())
    await mongo.checkpoints.save("c", "data", status=CheckpointStatus.RUNNING, expected_version=0)
    await mongo.log.append("l", 1, "x")
    for name in ("threads", "approvals", "checkpoints", "log"):
        await collection(mongo, name).update_many({}, {"$set": {"v": 3}})

    assert await mongo.threads.due(now_ms=9, limit=9) == []
    assert await mongo.threads.claim(THREAD_ID, owner="a", now_ms=9, until_ms=99) is None
    with pytest.raises(RecordFormatError):
        await mongo.threads.get(THREAD_ID)
    with pytest.raises(RecordFormatError):
        await mongo.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    with pytest.raises(RecordFormatError):
        await mongo.checkpoints.load("c")
    with pytest.raises(RecordFormatError):
        await mongo.log.load("l", before_turn=9)


async def test_opening_makes_each_index_once(mongo: MongoStorage) -> None:
    await mongo.open()

    for name, wanted in INDEXES.items():
        found = await collection(mongo, name).index_information()
        keys = [[field for field, _ in index["key"]] for index in found.values()]
        gone = [[GONE[name]]] if name in GONE else []
        assert sorted(keys) == sorted([["_id"], *gone, *(list(fields) for fields in wanted)])


async def test_a_thread_and_an_audit_of_an_earlier_release_are_found(mongo: MongoStorage) -> None:
    await mongo.threads.ensure(a_thread())
    await mongo.audit.append(an_entry())
    await collection(mongo, "threads").update_one({}, {"$unset": {"active_ms": ""}})
    whole = {"detail": json.dumps(an_entry().detail)}
    fresh = dict.fromkeys(("erased", "content", "salt", "mac", "team_id", "for_id"), "")
    await collection(mongo, "audit").update_one({}, {"$unset": fresh, "$set": whole})

    assert await mongo.retention.resting(before_ms=2_000, limit=9) == [(1_000, THREAD_ID)]
    assert await mongo.retention.strip(THREAD_ID, limit=9) == 1
    assert await mongo.audit.of_thread(THREAD_ID, limit=9) == [
        an_entry(detail={"digest": an_entry().detail["digest"]}, erased=True)
    ]
