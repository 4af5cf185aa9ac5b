"""Canonical JSON, compared with another library and with RFC 8785's own vectors."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
import rfc8785
from hypothesis import given, strategies as st

from countersign_client import canonical, digest
from tests.support.sizes import size

LARGEST = 2**53 - 1
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST, LARGEST)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_canonical_form_is_that_of_another_library(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


def test_each_double_is_written_as_another_library_does() -> None:
    """Every exponent, with mantissas at the edges and in between."""
    mantissas = [0, 1, 2**51, 2**52 - 1, 0x5555555555555, *range(7, 2**52, 2**52 // size(8, 40))]
    for exponent in range(2047):
        for mantissa in mantissas:
            (value,) = struct.unpack(">d", struct.pack(">Q", exponent << 52 | mantissa))
            assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (-9007199254740992, "-9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (295147905179352825856, "295147905179352830000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (0.000001, "0.000001"),
        (0.0000001, "1e-7"),
        (333333333.3333332, "333333333.3333332"),
        (-0.0000033333333333333333, "-0.0000033333333333333333"),
        (1424953923781206.2, "1424953923781206.2"),
        (LARGEST, "9007199254740991"),
        (True, "true"),
        ('\u20ac$\x0f\nA\'B"\\\\"/\x7f', '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/\x7f"'),
        ((1, 2), "[1,2]"),
    ],
)
def test_vectors(value: Any, form: str) -> None:
    assert canonical(value).decode() == form


def test_members_are_sorted_by_utf_16() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "ö"]
    form = canonical(dict.fromkeys(names))
    assert list(json.loads(form)) == ["\r", "1", "\x80", "ö", "\u20ac", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**53 + 1, -(2**64) - 1, 10**400, "\ud800", {"\ud800": 1}]
)
def test_a_value_without_one_meaning_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical({"in": [value]})


@pytest.mark.parametrize("value", [{1: 2}, {None: 1}, b"x", {1, 2}, object()])
def test_a_value_that_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical([value])


@pytest.mark.parametrize(
    ("replicas", "wanted"),
    [
        (3, "sha256:bb3bb63949331c56ffe6031f32f44d40fb7ce13ff9e4000bd70aeeba39efb6f7"),
        (2, "sha256:0c8822a0f4947022537c6a8e5fc9ef20a542c19116b7c9fe8482e6d60869cf90"),
        (2.0, "sha256:0c8822a0f4947022537c6a8e5fc9ef20a542c19116b7c9fe8482e6d60869cf90"),
    ],
)
def test_digests_are_those_of_the_specification(replicas: float, wanted: str) -> None:
    call = {"env": "production", "replicas": replicas, "service": "payments", "version": "1.4.2"}
    assert digest("apr_" + 4 * "9c41d07e", "deploy", call) == wanted
