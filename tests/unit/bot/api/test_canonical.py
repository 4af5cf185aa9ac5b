"""Canonical JSON and digests: the same text as V8 and as RFC 8785 write."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pytest

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
