"""Canonical JSON, and what a digest binds (I2)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agents.core.digest import call_digest, canonical_json, rule_in
from agents.core.errors import ToolError

TEXT = st.text()
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
CALL: dict[str, Any] = {
    "thread": "t1",
    "address": "agent:A;tool:pay:c1",
    "tool": "pay",
    "arguments": {"euros": 5, "to": "o1"},
    "rule": "always",
    "ruling": "",
}


@settings(deadline=None)
@given(JSON)
def test_canonical_json_says_the_same(value: Any) -> None:
    text = canonical_json(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@settings(deadline=None)
@given(st.dictionaries(TEXT, JSON, min_size=2, max_size=5))
def test_order_of_keys_does_not_count(value: dict[str, Any]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


@settings(deadline=None)
@given(JSON, JSON)
def test_different_data_have_different_texts(value: Any, other: Any) -> None:
    same = canonical_json(value) == canonical_json(other)
    assert same == (json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True))


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (float("nan"), ""),
        ([{"a": ({1: "a"},)}], "the key 1 is not text$"),
        ({"a": {"b": 1}, "c": {None: 2}}, "the key None is not text$"),
        ({1}, ""),
        (b"x", ""),
    ],
)
def test_what_is_not_json_has_no_canonical_form(value: object, fault: str) -> None:
    with pytest.raises(ToolError, match=f"^not JSON data: {fault}"):
        canonical_json(value)


def test_tuple_is_a_list() -> None:
    assert canonical_json((1, {"b": 1, "a": 2})) == '[1,{"a":2,"b":1}]'


def test_digest_is_64_hexadecimal_digits_and_never_changes() -> None:
    digest = call_digest(**CALL)
    assert re.fullmatch("[0-9a-f]{64}", digest)
    # Stored decisions carry digests: another value here makes all of them void.
    assert digest == "98c3aa2cbb398127be6dcea0823a5fcc0f99e82759cb63f47898ec94adecefeb"


@pytest.mark.parametrize("part", ["thread", "address", "tool", "rule", "ruling"])
@settings(deadline=None)
@given(text=TEXT)
def test_each_part_counts(part: str, text: str) -> None:
    same = call_digest(**{**CALL, part: text}) == call_digest(**CALL)
    assert same == (text == CALL[part])


@settings(deadline=None)
@given(st.dictionaries(TEXT, JSON, max_size=3))
def test_arguments_count(arguments: dict[str, Any]) -> None:
    same = call_digest(**{**CALL, "arguments": arguments}) == call_digest(**CALL)
    assert same == (canonical_json(arguments) == canonical_json(CALL["arguments"]))


@settings(deadline=None)
@given(TEXT, TEXT)
def test_parts_cannot_flow_into_each_other(text: str, other: str) -> None:
    digest = call_digest(**{**CALL, "thread": text + other, "address": ""})
    moved = call_digest(**{**CALL, "thread": text, "address": other})
    assert (digest == moved) == (other == "")


RULING = '{"effect":"ask","rule":"big"}'


def test_digest_with_a_ruling_never_changes_either() -> None:
    digest = call_digest(**{**CALL, "ruling": RULING})
    assert digest == "fae0949260ae0681c4fc6550d7cde1e9126759971a41098a7680998d6cf58e29"


@pytest.mark.parametrize(
    ("ruling", "rule"),
    [
        (RULING, "big"),
        ('{"rule":5}', ""),
        ("{}", ""),
        ('"rule"', ""),
        ("null", ""),
        ("{", ""),
        ("", ""),
        ("[" * 100_000, ""),
    ],
)
def test_a_ruling_names_its_rule(ruling: str, rule: str) -> None:
    assert rule_in(ruling) == rule
