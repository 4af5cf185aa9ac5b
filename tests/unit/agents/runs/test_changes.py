"""Changes of JSON data: whatever changed, what is written of it makes the new document."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, strategies as st

from agents.core.codec import Json, to_text
from agents.core.errors import CheckpointDecodeError
from agents.runs.changes import changed, difference

LEAVES: st.SearchStrategy[Json] = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, 2.5, ""])
)
DATA: st.SearchStrategy[Json] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abcd"), inner),
    max_leaves=20,
)


def as_text(data: Json) -> str:
    return json.dumps(data, sort_keys=True)


@given(DATA, DATA)
def test_a_change_makes_just_the_other_value_and_leaves_the_first_alone(
    before: Json, after: Json
) -> None:
    kept = copy.deepcopy(before)

    change = difference(before, after)

    assert (change is None) == (as_text(before) == as_text(after))
    if change is not None:
        stored = json.loads(to_text(change))
        assert as_text(changed(before, stored)) == as_text(after)
    assert as_text(before) == as_text(kept)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({"a": 1}, {"a": True}, {"keys": {"a": {"new": True}}}),
        ({"a": 1}, {"a": 1.0}, {"keys": {"a": {"new": 1.0}}}),
        ({"a": 1, "b": 2}, {"b": 2}, {"gone": ["a"]}),
        ([1, 2, 3, 4], [1, 2, 4], {"splice": [2, 1, []]}),
        ([1, 2], [1, 2, 3], {"splice": [2, 0, [3]]}),
        ([1, 1], [1, 1, 1], {"splice": [2, 0, [1]]}),
        ([[1], [2]], [[1], [2, 3]], {"items": {"1": {"splice": [1, 0, [3]]}}}),
        ({"a": [1]}, {"a": {}}, {"keys": {"a": {"new": {}}}}),
    ],
)
def test_only_what_is_new_is_in_a_change(before: Json, after: Json, change: Json) -> None:
    assert difference(before, after) == change


@pytest.mark.parametrize(
    "change",
    [
        {"gone": ["b"]},
        {"keys": {"a": {"items": {"7": {"new": 1}}}}},
        {"keys": {"a": {"splice": [0, 3, []]}}},
        {"keys": {"a": {"splice": [-1, 1, []]}}},
        {"keys": {"a": {"splice": [0]}}},
        {"keys": {"a": {"items": {"x": {"new": 1}}}}},
        {"keys": {"nothing": {"keys": {"a": {"new": 1}}}}},
        {"keys": 5},
        5,
    ],
)
def test_a_change_of_other_data_is_a_typed_error(change: Json) -> None:
    with pytest.raises(CheckpointDecodeError, match="a change of it is damaged"):
        changed({"a": [1, 2]}, change)
