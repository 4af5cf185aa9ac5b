"""Checkpoints and message histories as rows."""

import pytest

from storage.checkpoints import stored_checkpoint
from storage.errors import RecordFormatError
from storage.log import SCHEMA_VERSION
from tests.support.stores import SqliteStores

HEAD = {
    "v": SCHEMA_VERSION,
    "data": "d",
    "claim": "c",
    "status": "running",
    "version": 3,
    "base": 2,
}


@pytest.mark.parametrize(
    ("head", "entry", "fault"),
    [
        ({"v": 9}, "two", "another release"),
        ({"data": 1}, "two", "a field is damaged"),
        ({"data": "\ud83d"}, "two", "a field is damaged"),
        ({"claim": 1}, "two", "a field is damaged"),
        ({"status": "?"}, "two", "a field is damaged"),
        ({"version": "3"}, "two", "a field is damaged"),
        ({"version": True}, "two", "a field is damaged"),
        ({"base": None}, "two", "a field is damaged"),
        ({"changes": 7}, "two", "a field is damaged"),
        ({}, 5, "a field is damaged"),
    ],
)
def test_a_damaged_part_of_a_checkpoint_is_named(
    head: dict[str, object], entry: object, fault: str
) -> None:
    with pytest.raises(RecordFormatError, match=fault) as caught:
        stored_checkpoint("cp", {**HEAD, **head}, ["one", entry])
    version = head.get("v", SCHEMA_VERSION)
    assert (caught.value.kind, caught.value.version) == ("checkpoint", version)
    assert caught.value.record_id == "cp"


@pytest.mark.parametrize(("damage", "version"), [("v = 9", 9), ("data = X'ff'", 1)])
async def test_an_entry_of_a_history_that_is_no_text_is_named(damage: str, version: int) -> None:
    storage = SqliteStores(None)
    await storage.open()
    await storage.log.append("l", 1, "said")
    await storage.log.append("l/0", 1, "said elsewhere")
    assert await storage.log.load("l", before_turn=2) == ["said"]
    await storage._database.fetch(f"UPDATE log SET {damage}")  # noqa: S608

    with pytest.raises(RecordFormatError) as caught:
        await storage.log.load("l", before_turn=2)

    error = caught.value
    assert (error.kind, error.version, error.record_id) == ("log entry", version, "l")
    assert (": field 'data' is damaged" in str(error)) == (version == 1)
    await storage.close()
