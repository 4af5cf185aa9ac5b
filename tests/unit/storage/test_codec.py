"""Records as rows."""

from typing import Any

import pytest

from storage.codec import APPROVALS, AUDIT, MESSAGES, POSTS, THREADS, Codec
from storage.errors import RecordFormatError
from tests.contract.builders import a_decision, a_message, a_post, a_thread, an_approval, an_entry

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
