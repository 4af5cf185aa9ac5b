"""Canonical JSON and digests: the same text as V8 and as RFC 8785 write."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bot.api.canonical import call_digest, canonical

DATA = Path(__file__).parents[3] / "data"
VECTORS = [line.split() for line in (DATA / "ecmascript_numbers.txt").read_text().splitlines()]
EXAMPLES = json.loads((DATA / "api_examples.json").read_text(encoding="utf-8"))["examples"]


def test_numbers_are_written_as_v8_writes_them() -> None:
    wrong = {
        bits: (canonical(number).decode(), text)
        for bits, text in VECTORS
        if canonical(number := struct.unpack(">d", bytes.fromhex(bits))[0]) != text.encode()
    }
    assert wrong == {}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_back_as_it_was(number: float) -> None:
    assert float(canonical(number)) == number


def test_members_are_sorted_by_utf16_as_the_rfc_shows() -> None:
    members = {"€": 1, "\r": 2, "\ufb33": 3, "1": 4, "😀": 5, "\x80": 6, "ö": 7}
    assert canonical(members).decode() == (
        '{"\\r":2,"1":4,"\x80":6,"ö":7,"€":1,"😀":5,"\ufb33":3}'  # section 3.2.3
    )


def test_the_example_of_the_rfc() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '€$\x0f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert canonical(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


@pytest.mark.parametrize("value", [2**53, -(2**53), math.nan, math.inf, [2**60], {"a": 2**53}])
def test_a_number_that_parsers_read_differently_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"exceeds|finite|inf|nan|domain"):
        canonical(value)


def test_other_things_than_json_are_refused() -> None:
    with pytest.raises(ValueError, match="object"):
        canonical({"a": object()})


def test_the_digest_of_a_call_is_the_published_one() -> None:
    """The examples of the specification hold digests that another program made."""
    decided = [
        example["value"]
        for example in EXAMPLES
        if isinstance(example["value"].get("decision"), dict)
        and example["value"]["decision"].get("digest")
    ]
    assert decided
    for request in decided:
        decision = request["decision"]
        made = call_digest(request["id"], decision["tool"], decision["arguments"])
        assert made == decision["digest"]
