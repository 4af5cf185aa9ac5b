"""What stands in MongoDB itself, besides what the ports show."""

from typing import Any

import pytest

from agents.core.checkpoint import CheckpointStatus
from bot.records.approval import StoredEscalation
from bot.stores import Stores
from storage.errors import RecordFormatError
from storage.mongo.client import INDEXES
from storage.mongo.commands import Commands
from tests.contract.builders import (
    APPROVAL_ID,
    DIGEST,
    THREAD_ID,
    a_decision,
    a_thread,
    an_approval,
)
from tests.support.decided import decide
from tests.support.mongo_listener import by_hand
from tests.support.stores import MongoStores

pytestmark = pytest.mark.mongo


@pytest.fixture
def mongo(two_processes: list[Stores]) -> MongoStores:
    storage = two_processes[0]
    assert isinstance(storage, MongoStores)
    return storage


def collection(storage: MongoStores, name: str) -> Any:
    return storage._client.collection(name)


async def journal_of(mongo: MongoStores) -> list[str]:
    checkpoint = await mongo.checkpoints.load("c")
    assert checkpoint is not None
    return list(checkpoint.journal)


async def test_a_closed_run_keeps_no_content_and_leaves_nothing_beside_it(
    mongo: MongoStores,
) -> None:
    await mongo.checkpoints.save("c", "data", status=CheckpointStatus.RUNNING, expected_version=0)
    await mongo.checkpoints.append("c", "secret", base=1, index=0)

    await mongo.checkpoints.close("c", expected_version=1)

    (head,) = await collection(mongo, "checkpoints").find({}).to_list(9)
    assert head == {"_id": "c", "v": 1, "status": "closed", "version": 2, "base": 1}


@pytest.mark.parametrize("changes", [{"entries": 2}, {"journal": "a"}, {"journal": [7]}])
async def test_a_damaged_journal_is_no_empty_one(
    mongo: MongoStores, changes: dict[str, Any]
) -> None:
    await mongo.checkpoints.save("c", "data", status=CheckpointStatus.RUNNING, expected_version=0)
    await mongo.checkpoints.append("c", "a", base=1, index=0)
    await collection(mongo, "checkpoints").update_one({"_id": "c"}, {"$set": changes})

    with pytest.raises(RecordFormatError, match="checkpoint c"):
        await mongo.checkpoints.load("c")


async def test_what_is_not_due_has_no_due_time(mongo: MongoStores) -> None:
    await mongo.threads.ensure(a_thread(due_ms=5))
    thread = await mongo.threads.claim(THREAD_ID, owner="a", now_ms=5, until_ms=9)
    assert thread is not None
    await mongo.threads.release(THREAD_ID, fence=thread.fence, wakes=thread.wakes, now_ms=6)

    assert "due_ms" not in await collection(mongo, "threads").find_one({"_id": THREAD_ID})


async def test_i4_a_thread_that_a_message_woke_meanwhile_is_not_deleted(
    mongo: MongoStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mongo.threads.ensure(a_thread())
    fence = await mongo.retention.seal(THREAD_ID, owner="a", now_ms=5, until_ms=9)
    assert fence is not None
    read = Commands.keys

    async def read_and_wake(self: Commands, *rest: Any) -> Any:
        keys = await read(self, *rest)
        await mongo.threads.wake(THREAD_ID, now_ms=6)
        return keys

    monkeypatch.setattr(Commands, "keys", read_and_wake)

    assert not await mongo.retention.drop(THREAD_ID, fence=fence)
    assert (await mongo.threads.get(THREAD_ID)).due_ms == 6


async def test_a_server_may_store_booleans_as_numbers(mongo: MongoStores) -> None:
    escalation = StoredEscalation(since_ms=1, announced=False, deserted=True)
    approval = an_approval(escalation=escalation)
    await mongo.approvals.insert(approval)
    numbers = {"open": 1, "escalation.announced": 0, "escalation.deserted": 1}
    where = {"_id": APPROVAL_ID}
    await collection(mongo, "approvals").update_one(where, {"$set": numbers})

    assert (await mongo.approvals.get(APPROVAL_ID)).escalation == escalation


async def test_records_of_a_newer_release_are_left_alone(mongo: MongoStores) -> None:
    await mongo.threads.ensure(a_thread(due_ms=1))
    await mongo.approvals.insert(an_approval())
    await mongo.checkpoints.save("c", "data", status=CheckpointStatus.RUNNING, expected_version=0)
    await mongo.log.append("l", 1, "x")
    for name in ("threads", "approvals", "checkpoints", "log"):
        await collection(mongo, name).update_many({}, {"$set": {"v": 3}})

    assert await mongo.threads.due(now_ms=9, limit=9) == []
    assert await mongo.threads.claim(THREAD_ID, owner="a", now_ms=9, until_ms=99) is None
    with pytest.raises(RecordFormatError):
        await mongo.threads.get(THREAD_ID)
    with pytest.raises(RecordFormatError):
        await decide(mongo.approvals, APPROVAL_ID, a_decision(), digest=DIGEST)
    with pytest.raises(RecordFormatError):
        await mongo.checkpoints.load("c")
    with pytest.raises(RecordFormatError):
        await mongo.log.load("l", before_turn=9)


async def test_opening_makes_each_index_once(mongo: MongoStores) -> None:
    await mongo.open()

    for name, wanted in INDEXES.items():
        with by_hand():
            indexes = await collection(mongo, name).index_information()
        keys = [[field for field, _ in index["key"]] for index in indexes.values()]
        made = [key for key in keys if key != ["seq", "team_id"]]  # not every server can make it
        assert sorted(made) == sorted([["_id"], *(list(fields) for fields in wanted)])
