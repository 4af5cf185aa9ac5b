"""Checkpoints and texts as rows."""

import pytest

from agents.core.checkpoint import CheckpointStatus
from storage.codec import (
    SCHEMA_VERSION,
    stored_checkpoint,
    stored_text,
)
from storage.errors import RecordFormatError

HEAD = {
    "v": SCHEMA_VERSION,
    "data": "d",
    "claim": "c",
    "status": "running",
    "version": 3,
    "base": 2,
}
ENTRIES: list[dict[str, object]] = [
    {"v": SCHEMA_VERSION, "entry": "one"},
    {"v": SCHEMA_VERSION, "entry": "two"},
]


def test_a_checkpoint_is_made_of_its_head_and_its_journal() -> None:
    found = stored_checkpoint("cp", HEAD, ENTRIES)

    assert (found.data, found.claim, found.status) == ("d", "c", CheckpointStatus.RUNNING)
    assert (found.version, found.base, found.journal) == (3, 2, ("one", "two"))
    bare = {name: HEAD[name] for name in ("v", "status", "version", "base")}
    assert (stored_checkpoint("cp", bare, []).data, stored_checkpoint("cp", bare, []).claim) == (
        "",
        "",
    )


@pytest.mark.parametrize(
    ("head", "entry", "kind", "fault"),
    [
        ({"v": 9}, {}, "checkpoint", "another release"),
        ({}, {"v": 9}, "journal entry", "another release"),
        ({"data": 1}, {}, "checkpoint", "a field is damaged"),
        ({"claim": 1}, {}, "checkpoint", "a field is damaged"),
        ({"status": "?"}, {}, "checkpoint", "a field is damaged"),
        ({"version": "3"}, {}, "checkpoint", "a field is damaged"),
        ({"base": None}, {}, "checkpoint", "a field is damaged"),
        ({}, {"entry": 5}, "checkpoint", "a field is damaged"),
    ],
)
def test_a_damaged_part_of_a_checkpoint_is_named(
    head: dict[str, object], entry: dict[str, object], kind: str, fault: str
) -> None:
    with pytest.raises(RecordFormatError, match=fault) as caught:
        stored_checkpoint("cp", {**HEAD, **head}, [ENTRIES[0], {**ENTRIES[1], **entry}])
    version = (head | entry).get("v", SCHEMA_VERSION)
    assert (caught.value.kind, caught.value.version) == (kind, version)
    assert caught.value.record_id == "cp"
    assert ": a field is damaged" in str(caught.value) or fault == "another release"


def test_a_record_that_is_a_text_is_read_or_named() -> None:
    assert stored_text("file", "f1", {"v": SCHEMA_VERSION, "data": "x"}) == "x"
    for row, version in (
        ({"v": 9, "data": "x"}, 9),
        ({"v": 1}, 1),
        ({"v": 1, "data": "\ud83d"}, 1),
    ):
        with pytest.raises(RecordFormatError) as caught:
            stored_text("file", "f1", row)
        error = caught.value
        assert (error.kind, error.version, error.record_id) == ("file", version, "f1")
        assert (": field 'data' is damaged" in str(error)) == (version == 1)
