"""Records as rows."""

import pytest

from agents.core.checkpoint import CheckpointStatus
from storage.codec import (
    AUDIT,
    read_entry,
    stored_checkpoint,
    stored_text,
)
from storage.errors import RecordFormatError, RecordRefusedError
from storage.records import SCHEMA_VERSION
from tests.contract.builders import (
    APPROVAL_ID,
    THREAD_ID,
    an_entry,
)


def test_an_entry_survives_its_row() -> None:
    assert AUDIT.decode(AUDIT.encode(an_entry())) == an_entry()


@pytest.mark.parametrize(
    "damage", [{"v": 2}, {"v": None}, {"at_ms": "soon"}, {"at_ms": True}, {"detail": "[1]"}]
)
def test_a_damaged_row_is_named_and_never_guessed(damage: dict[str, object]) -> None:
    with pytest.raises(RecordFormatError) as caught:
        AUDIT.decode({**AUDIT.encode(an_entry()), **damage})
    assert caught.value.record_id == "entry-1"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_is_no_json_data_is_refused(value: object) -> None:
    with pytest.raises(RecordRefusedError, match="the audit entry is not JSON data"):
        AUDIT.encode(an_entry(detail={"a": value}))


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


def test_an_entry_of_the_audit_that_cannot_be_read_is_still_there() -> None:
    good = AUDIT.encode(an_entry())
    damaged = {**good, "entry_id": "entry-2", "detail": "{"}

    first, second = read_entry(good), read_entry(damaged)

    assert first == an_entry()
    assert (second.entry_id, second.at_ms, second.action) == ("entry-2", 1_000, "unreadable")
    assert (second.thread_id, second.approval_id) == (THREAD_ID, APPROVAL_ID)
    assert second.actor_id == "U2"
    assert "'detail' is damaged" in str(second.detail["why"])
    assert read_entry({**damaged, "at_ms": "soon"}).at_ms == 0
