"""Entries of the audit as rows."""

import pytest

from storage.chain import NO_KEY
from storage.errors import RecordRefusedError
from storage.ledger import read_entry, row_of
from tests.contract.builders import APPROVAL_ID, THREAD_ID, an_entry


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"v": 2}, "another release"),
        ({"v": None}, "another release"),
        ({"at_ms": "soon"}, "field 'at_ms' is damaged"),
        ({"at_ms": True}, "field 'at_ms' is damaged"),
        ({"erased": 2}, "field 'erased' is damaged"),
        ({"erased": [1]}, "field 'erased' is damaged"),
        ({"erased": {"a": 1}}, "field 'erased' is damaged"),
        ({"actor_id": "\ud83d"}, "field 'actor_id' is damaged"),
        ({"detail": "[1]"}, "field 'detail' is damaged"),
        ({"detail": "{"}, "field 'detail' is damaged"),
        ({"detail": "[" * 200_000}, "field 'detail' is damaged"),
    ],
)
def test_an_entry_that_cannot_be_read_is_still_there(damage: dict[str, object], why: str) -> None:
    entry = read_entry({**row_of(an_entry(), NO_KEY), **damage})

    assert (entry.entry_id, entry.action) == ("entry-1", "unreadable")
    assert entry.at_ms == (0 if "at_ms" in damage else 1_000)
    assert (entry.thread_id, entry.approval_id) == (THREAD_ID, APPROVAL_ID)
    assert why in str(entry.detail["why"])
    assert "a stored audit entry entry-1 " in str(entry.detail["why"])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_is_no_json_data_is_refused(value: object) -> None:
    with pytest.raises(RecordRefusedError, match="the audit entry is not JSON data"):
        row_of(an_entry(detail={"a": value}), NO_KEY)
    with pytest.raises(RecordRefusedError, match="the audit entry is not JSON data"):
        row_of(an_entry(detail={"digest": value}), NO_KEY)
