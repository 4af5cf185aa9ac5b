"""Records as rows."""

import re
from typing import Any

import pytest

from agents.core.checkpoint import CheckpointStatus
from storage import codec as stored
from storage.codec import (
    APPROVALS,
    AUDIT,
    DECISIONS,
    HEADS,
    MESSAGES,
    POSTS,
    READER,
    THREADS,
    WHISPERS,
    Codec,
    _fingerprint,
    check_version,
    decision_text,
    read_entry,
    stored_checkpoint,
    stored_text,
)
from storage.errors import RecordFormatError, RecordRefusedError
from storage.records import SCHEMA_VERSION, Approval, Decision, Post, Status
from storage.sqlite.schema.tables import ddl
from tests.contract.builders import (
    APPROVAL_ID,
    THREAD_ID,
    a_decision,
    a_message,
    a_post,
    a_thread,
    an_approval,
    an_entry,
)

RECORDS = [
    (THREADS, a_thread()),
    (MESSAGES, a_message()),
    (APPROVALS, an_approval(decision=a_decision())),
    (POSTS, a_post()),
    (AUDIT, an_entry()),
]


@pytest.mark.parametrize(("codec", "record"), RECORDS, ids=lambda each: getattr(each, "kind", ""))
def test_a_record_survives_its_row(codec: Codec[Any], record: Any) -> None:
    assert codec.decode(codec.encode(record)) == record


@pytest.mark.parametrize("version", [2, 0, None, "1"])
def test_an_unknown_version_is_refused(version: object) -> None:
    row = {**THREADS.encode(a_thread()), "v": version}

    with pytest.raises(RecordFormatError, match="another release") as caught:
        THREADS.decode(row)
    assert (caught.value.kind, caught.value.version) == ("thread", version)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", None),
        ("title", 3),
        ("position", "0"),
        ("position", True),
        ("expires_ms", None),
        ("remind_ms", "soon"),
        ("self_approval", 2),
        ("self_approval", None),
        ("status", "maybe"),
        ("status", None),
        ("decision", "{"),
        ("decision", "[]"),
        ("decision", '{"v":1}'),
        ("decision", '{"v":9,"status":"approved"}'),
    ],
)
def test_a_damaged_field_is_named_and_never_guessed(field: str, value: object) -> None:
    row = {**APPROVALS.encode(an_approval()), field: value}

    with pytest.raises(RecordFormatError, match=f"approval .* cannot be read: field '{field}'"):
        APPROVALS.decode(row)


def test_a_missing_field_is_damage() -> None:
    row = THREADS.encode(a_thread())
    del row["fence"]

    with pytest.raises(RecordFormatError, match="'fence'"):
        THREADS.decode(row)


def test_an_unknown_field_does_no_harm() -> None:
    row = {**THREADS.encode(a_thread()), "_id": "x"}

    assert THREADS.decode(row) == a_thread()


def test_the_stored_form_is_plain_and_compact() -> None:
    row = APPROVALS.encode(an_approval(decision=a_decision()))

    assert type(row["status"]) is type(row["kind"]) is str
    assert row["decision"] == decision_text(a_decision())
    assert decision_text(a_decision()).startswith('{"v":1,"status":"approved","by":"U2"')
    assert AUDIT.encode(an_entry(detail={"a": [1, 2]}))["detail"] == '{"a":[1,2]}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_is_no_json_data_is_refused(value: object) -> None:
    with pytest.raises(RecordRefusedError, match="the audit entry is not JSON data"):
        AUDIT.encode(an_entry(detail={"a": value}))


def test_what_cannot_be_read_is_named() -> None:
    row = APPROVALS.encode(an_approval())
    for damage in ({"v": 9}, {"title": 5}):
        with pytest.raises(RecordFormatError) as caught:
            APPROVALS.decode({**row, **damage})
        assert caught.value.record_id == APPROVAL_ID
    for nothing in (None, 5):
        with pytest.raises(RecordFormatError) as caught:
            APPROVALS.decode({**row, "v": 9, "approval_id": nothing})
        assert caught.value.record_id == ""
    for codec, version in ((DECISIONS, 9), (THREADS, None)):
        with pytest.raises(RecordFormatError) as caught:
            codec.decode({"v": version})
        assert caught.value.record_id == ""
    with pytest.raises(RecordFormatError) as caught:
        check_version("thread", 9)
    assert caught.value.record_id == ""


@pytest.mark.parametrize("codec", [THREADS, APPROVALS, POSTS, AUDIT], ids=lambda each: each.kind)
def test_each_field_that_was_added_may_be_missing_alone(codec: Codec[Any]) -> None:
    record = next(two for one, two in RECORDS if one is codec)
    for name in codec.added:
        row = codec.encode(record)
        del row[name]
        assert codec.decode(row) == record


def test_half_a_surrogate_pair_is_no_text() -> None:
    row = APPROVALS.encode(an_approval())
    assert APPROVALS.decode({**row, "title": "Grüße"}).title == "Grüße"
    with pytest.raises(RecordFormatError, match="field 'title'"):
        APPROVALS.decode({**row, "title": "\ud83d"})


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


def test_a_status_is_a_status_again() -> None:
    row = {**APPROVALS.encode(an_approval()), "status": "expired"}

    assert APPROVALS.decode(row).status is Status.EXPIRED


def test_a_codec_knows_each_field_of_its_record() -> None:
    fresh = Codec("call", Approval, key="approval_id", added=("attempts",))
    row = fresh.encode(an_approval())

    assert (fresh.kind, fresh.key, [*fresh.added]) == ("call", "approval_id", ["attempts"])
    assert fresh.names == tuple(row) == APPROVALS.names
    assert fresh.decode(row) == an_approval()
    for damage in ({"kind": "?"}, {"created_ms": None}):
        with pytest.raises(RecordFormatError, match=r"stored call .* cannot be read: field"):
            fresh.decode({**row, **damage})
    assert Codec("choice", Decision).key == ""


def test_a_release_that_reads_as_much_has_the_same_name() -> None:
    kept = [one for one in vars(stored).values() if isinstance(one, Codec)]
    codecs = [one for one in kept if one is not HEADS]  # a part of what another one writes
    assert _fingerprint(*codecs) == READER
    assert len(READER) == 12
    assert _fingerprint(*codecs[1:]) != READER


TABLES: dict[str, Codec[Any]] = {
    "threads": THREADS,
    "messages": MESSAGES,
    "approvals": APPROVALS,
    "posts": POSTS,
    "whispers": WHISPERS,
    "audit": AUDIT,
}


def test_a_field_that_a_later_release_added_may_be_missing() -> None:
    """Without `added`, all that MongoDB has from before would be set aside."""
    codec = Codec("post", Post, key="post_id", added=("ts",))
    row = codec.encode(a_post(failure="gone"))
    del row["ts"]
    assert codec.decode(row) == a_post(failure="gone")  # fields after it are read
    with pytest.raises(RecordFormatError, match="ts"):
        POSTS.decode(row)


def test_each_table_of_records_has_its_codec_tried() -> None:
    made = set(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", ddl("")))
    assert made - {"checkpoints", "era", "health", "journal", "log"} == TABLES.keys()
